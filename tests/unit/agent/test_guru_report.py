# SPDX-License-Identifier: Apache-2.0
"""A file that cannot be watched for requests of a report."""

import pathlib

import fixtures
from oslo_config import cfg
from oslo_reports import opts
import testtools

from nova_aggregate_mirror.agent import guru_report
from nova_aggregate_mirror import exceptions


class TestReport(testtools.TestCase):

    def refusal(self, file: pathlib.Path) -> str:
        conf = cfg.ConfigOpts()
        opts.set_defaults(conf)
        conf([])
        conf.set_override('file_event_handler', str(file), 'oslo_reports')
        return str(self.assertRaises(
            exceptions.InvalidConfiguration, guru_report.set_up, conf, 'agent',
            dict))

    def test_file_that_cannot_be_watched(self) -> None:
        """It is to be created only if it does not exist."""
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.assertIn('; create the file or unset the option',
                      self.refusal(folder / 'none'))
        folder.joinpath('file').touch()
        self.assertIn('Not a directory; correct or unset the option',
                      self.refusal(folder / 'file' / 'none'))
