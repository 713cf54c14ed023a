# SPDX-License-Identifier: Apache-2.0
"""The environment of a cloud that runs is not taken from under it."""

import pathlib

import fixtures
import testtools

from tests.cloud import environment


class TestEnvironment(testtools.TestCase):

    def test_in_use_it_is_not_made_anew(self):
        """Whoever wants another one is told what to stop."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        made = environment.Environment(str(folder), 'nothing', (), False)
        (folder / 'cloud').mkdir()
        (folder / 'cloud' / 'state.json').touch()
        made.used_by(folder / 'cloud')
        error = self.assertRaises(environment.CannotInstall, made.make)
        self.assertIn(str(folder / 'cloud'), str(error))
        self.assertTrue((folder / 'cloud' / 'state.json').exists())
