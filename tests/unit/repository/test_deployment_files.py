# SPDX-License-Identifier: Apache-2.0
"""The dashboard and the files for Kubernetes that operators copy."""

import json
import pathlib
import re

import fixtures
from oslo_config import cfg
from prometheus_client import exposition
import testtools
import yaml

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror import conf

ETC = pathlib.Path(__file__).parents[3] / 'etc'
DASHBOARD = ETC / 'grafana' / 'nova-aggregate-mirror.json'
MANIFEST = ETC / 'kubernetes' / 'nova-aggregate-mirror-agent.yaml'
VALUES = ETC / 'kubernetes' / 'openstack-helm-values.yaml'


class TestDashboard(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.panels = json.loads(DASHBOARD.read_text())['panels']

    def test_every_metric_is_one_that_the_agent_exports(self):
        figures = metrics.Metrics()
        figures.expect_audits(['zone'])
        exported = exposition.generate_latest(figures.registry).decode()
        names = set(re.findall(r'(?m)^(%s\w+)[ {]' % metrics.PREFIX,
                               exported))
        used = {name for panel in self.panels for target in panel['targets']
                for name in re.findall(metrics.PREFIX + r'\w+',
                                       target['expr'])}
        self.assertGreater(len(used), 10)
        self.assertEqual(set(), used - names)

    def test_panels_do_not_overlap(self):
        cells = [(x, y) for panel in self.panels
                 for place in [panel['gridPos']]
                 for x in range(place['x'], place['x'] + place['w'])
                 for y in range(place['y'], place['y'] + place['h'])]
        self.assertEqual(len(set(cells)), len(cells))
        self.assertEqual(len(self.panels),
                         len({panel['id'] for panel in self.panels}))


class TestKubernetes(testtools.TestCase):

    def options(self):
        """Return the options with what the values for the chart set."""
        path = pathlib.Path(
            self.useFixture(fixtures.TempDir()).path) / 'nova.conf'
        sections = yaml.safe_load(VALUES.read_text())['conf']['nova']
        path.write_text(''.join(
            '[%s]\n%s' % (name, ''.join('%s = %s\n' % pair
                                        for pair in section.items()))
            for name, section in sections.items()))
        options = cfg.ConfigOpts()
        conf.register_opts(options)
        options(['--config-file', str(path)], project='nova')
        conf.check(options)
        for name, section in sections.items():
            for option in section:
                self.assertIn(option, options[name])
        return options

    def test_the_probe_reaches_the_agent(self):
        mirror = self.options().aggregate_mirror
        spec = yaml.safe_load(MANIFEST.read_text())['spec']
        container, = spec['template']['spec']['containers']
        self.assertEqual(
            [{'name': container['livenessProbe']['httpGet']['port'],
              'containerPort': mirror.metrics_port}], container['ports'])
        self.assertEqual('0.0.0.0', mirror.metrics_host)

    def test_the_agent_reads_the_credentials_of_the_chart(self):
        """The chart moves [placement] from nova.conf to a drop-in."""
        pod = yaml.safe_load(MANIFEST.read_text())['spec']['template']['spec']
        container, = pod['containers']
        secrets = {volume['name']: volume['secret']['secretName']
                   for volume in pod['volumes'] if 'secret' in volume}
        self.assertEqual(
            {'/etc/nova/nova.conf': 'nova-etc',
             '/etc/nova/nova.conf.d': 'nova-ks-etc'},
            {mount['mountPath']: secrets[mount['name']]
             for mount in container['volumeMounts']
             if mount['name'] in secrets})

    def test_agents_in_several_pods_share_a_journal(self):
        """An SQLite file would be another journal in each pod."""
        database = self.options().aggregate_mirror_database
        self.assertThat(database.connection,
                        testtools.matchers.StartsWith('mysql'))

    def test_the_manifest_uses_the_image_of_the_values(self):
        spec = yaml.safe_load(MANIFEST.read_text())['spec']
        container, = spec['template']['spec']['containers']
        images = yaml.safe_load(VALUES.read_text())['images']['tags']
        self.assertEqual(images['nova_api'], container['image'])
