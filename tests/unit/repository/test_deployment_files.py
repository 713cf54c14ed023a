# SPDX-License-Identifier: Apache-2.0
"""The files that operators copy: for systemd, nova.conf and deployments."""

import configparser
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess

import fixtures
import jinja2
from oslo_config import cfg
from prometheus_client import exposition
from sqlalchemy import engine
import testtools
import yaml

from nova_aggregate_mirror.agent import metrics
from nova_aggregate_mirror import conf
from nova_aggregate_mirror import option_values

ETC = pathlib.Path(__file__).parents[3] / 'etc'
DASHBOARD = ETC / 'grafana' / 'nova-aggregate-mirror.json'
MANIFEST = ETC / 'kubernetes' / 'nova-aggregate-mirror-agent.yaml'
VALUES = ETC / 'kubernetes' / 'openstack-helm-values.yaml'
KOLLA = ETC / 'kolla'
OSA = ETC / 'openstack-ansible'
UNIT = ETC / 'systemd' / 'nova-aggregate-mirror-agent.service'
DROP_IN = ETC / 'nova' / 'nova.conf.d' / 'aggregate-mirror.conf'
ANALYZE = shutil.which('systemd-analyze')


def load(case, text):
    """Return the options with those of a text; each has to be used."""
    path = pathlib.Path(case.useFixture(fixtures.TempDir()).path) / 'nova.conf'
    path.write_text(text)
    options = cfg.ConfigOpts()
    conf.register_opts(options)
    options(['--config-file', str(path)], project='nova')
    option_values.check(options)
    parser = configparser.RawConfigParser()
    parser.read_string(text)
    for section in parser.sections():
        case.assertTrue(parser[section])
        for option in parser[section]:
            case.assertEqual(cfg.Locations.user,
                             options.get_location(option, section).location)
    return options


def ini(sections):
    lines = []
    for name, section in sections.items():
        lines += ['[%s]' % name, *('%s = %s' % pair
                                   for pair in section.items())]
    return '\n'.join(lines)


def render(text, **variables):
    """Render a template; a variable that is not given is an error."""
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, autoescape=False)
    environment.filters |= {'bool': bool, 'b64decode': str}
    return environment.from_string(text).render(variables)


def entry_points(group):
    setup = configparser.RawConfigParser()
    setup.read(ETC.parent / 'setup.cfg')
    return setup['entry_points'][group]


def program(line):
    """Check that the last word of a line is a program of the package."""
    name = pathlib.Path(line.split()[-1]).name
    return '\n%s =' % name in entry_points('console_scripts')


def helm(case):
    """Return the options with what the values for the chart set."""
    values = yaml.safe_load(VALUES.read_text())
    return load(case, ini(values['conf']['nova']))


def kolla(case, tls=False):
    # Older releases have no such variable.
    variables = {} if tls is None else {
        'nova_database_enable_tls_internal': tls, 'openstack_cacert': 'ca.pem'}
    return load(case, render(
        (KOLLA / 'kolla-nova-api.conf').read_text(),
        nova_api_database_address='192.0.2.1:3306',
        nova_aggregate_mirror_database_password='secret', **variables))


def openstack_ansible(*groups, tls=False, ca=''):
    variables = yaml.safe_load(
        (OSA / 'user_nova_aggregate_mirror.yml').read_text())
    return render(ini(variables['nova_nova_conf_overrides']),
                  galera_address='192.0.2.1', group_names=groups,
                  nova_galera_use_ssl=tls, nova_galera_ssl_ca_cert=ca,
                  nova_aggregate_mirror_galera_password='secret')


class TestJournal(testtools.TestCase):

    def test_agents_on_several_hosts_share_it(self):
        """An SQLite file would be another journal on each."""
        for options in helm(self), kolla(self), load(self, openstack_ansible(
                'nova_all', 'nova_api_os_compute')):
            self.assertThat(options.aggregate_mirror_database.connection,
                            testtools.matchers.StartsWith('mysql'))

    def test_connections_are_encrypted_if_those_of_nova_are(self):
        def query(options):
            url = engine.make_url(options.aggregate_mirror_database.connection)
            return dict(url.query)

        self.assertEqual({}, query(kolla(self)))
        self.assertEqual({}, query(kolla(self, tls=None)))
        self.assertEqual({'ssl_ca': 'ca.pem'}, query(kolla(self, tls=True)))
        for ca, expected in (('', {}), ('ca.pem', {'ssl_ca': 'ca.pem'})):
            options = load(self, openstack_ansible(
                'nova_api_os_compute', tls=True, ca=ca))
            self.assertEqual({'ssl_verify_cert': 'true', **expected},
                             query(options))

    def test_the_proxy_admits_the_user(self):
        user, = yaml.safe_load(
            (KOLLA / 'kolla-proxysql-user.yaml').read_text())['mysql_users']
        url = engine.make_url(kolla(self).aggregate_mirror_database.connection)
        self.assertEqual((url.username, url.password),
                         (user['username'], user['password']))

    def test_compute_hosts_do_not_get_the_password(self):
        self.assertNotIn(
            'secret', openstack_ansible('nova_all', 'nova_compute'))
        self.assertIn(
            'aggregate_mirror_database',
            yaml.safe_load(VALUES.read_text())['conf'][
                'nova_compute_redactions'])


class TestKubernetes(testtools.TestCase):

    def setUp(self):
        super().setUp()
        manifest = yaml.safe_load(MANIFEST.read_text())
        self.pod = manifest['spec']['template']['spec']
        self.container, = self.pod['containers']

    def test_the_probe_reaches_the_agent(self):
        mirror = helm(self).aggregate_mirror
        [port] = self.container['ports']
        self.assertEqual(('0.0.0.0', port['containerPort']), (
            mirror.metrics_host, mirror.metrics_port))
        for probe in 'startupProbe', 'livenessProbe':
            self.assertEqual(
                self.container[probe]['httpGet']['port'], port['name'])

    def test_the_manifest_uses_the_image_of_the_values(self):
        images = yaml.safe_load(VALUES.read_text())['images']['tags']
        self.assertEqual(images['nova_api'], self.container['image'])

    def test_the_agent_finds_the_files_of_the_chart(self):
        """All of nova-etc, such as the file of log_config_append.

        The chart has [placement] in a drop-in. Kubernetes updates a directory,
        and never a file that is mounted with subPath.
        """
        self.assertEqual(
            {'nova-etc': '/etc/nova', 'tmp': '/tmp'},
            {mount['name']: mount['mountPath']
             for mount in self.container['volumeMounts']
             if 'subPath' not in mount})
        configuration = self.pod['volumes'][0]['projected']
        nova, drop_ins = (source['secret']
                          for source in configuration['sources'])
        self.assertEqual({'name': 'nova-etc'}, nova)
        self.assertEqual(
            {'nova_placement.conf': 'nova.conf.d/nova_placement.conf',
             'nova_neutron.conf': 'nova.conf.d/nova_neutron.conf'},
            {key['key']: key['path'] for key in drop_ins['items']})
        self.assertTrue(drop_ins['optional'])

    def test_the_cron_job_runs_a_command_of_the_client(self):
        job = yaml.safe_load(
            (ETC / 'kubernetes' / 'rhoso-sync.yaml').read_text())
        template = job['spec']['jobTemplate']['spec']['template']
        container, = template['spec']['containers']
        self.assertEqual('openstack', container['command'][0])
        self.assertIn('_'.join(container['command'][1:4]),
                      entry_points('openstack.aggregate_mirror.v1'))


class TestKolla(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.play, = yaml.safe_load((KOLLA / 'kolla-agent.yml').read_text())

    def test_the_image_gets_the_package_with_the_extra_of_the_agent(self):
        """As kolla-build renders it, with stand-ins for its own templates."""
        build = configparser.RawConfigParser()
        build.read(KOLLA / 'kolla-build.conf')
        # kolla-build extracts sources of this name below /additions.
        self.assertEqual(['nova-api-additions-aggregate-mirror'],
                         build.sections())
        override = KOLLA / pathlib.Path(
            build['DEFAULT']['template_override']).name
        environment = jinja2.Environment(loader=jinja2.DictLoader({
            'macros.j2': '{% macro install_pip(packages) %}'
                         'pip install {{ packages | join(" ") }}'
                         '{% endmacro %}',
            'nova-api': 'FROM nova-base\n'
                        '{% import "macros.j2" as macros with context %}'
                        '{% block nova_api_footer %}{% endblock %}'}),
            autoescape=False)
        image = environment.from_string(override.read_text()).render(
            parent_template='nova-api')
        self.assertEqual(
            ['FROM nova-base', 'ADD additions-archive /',
             'RUN pip install '
             '"$(echo /additions/nova_aggregate_mirror-*)[agent]"'],
            [line for line in image.splitlines() if line])

    def test_the_health_check_reaches_the_agent(self):
        mirror = kolla(self).aggregate_mirror
        *_shell, command = self.play['vars']['agent_healthcheck']['test']
        self.assertEqual('healthcheck_curl http://%s:%s/healthz' % (
            mirror.metrics_host, mirror.metrics_port), command)

    def test_the_container_starts_the_agent_with_nova_apis_options(self):
        start = self.play['vars']['agent_start']
        command, log = start['command'].split(' --log-file ')
        self.assertTrue(program(command))
        # Kolla collects the logs of this directory, whose owner it sets.
        self.assertEqual('/var/log/kolla/nova', os.path.dirname(log))
        self.assertEqual({'command', 'config_files'}, start.keys())
        sources = {path['dest']: path['source']
                   for path in start['config_files']}
        self.assertEqual('{{ nova_api_config }}/nova.conf',
                         sources['/etc/nova/nova.conf'])
        volumes = self.play['vars']['agent_volumes']
        self.assertIn(
            '{{ node_config_directory }}/nova-api/:{{ nova_api_config }}/:ro',
            volumes)
        # It sets the time zone of containers, too.
        self.assertNotIn('localtime', ' '.join(volumes))

    def test_the_container_that_is_compared_is_the_one_that_is_started(self):
        compared = self.play['tasks'][-1]['kolla_container']
        handler, = self.play['handlers']
        self.assertEqual(handler['name'], self.play['tasks'][-1]['notify'])
        started = dict(handler['kolla_container'])
        started.pop('action')
        self.assertEqual({**started, 'action': 'compare_container'}, compared)


class TestOpenStackAnsible(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.variables = yaml.safe_load(
            (OSA / 'user_nova_aggregate_mirror.yml').read_text())
        self.play, = yaml.safe_load(
            (OSA / 'openstack-ansible-agent.yml').read_text())

    def test_the_environment_gets_the_extra_of_the_agent(self):
        requirement, = self.variables['nova_user_pip_packages']
        self.assertEqual('nova-aggregate-mirror[agent]',
                         requirement.partition(' @ ')[0])

    def test_the_unit_starts_the_agent_of_the_environment(self):
        """The playbook replaces the directory of the program."""
        content, = [task['ansible.builtin.copy']['content']
                    for task in self.play['tasks']
                    if 'ansible.builtin.copy' in task]
        nova_bin = '/openstack/venvs/nova-33.0.0/bin'
        unit = render(content, installed={'content': UNIT.read_text()},
                      nova_bin=nova_bin)
        start, = re.findall('(?m)^ExecStart=(.*)', unit)
        self.assertEqual(nova_bin, str(pathlib.Path(start).parent))
        self.assertTrue(program(start))
        self.assertEqual(UNIT.name, self.play['vars']['agent_unit'])


class TestOtherFiles(testtools.TestCase):

    def test_every_metric_is_one_that_the_agent_exports(self):
        figures = metrics.Metrics()
        figures.expect_audits(['zone'])
        exported = exposition.generate_latest(figures.registry).decode()
        names = set(re.findall(r'(?m)^(%s\w+)[ {]' % metrics.PREFIX, exported))
        panels = json.loads(DASHBOARD.read_text())['panels']
        targets = itertools.chain(*(panel['targets'] for panel in panels))
        queries = '\n'.join(target['expr'] for target in targets)
        used = set(re.findall(metrics.PREFIX + r'\w+', queries))
        self.assertGreater(len(used), 10)
        self.assertEqual(set(), used - names)

    def test_the_unit_starts_a_program_of_this_package(self):
        """With --config-file, nova.conf would override the drop-ins."""
        unit = configparser.RawConfigParser(strict=False)
        unit.read(UNIT)
        command = unit['Service']['ExecStart']
        self.assertTrue(program(command))
        self.assertNotIn(' ', command)

    @testtools.skipUnless(ANALYZE, 'systemd-analyze is not installed')
    def test_systemd_understands_the_unit(self):
        directory = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        unit = directory / UNIT.name
        # The program or the user may not exist on this machine.
        unit.write_text(re.sub(
            '(?m)^(User|Group)=.*\n', '', re.sub(
                '(?m)^ExecStart=.*', 'ExecStart=/bin/true',
                UNIT.read_text())))
        done = subprocess.run(
            [ANALYZE, 'verify', '--man=no', unit], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        mine = [line for line in done.stdout.splitlines() if UNIT.name in line]
        self.assertEqual([], mine)

    def test_the_drop_in_changes_nothing_as_it_is(self):
        drop_in = configparser.RawConfigParser()
        drop_in.read(DROP_IN)
        self.assertEqual(
            [('aggregate_mirror', []), ('aggregate_mirror_database', [])],
            [(name, drop_in.items(name)) for name in drop_in.sections()])

    def test_every_line_of_the_drop_in_can_be_used(self):
        """An operator will uncomment each of them."""
        load(self, re.sub('(?m)^#(?=[a-z_]+ = )', '', DROP_IN.read_text()))

    def test_defaults_in_the_drop_in_are_current(self):
        text = DROP_IN.read_text()
        for option in conf.OPTS:
            said = re.search('(?m)^#%s = (.*)$' % option.name, text)
            if said and option.name != 'missing_credentials':
                self.assertEqual(str(option.default), said[1])
