# SPDX-License-Identifier: Apache-2.0
"""Tempest on the full cloud: its configuration, and a run of its tests."""

from collections.abc import Mapping
import dataclasses
import json
import os
import pathlib
import signal
import subprocess
import time

import subunit
import testtools

from tests.cloud import cloud
from tests.cloud import config
from tests.cloud import config_files
from tests.cloud import processes

# Nova's API of aggregates, and of what they consist of.
TESTS = (r'tempest\.(serial_tests|api\.compute)\..*('
         r'aggregate|availability_zone|'
         r'admin\.test_(hosts|hypervisor|services))')
# The fake driver has no uptime.
EXCLUDED = 'test_get_hypervisor_uptime'
PATIENCE = 900
# Tempest needs one account of each role; creating users for each test class
# would take it twice as long.
ACCOUNTS = ('member', 'reader')
PROJECT = 'tempest'


@dataclasses.dataclass(frozen=True)
class Result:
    """The outcome of each test.

    :param outcomes: test to its outcome, such as ``success``, ``fail`` or
        ``skip``
    """

    outcomes: Mapping[str, str]
    output: str
    seconds: float

    def count(self, outcome: str) -> int:
        return list(self.outcomes.values()).count(outcome)

    def __str__(self) -> str:
        return '%d passed, %d failed, %d skipped in %.0f s' % (
            self.count('success'), self.count('fail'), self.count('skip'),
            self.seconds)


def make_accounts(running: cloud.Cloud) -> None:
    """Create the accounts that tempest uses, except the administrator's."""
    identity = running.identity()
    project = identity.post('/projects', json={'project': {
        'name': PROJECT, 'domain_id': 'default'}}).json()['project']['id']
    roles = {each['name']: each['id']
             for each in identity.get('/roles').json()['roles']}
    for name in ACCOUNTS:
        user = identity.post('/users', json={'user': {
            'name': '%s-%s' % (PROJECT, name), 'domain_id': 'default',
            'password': running.config.password}}).json()['user']['id']
        identity.put('/projects/%s/users/%s/roles/%s' % (
            project, user, roles[name]))


def configure(running: cloud.Cloud, folder: pathlib.Path,
              compute_region: str = config.REGION) -> pathlib.Path:
    """Write tempest.conf for the cloud; return its path.

    :param compute_region: the region whose nova-api is tested
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    accounts = folder / 'accounts.yaml'
    # JSON is valid YAML.
    accounts.write_text(json.dumps([
        {'username': username, 'project_name': project, 'roles': [role],
         'password': running.config.password, 'domain_name': 'Default'}
        for username, project, role in (
            ('admin', 'admin', 'admin'),
            *(('%s-%s' % (
                PROJECT, role), PROJECT, role) for role in ACCOUNTS))],
        indent=1))
    image, = running.rest('image').get(
        '/v2/images?name=empty').json()['images']
    flavor, = (each['id'] for each in running.nova().get(
        '/flavors').json()['flavors'] if each['name'] == 'tiny')
    path = folder / 'tempest.conf'
    config_files.write_file(running.config, str(path), {
        'DEFAULT': {'log_file': str(folder / 'tempest.log')},
        'oslo_concurrency': {'lock_path': str(folder / 'lock')},
        'identity': {'uri_v3': running.config.auth_url, 'auth_version': 'v3',
                     'region': config.REGION, 'v3_endpoint_type': 'public'},
        'auth': {'use_dynamic_credentials': 'False',
                 'test_accounts_file': str(accounts)},
        'compute': {
            'region': compute_region, 'fixed_network_name': 'public',
            'image_ref': image['id'], 'image_ref_alt': image['id'],
            'flavor_ref': flavor, 'flavor_ref_alt': flavor,
            'min_compute_nodes': str(running.config.hosts),
            'max_microversion': 'latest'},
        'service_available': {'cinder': 'False', 'swift': 'False',
                              'horizon': 'False'},
        # No system runs in a server of the fake driver.
        'validation': {'run_validation': 'False'}})
    return path


def run(running: cloud.Cloud, path: pathlib.Path) -> Result:
    """Run the tests serially with a configuration file.

    :raises CloudError: when tempest has run no test
    """
    started = time.monotonic()
    process = subprocess.Popen(
        [running.programs / 'tempest', 'run', '--config-file', path,
         '--serial', '--subunit', '--regex', TESTS,
         '--exclude-regex', EXCLUDED],
        cwd=path.parent, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True,
        env=processes.clean_environment())
    try:
        stream, errors = process.communicate(timeout=PATIENCE)
    except BaseException:
        # Its tests run in child processes.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise
    (path.parent / 'subunit').write_bytes(stream)
    outcomes, output = _read(path.parent / 'subunit')
    if not outcomes:
        raise processes.CloudError(
            'tempest ended with %s: '
            '%s'
            % (process.returncode, errors.decode(errors='replace')[-2000:]))
    return Result(outcomes, output, time.monotonic() - started)


def _read(stream: pathlib.Path) -> tuple[dict[str, str], str]:
    """Read the outcome of each test, and the texts of failures."""
    outcomes, texts = {}, []

    def ended(test: dict) -> None:
        outcomes[test['id']] = test['status']
        if test['status'] == 'fail':
            texts.extend([test['id'], *(each.as_text() for each
                                        in test['details'].values())])

    result = testtools.StreamToDict(ended)
    result.startTestRun()
    with open(stream, 'rb') as recorded:
        subunit.ByteStreamToStreamResult(recorded).run(result)
    result.stopTestRun()
    return outcomes, '\n'.join(texts)
