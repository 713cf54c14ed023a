# SPDX-License-Identifier: Apache-2.0
"""Faults of a deployment, made for real, and what cures each.

A function makes a fault and returns what follows the printed step; None
stands for typing what is printed. Only keystone is scripted. It is long
because each fault needs its own way in and out.
"""

from collections import abc
import contextlib
import dataclasses
import functools
import html
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import subprocess
import sys
import types
from typing import Any
import uuid

import fixtures as base_fixtures
from keystoneauth1 import loading
from nova.cmd import manage
from nova.compute import manager as compute_manager
from nova import context as nova_context
from nova.db.api import api as api_db
from nova import exception
from nova import objects
from oslo_utils import uuidutils
import sqlalchemy as sa
import testtools

from tests import commands
from tests import databases
from tests import fixtures
from tests import nova_server
from tests import patience
from tests import placed
from tests import placement_service
from tests.unit import servers

CONF = fixtures.CONF
PASSWORD = 'not-to-be-shown'
TOKENS = '/v3/auth/tokens'
STATUS, SYNC, ROWS, AGENT, API = 'status', 'sync', 'rows', 'agent', 'api'
REPORT, DIFF = 'report', 'diff'
WAIT, EXPLAIN, AUDIT = 'wait', 'explain', 'audit'
PLACES = STATUS, SYNC, ROWS, AGENT, API
MIRROR, JOURNAL = 'aggregate_mirror', 'aggregate_mirror_database'
SECTION = '  [%s]\n' % JOURNAL
REFUSED = 'mysql+pymysql://nova:%s@127.0.0.1:1/nova' % PASSWORD
MANAGE = 'nova-aggregate-mirror-manage '


class Scene:
    """A nova that placement mirrors, and its configuration."""

    def __init__(self, test: testtools.TestCase) -> None:
        self.test = test
        # Ignore the proxy settings of the machine that runs the tests.
        test.useFixture(base_fixtures.EnvironmentVariable(
            'no_proxy', '127.0.0.1'))
        account = loading.get_auth_plugin_conf_options('password')
        # After the configuration is reset: some of them are required.
        test.addCleanup(CONF.unregister_opts, account, group='placement')
        self.cloud = test.useFixture(fixtures.NovaAndPlacement())
        self.placement = self.cloud.placement
        test.useFixture(fixtures.MirroredNova())
        self.keystone = test.useFixture(servers.Cloud())
        self.keystone.token_id = placement_service.TOKEN
        self.catalog()
        CONF.register_opts(account, group='placement')
        self.folder = pathlib.Path(
            test.useFixture(base_fixtures.TempDir()).path)
        self.options: dict[tuple[str, str], Any] = {}
        self.set('DEFAULT', state_path=CONF.state_path)
        self.set('api_database', connection=str(api_db.get_engine().url))
        self.set('placement', **self.keystone.account(password=PASSWORD))
        self.set(MIRROR, inline_timeout=patience.seconds(5),
                 request_timeout=patience.seconds(30),
                 inline_backoff=0.0)
        self.rack = self.cloud.create_aggregate('rack')
        self.hosts = [self.member('host%d' % number) for number in range(12)]
        self.far = self.member('far', cell='cell2')
        self.changed = self.hosts[0]
        """The host that a user adds to an aggregate."""
        placed.create_flavor()
        self.other = ''
        """The URL of what answers in place of placement."""
        self.manage('placement', 'sync_aggregates')
        self.sound = dict(self.options)
        self.nova = test.useFixture(nova_server.NovaServer(self.cloud.nova))

    def answer(self, status: int, token: Any) -> None:
        """Let keystone answer this to the credentials."""
        self.keystone.answers[TOKENS] = status, token

    def catalog(self) -> None:
        """Let keystone answer with a token and the URL of placement."""
        self.answer(201, self.keystone.token(self.placement.url))

    def member(self, name: str, **options: Any) -> fixtures.Host:
        """Add a host to the aggregate, in nova only."""
        host = self.cloud.create_host(name, **options)
        for node in host.nodes:
            self.placement.set_inventories(
                node, VCPU=8, MEMORY_MB=1024, DISK_GB=100)
        self.aggregate().add_host(name)
        return host

    def aggregate(self) -> objects.Aggregate:
        return objects.Aggregate.get_by_uuid(
            nova_context.get_admin_context(), self.rack.uuid)

    def set(self, group: str, **options: Any) -> None:
        """Set options, for commands and for this process; None unsets one."""
        for name, value in options.items():
            self.options[group, name] = value
            if value is None:
                del self.options[group, name]
            # Nova's own databases are open here.
            if group in ('DEFAULT', 'api_database') or name not in CONF[group]:
                continue
            with contextlib.suppress(ValueError):
                self.cloud.nova.conf.config(group=group, **{name: value})
                if value is None:
                    CONF.clear_override(name, group)
        lines = ['[%s]\n%s = %s' % (*key, value)
                 for key, value in self.options.items()]
        (self.folder / 'nova.conf').write_text('\n'.join(lines))

    def restore(self) -> None:
        """Set the options as they were at first, and the catalog."""
        self.catalog()
        # Their names have the second.
        for folder in pathlib.Path(CONF.state_path).glob('*/broken-*'):
            shutil.rmtree(folder)
        self.keystone.secret, self.other = b'', ''
        self.changed = self.hosts[0]
        for group, name in {**self.options, **self.sound}:
            self.set(group, **{name: self.sound.get((group, name))})

    def run(self, module: str, *argv: str) -> Any:
        return commands.run(
            module, ['--config-file', str(self.folder / 'nova.conf'), *argv])

    def manage(self, *argv: str) -> str:
        return self.run(commands.MANAGE, *argv).stderr

    def status(self) -> dict[str, str]:
        """Return the details of the checks that fail.

        The scene has no agent, and a journal that is created again has no
        nova-api yet.
        """
        done = self.run(commands.STATUS, 'upgrade', 'check', '--json')
        failed = {row['check']: row['details']
                  for row in json.loads(done.stdout)['checks']
                  if row['result']}
        return {check: details for check, details in failed.items()
                if check not in ('Agent', 'Nova-api processes')
                and not details.startswith('Not checked: resolve')}

    def text(self, place: str) -> str:
        """Return what a place says."""
        if place == STATUS:
            return '\n'.join(self.status().values())
        if place == SYNC:
            return self.manage('placement', 'sync_aggregates', '--dry-run',
                               '--quiet', '--prune')
        if place == REPORT:
            done = self.run(commands.MANAGE, 'report', '--quiet', '--html',
                            '-')
            lines = re.findall('<h1.*|<li class="f">.*', done.stdout)
            shown = re.sub(r'<[^>\n]*>', '', '\n'.join(lines))
            return done.stderr + html.unescape(shown)
        if place == DIFF:
            return self.diff()
        if place == ROWS:
            return self.manage('journal', 'list')
        if place == WAIT:
            return self.wait()
        if place == EXPLAIN:
            return self.explain()
        if place == AUDIT:
            return self.manage('placement', 'audit_servers', '--quiet')
        if place == API:
            # A nova-api that has just started.
            with fixtures.MirroredNova():
                self.test.assertEqual(200, self.cloud.add_host(
                    self.cloud.create_aggregate(uuidutils.generate_uuid()),
                    self.changed).status)
            return '\n'.join(self.cloud.warnings())
        del self.cloud._records[:]
        agent = fixtures.Agent()
        agent.sync()
        return '\n'.join([*self.cloud.warnings(),
                          'result=%s' % agent.figures.last_sync])

    def wait(self) -> str:
        """Wait for the hosts of the aggregate.

        Why a provider is missing is asked last; until then, it has no step.
        One second is enough, unless the machine is busy.
        """
        hosts = ['--host=' + host for host in self.aggregate().hosts]
        text = ''
        for limit in '1', '%d' % patience.seconds(30):
            text = self.manage('placement', 'wait', '--timeout', limit, *hosts)
            if 'did not answer in time' not in text:
                break
        return re.sub('(?m)^Host .* has no resource provider yet\n', '', text)

    def explain(self) -> str:
        """Return remarks, notes, and reason and step for each host."""
        done = self.run(commands.MANAGE, 'scheduling', 'explain', '--flavor',
                        'm1.small', '--format', 'json')
        if not done.stdout:
            return done.stderr
        answer = json.loads(done.stdout)
        for host in answer['hosts']:
            host['detail'] = host['detail'] and ' (%(detail)s)' % host
        hosts = ['%(host)s: %(reason)s%(detail)s: %(step)s' % host
                 for host in answer['hosts']]
        return '\n'.join(
            [done.stderr, *answer['remarks'], *answer['notes'], *hosts])

    def diff(self) -> str:
        """Compare as an operator who has the account, and only the APIs."""
        auth = {name: value for (group, name), value in self.options.items()
                if group == 'placement'}
        cloud = {'auth': auth, 'interface': 'internal',
                 'compute_endpoint_override': self.nova.url, **{
                     name: auth.pop(option) for name, option in (
                         ('auth_type', 'auth_type'), ('cacert', 'cafile'),
                         ('interface', 'valid_interfaces'),
                         ('placement_endpoint_override', 'endpoint_override'),
                         ('region_name', 'region_name')) if option in auth}}
        (self.folder / 'clouds.yaml').write_text(
            json.dumps({'clouds': {'test': cloud}}))
        done = commands.run(
            commands.OPENSTACK, [
                '--os-cloud', 'test', 'aggregate', 'mirror', 'diff'],
            {**os.environ, 'OS_CLIENT_CONFIG_FILE': str(
                self.folder / 'clouds.yaml')}, self.folder)
        return done.stdout + done.stderr

    def type(self, text: str) -> None:
        """Run the printed commands, and set the printed options."""
        group = ''
        for line in re.findall(
                '(?m)^  (.*)|"(openstack role .*|nova-manage cell.*?)"', text):
            line = ''.join(line)
            if line.startswith('['):
                group = line.strip('[]')
            elif ' = ' in line:
                name, value = line.split(' = ')
                self.set(group, **{name: value})
            elif line.startswith(MANAGE):
                self.manage(*line.split()[1:])
            elif line.startswith('nova-manage cell_v2 '):
                self.map_hosts(line)
            elif line == 'openstack role add --project %s --user %s %s' % (
                    'service', self.options['placement', 'username'],
                    'service'):
                # Placement has no policy that keystone's role satisfies.
                self.placement.recover()
            elif line.startswith(('mkdir ', 'mv ')):
                subprocess.run(line, shell=True, check=True)

    def force_removals(self, text: str) -> None:
        """Run a sync as the text says for removals that are right."""
        options, = re.findall('run a sync with "(.*?)"', text)
        self.manage('placement', 'sync_aggregates', *options.split())

    def map_hosts(self, line: str) -> None:
        """Run a command of nova in this process."""
        name, *argv = line.split()[2:]
        options = {option[2:]: value for option, value
                   in zip(argv[::2], argv[1::2])}
        if argv == ['--by-service']:
            options = {'by_service': True}
        self.test.assertIn(
            getattr(manage.CellV2Commands(), name)(**options), (0, None))


Step = abc.Callable[[str], Any]
Make = abc.Callable[[Scene], Step | None]


def placement(act: abc.Callable[[placement_service.PlacementService], Any]
              ) -> Make:
    def make(scene: Scene) -> Step:
        # Something to write.
        scene.placement.set_aggregates(scene.hosts[1].nodes[0], [])
        act(scene.placement)
        return lambda _text: scene.placement.recover()
    return make


def keystone(status: int, token: Any = None) -> Make:
    def make(scene: Scene) -> Step:
        before = scene.keystone.answers[TOKENS]
        scene.answer(status, token or {'error': {'message': PASSWORD}})
        return lambda _text: scene.answer(*before)
    return make


def another_password(scene: Scene) -> Step:
    scene.keystone.secret = b'"password": "another one"'
    return lambda _text: scene.set('placement', password='another one')


def another_secret(scene: Scene) -> Step:
    """Let the application credential expire."""
    scene.keystone.secret = b'"secret": "second"'
    scene.set('placement', auth_type='v3applicationcredential',
              application_credential_id='first',
              application_credential_secret=PASSWORD)
    return lambda _text: scene.set(
        'placement', application_credential_id='another',
        application_credential_secret='second')


def secret_without_role(scene: Scene) -> Step:
    """Let the application credential have another role."""
    another_secret(scene)
    scene.keystone.secret = b''
    without_role(scene)

    def renew(_text: str) -> None:
        scene.keystone.secret = b'"secret": "second"'
        scene.set('placement', application_credential_id='another',
                  application_credential_secret='second')
        scene.placement.recover()
    return renew


def without_role(scene: Scene) -> None:
    refused = placement(lambda service: service.refuse_role(('PUT',)))
    refused(scene)


IMPATIENT = {'inline_timeout': patience.seconds(1),
             'request_timeout': patience.seconds(4)}
"""Options while a service is silent."""


def silent_placement(scene: Scene) -> Step:
    scene.set(MIRROR, **IMPATIENT)
    recover = placement(lambda service: service.hang())(scene)

    def follow(text: str) -> None:
        recover(text)
        scene.restore()

    return follow


def silent_keystone(scene: Scene) -> Step:
    scene.set(MIRROR, **IMPATIENT)
    scene.keystone.hanging.add(TOKENS)

    def follow(_text: str) -> None:
        scene.keystone.hanging.clear()
        scene.restore()

    return follow


def proxy(scene: Scene) -> Step:
    """Let the environment have a proxy that does not run."""
    for name, value in {'http_proxy': 'http://127.0.0.1:1', 'no_proxy': '',
                        'NO_PROXY': ''}.items():
        scene.test.useFixture(base_fixtures.EnvironmentVariable(name, value))
    return lambda _text: os.environ.update(no_proxy='127.0.0.1')


def unscoped(scene: Scene) -> Step:
    token = scene.keystone.token(scene.placement.url)
    del token['token']['catalog']
    recover = keystone(201, token)(scene)
    scene.set('placement', project_name=None, project_domain_name=None)
    return recover


def option(group: str, **values: Any) -> Make:
    """Set options; the printed lines correct them."""
    return lambda scene: scene.set(group, **values)


def restored(group: str, **values: Any) -> Make:
    """Set options; a person has to know what is right."""
    def make(scene: Scene) -> Step:
        scene.set(group, **values)
        return lambda _text: scene.restore()
    return make


def relay(scene: Scene, change: abc.Callable[[bytes], bytes],
          tls: ssl.SSLContext | None = None) -> str:
    """Return the URL of a server that relays to placement."""
    address = scene.placement.url.rpartition('/')[2].split(':')

    def exchange(_server: servers.Server, client: socket.socket) -> None:
        request = b''
        while b'\r\n\r\n' not in request:
            request += client.recv(65536)
        head, _, body = request.partition(b'\r\n\r\n')
        length = re.search(rb'(?i)content-length: (\d+)', head)
        while length and len(body) < int(length[1]):
            body += client.recv(65536)
        with socket.create_connection((address[0], int(address[1]))) as peer:
            head = re.sub(b'(?i)keep-alive', b'close', head)
            peer.sendall(change(b'%s\r\n\r\n%s' % (head, body)))
            answer = b''.join(iter(functools.partial(peer.recv, 65536), b''))
        client.sendall(change(answer))

    return scene.test.useFixture(servers.Server(exchange, tls=tls)).url[:-1]


def encrypted(scene: Scene, **options: Any) -> tuple[ssl.SSLContext, str]:
    """Let the endpoint of placement have a certificate."""
    context, path = servers.certificate(scene.folder, **options)
    scene.other = relay(scene, lambda text: text, context)
    scene.answer(201, scene.keystone.token(scene.other))
    return context, path


def certificate(scene: Scene) -> Step:
    _context, path = encrypted(scene)

    def follow(text: str) -> None:
        name, group = re.findall(r'set (\w+) of \[(\w+)\]', text)[0]
        scene.set(group, **{name: path})
    return follow


def expired(scene: Scene) -> Step:
    context, path = encrypted(scene, days=-1)
    scene.set('placement', cafile=path)
    return lambda _text: context.load_cert_chain(
        servers.certificate(scene.folder)[1])


def misnamed(scene: Scene) -> Step:
    """Let the catalog have an address that the certificate is not for."""
    _context, path = encrypted(scene, host='localhost')
    scene.set('placement', cafile=path)
    return lambda _text: scene.answer(201, scene.keystone.token(
        scene.other.replace('127.0.0.1', 'localhost')))


def page(scene: Scene) -> Step:
    """Let the catalog have the URL of a web server."""
    web = scene.test.useFixture(servers.Cloud())
    web.answers, web.content_type = {'/': (200, b'<html>')}, 'text/html'
    scene.other = web.url
    scene.answer(201, scene.keystone.token(web.url))
    return lambda _text: scene.catalog()


def distrusted(scene: Scene) -> Step:
    """Let placement ask another keystone, which does not know the tokens."""
    other = scene.test.useFixture(servers.Cloud())
    other.answers['GET ' + TOKENS] = 404, {}
    scene.placement.authenticate(other.url + '/v3')
    return lambda _text: scene.placement.authenticate(
        scene.keystone.url + '/v3')


def journal(scene: Scene, kind: str = 'mysql') -> sa.engine.URL:
    """Use a journal on a server."""
    url = databases.create(scene.test, kind)
    scene.set(JOURNAL, connection=url)
    scene.manage('db', 'sync')
    return sa.engine.make_url(url)


def connection(scene: Scene, url: sa.engine.URL) -> None:
    scene.set(JOURNAL, connection=url.render_as_string(hide_password=False))


def moved(**change: Any) -> Make:
    """Change the URL of the journal."""
    def make(scene: Scene) -> Step:
        url = journal(scene)
        connection(scene, url.set(**change))
        return lambda _text: connection(scene, url)
    return make


def driven(driver: str) -> Make:
    """Use a driver that cannot be used."""
    def make(scene: Scene) -> Step:
        url = journal(scene)
        connection(scene, url.set(drivername=driver))

        def follow(text: str) -> None:
            name = re.findall('begin with (.*?)://', text)[0]
            connection(scene, url.set(drivername=name))
        return follow
    return make


def without_tables(scene: Scene) -> None:
    scene.set(JOURNAL, connection=databases.create(scene.test, 'postgresql'))


def reader(scene: Scene) -> Step:
    """Use the journal as a user who may only read."""
    url, admin = journal(scene), databases.find('mysql')
    user = "'%s'@'127.0.0.1'" % url.database[-12:]
    databases.execute(
        admin, 'CREATE USER %s IDENTIFIED BY \'%s\'' % (user, PASSWORD),
        'GRANT SELECT ON %s.* TO %s' % (url.database, user))
    scene.test.addCleanup(databases.execute, admin, 'DROP USER ' + user)
    connection(scene, url.set(username=url.database[-12:], password=PASSWORD))
    return lambda _text: databases.execute(
        admin, 'GRANT ALL ON %s.* TO %s' % (url.database, user))


def wrong_password(scene: Scene) -> Step:
    reader(scene)('')
    url = sa.engine.make_url(scene.options[JOURNAL, 'connection'])
    connection(scene, url.set(password='x' + PASSWORD))
    return lambda _text: connection(scene, url)


def replica(scene: Scene) -> Step:
    url = journal(scene, 'postgresql')
    databases.execute(
        url.render_as_string(hide_password=False), 'ALTER DATABASE %s SET '
        'default_transaction_read_only = on' % url.database)
    return lambda _text: journal(scene, 'postgresql')


def altered(*statements: str) -> Make:
    """Change the database; another one is used, or it is created again."""
    def make(scene: Scene) -> Step:
        url = journal(scene)
        text = url.render_as_string(hide_password=False)
        databases.execute(text, *statements)

        def follow(printed: str) -> None:
            if SECTION in printed:
                text = databases.create(scene.test, 'mysql')
                scene.set(JOURNAL, connection=text)
                printed = printed.partition(SECTION)[2].partition('\n')[2]
            else:
                databases.execute(databases.find('mysql'), *(
                    verb % url.database for verb in (
                        'DROP DATABASE %s', 'CREATE DATABASE %s')))
                scene.manage('db', 'sync')
            scene.type(printed)
        return follow
    return make


def foreign(scene: Scene) -> Step:
    """Let the journal belong to a nova with other cells and aggregates."""
    url = journal(scene).render_as_string(hide_password=False)
    databases.execute(
        url, 'INSERT INTO cells (cell_uuid) VALUES (\'%s\')'
        % uuidutils.generate_uuid(),
        'INSERT INTO ledger (aggregate_uuid, created_at) VALUES (\'%s\', 0)'
        % uuidutils.generate_uuid())

    def follow(text: str) -> None:
        command, = re.findall('run "%s(.*?)"' % MANAGE, text)
        scene.manage(*command.split())
    return follow


def journal_file(scene: Scene) -> pathlib.Path:
    """Create the journal's tables in its file."""
    scene.manage('db', 'sync')
    path = pathlib.Path(CONF.state_path, 'aggregate_mirror/journal.sqlite')
    scene.test.assertTrue(path.exists())
    return path


def wiki_file(scene: Scene) -> Step:
    """Use the file of another program."""
    url = 'sqlite:///%s' % (scene.folder / 'wiki.sqlite')
    databases.execute(url, 'CREATE TABLE pages (id INTEGER)')
    scene.set(JOURNAL, connection=url)
    return lambda _text: scene.restore()


def damaged(scene: Scene) -> None:
    path = journal_file(scene)
    for file in path.parent.iterdir():
        file.unlink()
    path.write_bytes(b'no database any more' * 999)


def without_nova(scene: Scene) -> Step:
    """Use an API database that nothing has been written to."""
    path = scene.folder / 'api.sqlite'
    scene.set('api_database', connection='sqlite:///%s' % path)

    def follow(text: str) -> None:
        line, = re.findall('run "(nova-manage .*?)"', text)
        program, *argv = line.split()
        subprocess.run(
            [pathlib.Path(sys.executable).with_name(program), '--config-file',
             scene.folder / 'nova.conf', *argv], check=True)
        scene.test.assertNotIn('lacks the table', scene.text(STATUS))
        # It has no aggregates: a person would restore the database.
        scene.restore()
    return follow


def cell(scene: Scene) -> Step:
    mapping, scene.changed = scene.cloud.nova.cell('cell2'), scene.far
    before = mapping.database_connection

    def connect(url: str) -> None:
        mapping.database_connection = url
        mapping.save()
    connect(REFUSED)
    return lambda _text: connect(before)


def unmapped(scene: Scene) -> None:
    objects.HostMapping.get_by_host(
        nova_context.get_admin_context(), 'host1').destroy()


def without_provider(scene: Scene) -> Step:
    scene.placement.delete_provider(scene.hosts[1].nodes[0])
    # Nova-compute does this when it starts.
    return lambda _text: scene.cloud.create_providers(scene.hosts[1])


def reinstalled(scene: Scene) -> Step:
    """Let another provider have the name."""
    create = without_provider(scene)
    scene.placement.create_provider(uuidutils.generate_uuid(), 'host1')

    def follow(text: str) -> None:
        (name, uuid), = re.findall(
            'resource provider set --name (\\S+) ([0-9a-f-]+)"', text)
        scene.placement.rename_provider(uuid, name)
        create(text)
        scene.placement.delete_provider(uuid)
    return follow


def destroy(scene: Scene, host: str) -> None:
    with scene.cloud.nova.in_cell('cell1') as target:
        for node in objects.ComputeNodeList.get_all_by_host(target, host):
            node.destroy()


def without_node(scene: Scene) -> Step:
    destroy(scene, 'host2')
    scene.placement.delete_provider(scene.hosts[2].nodes[0])
    return lambda _text: scene.placement.create_provider(
        scene.cloud.nova.create_node('host2', 0, 'cell1'), 'host2')


def retired(scene: Scene) -> Step:
    host = scene.member('retired')
    destroy(scene, host.name)
    with scene.cloud.nova.in_cell('cell1') as target:
        objects.Service.get_by_compute_host(target, host.name).destroy()

    def follow(_text: str) -> None:
        scene.test.assertEqual(404, scene.cloud.remove_host(
            scene.rack, host).status)
        scene.aggregate().delete_host(host.name)
    return follow


def rename(scene: Scene, old: str, new: str) -> fixtures.Host:
    """Let nova-compute of a host have another name."""
    host = scene.member(old)
    with scene.cloud.nova.in_cell('cell1') as target:
        service = objects.Service.get_by_compute_host(target, old)
        [node] = objects.ComputeNodeList.get_all_by_host(target, old)
        service.host = node.host = new
        node.mapped = 1
        service.save()
        node.save()
    return host


def renamed(scene: Scene) -> Step:
    name = 'short.example.org'
    host = rename(scene, 'short', name)

    def follow(text: str) -> None:
        url = str(api_db.get_engine().url)
        databases.execute(url, 'UPDATE aggregate_hosts SET host = \'%s\' '
                          'WHERE host = \'short\'' % name)
        scene.type(text)
        scene.test.assertEqual(200, scene.cloud.remove_host(
            scene.rack, dataclasses.replace(host, name=name)).status)
    return follow


def renamed_with_servers(scene: Scene) -> Step:
    """Give the old name back: by its option alone, nova-compute refuses it."""
    new = 'old.example.org'
    host = rename(scene, 'old', new)

    def start() -> None:
        with scene.cloud.nova.in_cell('cell1') as target:
            node = objects.ComputeNode.get_by_uuid(target, host.nodes[0])
        compute_manager.ComputeManager._check_for_host_rename(
            types.SimpleNamespace(host='old'), {node.uuid: node})

    def follow(text: str) -> None:
        scene.test.assertRaises(exception.InvalidConfiguration, start)
        found = re.search(r'tables (\w+), (\w+) and, .*?, (\w+),', text)
        for table in found.groups():
            databases.execute(
                'sqlite:///%s' % pathlib.Path(CONF.state_path, 'cell1.sqlite'),
                'UPDATE %s SET host = \'old\' WHERE host = \'%s\''
                % (table, new))
        start()
        scene.test.assertEqual(
            200, scene.cloud.remove_host(scene.rack, host).status)
    return follow


def other_cell(scene: Scene) -> Step:
    """Let the mapping of a host lead to another cell."""
    host = scene.hosts[1]
    context = nova_context.get_admin_context()
    mapping = objects.HostMapping.get_by_host(context, host.name)
    mapping.cell_mapping = scene.cloud.nova.cell('cell2')
    mapping.save()
    with scene.cloud.nova.in_cell('cell1') as target:
        [node] = objects.ComputeNodeList.get_all_by_host(target, host.name)
        node.mapped = 1
        node.save()

    def follow(text: str) -> None:
        scene.test.assertEqual(404, scene.cloud.remove_host(
            scene.rack, host).status)
        scene.type(text)
        for act in scene.cloud.remove_host, scene.cloud.add_host:
            scene.test.assertEqual(200, act(scene.rack, host).status)
    return follow


def drift(scene: Scene) -> None:
    scene.placement.set_aggregates(scene.hosts[7].nodes[0], [])


def removed(scene: Scene) -> Step:
    for host in scene.aggregate().hosts[1:]:
        scene.aggregate().delete_host(host)
    return lambda text: scene.force_removals(text)


def two_cells(scene: Scene) -> Step:
    twin = scene.cloud.create_host('twin', nodes=0, cell='cell2')
    node = scene.cloud.nova.create_node('twin', 0, 'cell2')
    path = pathlib.Path(CONF.state_path, 'cell2.sqlite')
    [other] = scene.hosts[5].nodes
    databases.execute(
        'sqlite:///%s' % path, 'UPDATE compute_nodes SET uuid = \'%s\' '
        'WHERE uuid = \'%s\'' % (other, node))

    def follow(_text: str) -> None:
        scene.test.assertEqual(204, scene.cloud.delete_service(twin))
        scene.cloud.create_providers(scene.hosts[5])
    return follow


def rebuilt(scene: Scene) -> Step:
    nodes = scene.cloud.nova.nodes()
    for node in nodes:
        scene.placement.delete_provider(node)

    def follow(_text: str) -> None:
        # Each nova-compute does this when it starts.
        for node, host in nodes.items():
            scene.placement.create_provider(node, host)
    return follow


def other_placement(scene: Scene) -> Step:
    """Use a placement whose providers have other UUIDs."""
    def reverse(match: re.Match[bytes]) -> bytes:
        digits = match[0].decode().replace('-', '')[::-1]
        return str(uuid.UUID(digits)).encode()

    def change(text: bytes) -> bytes:
        return re.sub(
            rb'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}', reverse, text)
    scene.other = relay(scene, change)
    return restored('placement', endpoint_override=scene.other)(scene)
