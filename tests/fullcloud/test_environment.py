# SPDX-License-Identifier: Apache-2.0
"""What keeps a cloud's environment from being made, and how that is told."""

import pathlib
import zipfile

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

    def test_what_can_be_had_has_to_be_installed(self):
        """Tests are skipped only where pip gets nothing at all."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        shelf = folder / 'shelf'
        shelf.mkdir()
        for name, value in (('PIP_NO_INDEX', '1'),
                            ('PIP_FIND_LINKS', str(shelf))):
            self.useFixture(fixtures.EnvironmentVariable(name, value))
        made = environment.Environment(
            str(folder / 'environment'), 'nothing', ('no-such-package',),
            False)
        error = self.assertRaises(environment.Unreachable, made.make)
        self.assertIn('no-such-package', str(error))
        with zipfile.ZipFile(shelf / 'pip-99-py3-none-any.whl', 'w') as wheel:
            for name, text in (
                    ('METADATA', 'Metadata-Version: 2.1\nName: pip\n'
                                 'Version: 99\n'),
                    ('WHEEL', 'Wheel-Version: 1.0\nTag: py3-none-any\n')):
                wheel.writestr(f'pip-99.dist-info/{name}', text)
        error = self.assertRaises(environment.CannotInstall, made.make)
        self.assertNotIsInstance(error, environment.Unreachable)
        self.assertIn('no-such-package', str(error))
