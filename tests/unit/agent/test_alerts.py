# SPDX-License-Identifier: Apache-2.0
"""The alert rules, and their behaviour in Prometheus."""

import pathlib
import re
import shutil
import subprocess

from prometheus_client import exposition
import testtools
from testtools import matchers
import yaml

from nova_aggregate_mirror.agent import metrics

ROOT = pathlib.Path(__file__).parents[3]
RULES = ROOT / 'etc' / 'prometheus' / 'nova-aggregate-mirror.rules.yaml'
CASES = pathlib.Path(__file__).with_name('alerts.yaml')
PROMTOOL = shutil.which('promtool')


def alerts():
    """Return every rule of the file."""
    return [rule for group in yaml.safe_load(RULES.read_text())['groups']
            for rule in group['rules']]


class TestAlerts(testtools.TestCase):

    def test_every_figure_is_one_that_the_agent_shows(self):
        """A rule about a metric that does not exist would never fire."""
        figures = metrics.Metrics()
        figures.expect_audits(['zone'])
        # A metric with a label exists only after something was counted.
        figures.set_backlog(0, 0, 0.0)
        figures.observe_sync('success', 0.0)
        shown = exposition.generate_latest(figures.registry).decode()
        names = {name for rule in alerts() for name in re.findall(
            metrics.PREFIX + r'\w+(?:{[^}]*})?', rule['expr'])}
        shown = shown.replace(',region=""', '')
        self.assertGreater(len(names), 4)
        for name in sorted(names):
            self.assertThat(shown, matchers.MatchesRegex(
                r'(?s).*\n%s[ {]' % re.escape(name)))

    def test_every_alert_says_what_to_do(self):
        """It tells novas apart: each aggregation keeps the region."""
        for rule in alerts():
            self.assertIn(rule['labels']['severity'], ('critical', 'warning'))
            self.assertEqual({'summary', 'description', 'runbook_url'},
                             set(rule['annotations']), rule['alert'])
            self.assertEqual([], re.findall(
                r'\b(?:max|min|sum)\b(?! by \((?:\w+, )*region\))',
                rule['expr']), rule['alert'])

    def test_every_alert_is_seen_to_fire(self):
        fired = {expected['alertname']
                 for case in yaml.safe_load(CASES.read_text())['tests']
                 for expected in case['alert_rule_test']
                 if expected.get('exp_alerts')}
        self.assertEqual({rule['alert'] for rule in alerts()}, fired)

    @testtools.skipUnless(PROMTOOL, 'promtool is not installed')
    def test_alerts_fire_when_they_should_and_not_otherwise(self):
        """Prometheus reads the rules for that."""
        done = subprocess.run(
            [PROMTOOL, 'test', 'rules', CASES], text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)
