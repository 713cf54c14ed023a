# SPDX-License-Identifier: Apache-2.0
"""The diagrams of the documentation are those that doc/pictures.py writes."""

import pathlib
import runpy

import testtools

DOC = pathlib.Path(__file__).parents[3] / 'doc'


class TestPictures(testtools.TestCase):

    def test_current(self):
        made = runpy.run_path(str(DOC / 'pictures.py'))['pictures']()
        found = {path.name: path.read_text()
                 for path in (DOC / 'source' / 'pictures').iterdir()}
        self.assertEqual(made, found)
