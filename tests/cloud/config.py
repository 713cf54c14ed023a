# SPDX-License-Identifier: Apache-2.0
"""The configuration files of the cloud's three services."""

from collections.abc import Mapping
import configparser
import dataclasses
import pathlib
import sys

REGION = 'RegionOne'

Options = Mapping[str, Mapping[str, str | None]]


@dataclasses.dataclass(frozen=True)
class Config:
    """The location of everything: a directory, four ports, a password.

    :param directory: everything the cloud writes is below it
    :param database: ``sqlite``, or the URL of a server with a prefix of
        database names, as in mysql+pymysql:

    root@127.0.0.1/demo_; the empty databases with this prefix and
    ``keystone``, ``placement``, ``nova_api``, ``nova_cell0`` and ``nova`` have
    to exist

    :param nova_options: added to nova.conf, by section and option
    """

    directory: pathlib.Path
    database: str
    password: str
    keystone_port: int
    placement_port: int
    nova_port: int
    metrics_port: int
    nova_options: Options = dataclasses.field(default_factory=dict)

    @property
    def auth_url(self) -> str:
        return 'http://127.0.0.1:%s/v3' % self.keystone_port

    @property
    def placement_url(self) -> str:
        return 'http://127.0.0.1:%s' % self.placement_port

    @property
    def nova_url(self) -> str:
        return 'http://127.0.0.1:%s/v2.1' % self.nova_port

    def database_url(self, name: str) -> str:
        """Return the SQLAlchemy URL of a service's database."""
        if self.database == 'sqlite':
            return 'sqlite:///%s/%s.sqlite' % (self.directory, name)
        # For each connection that may use TLS, PyMySQL reads all certificates
        # of this machine.
        return '%s%s?charset=utf8mb4&ssl_disabled=true' % (self.database, name)

    def path(self, name: str) -> str:
        """Return the path of a file or folder of the cloud."""
        return str(self.directory / name)


def write(config: Config) -> None:
    """Write every configuration file of the cloud."""
    for folder in ('log', 'lock', 'state', 'fernet', 'credential'):
        (config.directory / folder).mkdir(mode=0o700, exist_ok=True)
    files = {'keystone.conf': _keystone(config),
             'placement.conf': _placement(config),
             'cell0.conf': {'database': database(config, 'nova_cell0')}}
    for name, options in files.items():
        write_file(config, name, options)
    write_nova(config, 'nova.conf', {})


def write_nova(config: Config, name: str, options: Options) -> None:
    """Write a configuration file of nova.

    :param options: added to the options of every nova of the cloud; None
        removes an option
    """
    merged = {section: dict(values)
              for section, values in _nova(config).items()}
    for section, values in (*config.nova_options.items(), *options.items()):
        merged.setdefault(section, {}).update(values)
    write_file(config, name, {
        section: {option: value for option, value in values.items()
                  if value is not None}
        for section, values in merged.items()})


def write_file(config: Config, name: str, options: Options) -> None:
    """Write a configuration file."""
    # A password may contain a percent sign: no interpolation.
    parser = configparser.RawConfigParser()
    parser.read_dict(options)
    with open(config.path(name), 'w') as output:
        parser.write(output)


def database(config: Config, name: str) -> dict[str, str]:
    """Return the options of a section that names a service's database."""
    # The cloud is temporary: nothing has to survive a power failure.
    return {'connection': config.database_url(name),
            'sqlite_synchronous': 'False'}


def account(config: Config, username: str) -> dict[str, str]:
    """Return the options of a section with a service's credentials."""
    return {'auth_type': 'password', 'auth_url': config.auth_url,
            'username': username, 'password': config.password,
            'user_domain_id': 'default', 'project_domain_id': 'default',
            'project_name': 'service', 'region_name': REGION}


def _keystone(config: Config) -> Options:
    return {
        'database': database(config, 'keystone'),
        'fernet_tokens': {'key_repository': config.path('fernet')},
        # They are not used, but their default path is below /etc.
        'fernet_receipts': {'key_repository': config.path('fernet')},
        'credential': {'key_repository': config.path('credential')},
        # The lowest cost of bcrypt: a login takes 0.2 s otherwise.
        'identity': {'password_hash_rounds': '4'},
    }


def _placement(config: Config) -> Options:
    return {
        'placement_database': database(config, 'placement'),
        'keystone_authtoken': account(config, 'placement'),
    }


def _nova(config: Config) -> Options:
    nova = account(config, 'nova')
    return {
        'DEFAULT': {
            'transport_url': 'fake:/',
            'state_path': config.path('state'),
            'my_ip': '127.0.0.1',
            'host': 'controller',
        },
        'api_database': database(config, 'nova_api'),
        'database': database(config, 'nova'),
        'keystone_authtoken': nova,
        'placement': nova,
        'service_user': {**nova, 'send_service_user_token': 'True'},
        'oslo_concurrency': {'lock_path': config.path('lock')},
        'aggregate_mirror': {'metrics_port': str(config.metrics_port)},
        # nova's wheel installs it there.
        'wsgi': {'api_paste_config': '%s/etc/nova/api-paste.ini' % sys.prefix},
    }
