# SPDX-License-Identifier: Apache-2.0
"""Checks of .zuul.yaml: zuul can read it, and what it names exists."""

import configparser
import pathlib
import re

import testtools
from zuul import configloader
from zuul import model

ROOT = pathlib.Path(__file__).parents[3]
PARSERS = {'job': configloader.JobParser,
           'project': configloader.ProjectParser}
OURS = 'nova-aggregate-mirror-'


def read(text):
    """Return the items of a configuration: the kind and content of each."""
    context = model.SourceContext(
        'opendev.org/openstack/nova-aggregate-mirror',
        'openstack/nova-aggregate-mirror', 'opendev', 'master', '.zuul.yaml')
    return [next(iter(item.items()))
            for item in configloader.safe_load_yaml(text, context)]


def pipelines(project):
    """Return the pipelines of a project: name to job name to variant."""
    return {name: dict(map(variant, pipeline['jobs']))
            for name, pipeline in project.items() if name in ('check', 'gate')}


def variant(job):
    """Return the name and the variant of a job of a pipeline."""
    return (job, {}) if isinstance(job, str) else next(iter(job.items()))


class TestZuulYaml(testtools.TestCase):

    def setUp(self):
        super().setUp()
        self.items = read((ROOT / '.zuul.yaml').read_text())
        self.jobs = {said['name']: said for kind, said in self.items
                     if kind == 'job'}
        self.project, = [said for kind, said in self.items
                         if kind == 'project']

    def test_every_item_fits_the_schema_of_zuul(self):
        for kind, said in self.items:
            PARSERS[kind](None).schema(said)

    def test_every_job_of_ours_runs_before_a_change_lands(self):
        used = [job for job in pipelines(self.project)['check']
                if job.startswith(OURS)]
        self.assertEqual(sorted(self.jobs), sorted(used))

    def test_what_gates_a_change_was_checked_before(self):
        """With the same projects; what does not vote is only checked."""
        runs = pipelines(self.project)
        voting = {}
        for job, options in runs['check'].items():
            if {**self.jobs.get(job, {}), **options}.get('voting', True):
                voting[job] = options
        self.assertEqual(voting, runs['gate'])

    def test_functional_tests_run_with_nova_before_its_release(self):
        """Zuul installs the required projects into the environment."""
        functional = {
            job: variant for job, variant in
            pipelines(self.project)['check'].items()
            if job.startswith('openstack-tox-functional')}
        self.assertEqual(4, len(functional))
        for job, variant in functional.items():
            self.assertEqual(['openstack/nova', 'openstack/placement'],
                             variant['required-projects'], job)

    def test_environments_of_tox_exist_and_static_checks_have_a_job(self):
        tox = configparser.RawConfigParser()
        tox.read(ROOT / 'tox.ini')
        used = set()
        for said in self.jobs.values():
            if said['parent'] == 'openstack-tox':
                used.update(said['vars']['tox_envlist'].split(','))
        self.assertEqual(set(), {'testenv:' + env for env in used} - set(tox))
        self.assertLessEqual({'bandit', 'mypy', 'simulation', 'zuul'}, used)

    def test_jobs_with_devstack_enable_the_plugin(self):
        settings = (ROOT / 'devstack' / 'settings').read_text()
        name, = re.findall('^define_plugin (.*)$', settings, re.M)
        found = [said['vars']['devstack_plugins']
                 for said in self.jobs.values()
                 if 'devstack_plugins' in said['vars']]
        self.assertEqual(2, len(found))
        for plugins in found:
            self.assertEqual([name], list(plugins))

    def test_upgrade_that_skips_a_release(self):
        """It starts with the newest nova that has an environment in tox."""
        branch = self.jobs[OURS + 'grenade-skip-level']['vars'][
            'grenade_from_branch']
        newest = max((ROOT / 'tests' / 'releases').glob('nova*.in'))
        self.assertEqual('# OpenStack %s' % branch.removeprefix('stable/'),
                         newest.read_text().splitlines()[0])

    def test_request_filters_of_jobs_exist(self):
        setup = configparser.RawConfigParser()
        setup.read(ROOT / 'setup.cfg')
        names = {line.partition(' =')[0] for line in setup['entry_points'][
            'nova_aggregate_mirror.request_filters'].split('\n')}
        for name, option in (
                ('tempest', self.jobs[OURS + 'tempest']['vars'][
                    'devstack_localrc']),
                ('grenade', self.jobs[OURS + 'grenade']['vars'][
                    'grenade_devstack_localrc']['shared'])):
            filters = option['AGGREGATE_MIRROR_REQUEST_FILTERS'].split(',')
            self.assertEqual(set(), set(filters) - names, name)
