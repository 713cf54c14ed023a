# SPDX-License-Identifier: Apache-2.0
"""What a party can do instead of what it was asked, each with one next step.

A party is a service, a database or a cell. This is the only place that says
what an operator does about it; a check may add the commands to copy. It is
long because it is one table.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Party:
    """Who is asked, and the options that decide about the request.

    :param name: what messages call it
    :param server: what to start, and whose log to read
    :param address: where its URL is
    :param account: where user and password are
    :param auth_url: where the URL of keystone is
    :param selection: the options that select an endpoint of the catalog
    :param project: what to add for a token with a catalog
    :param tokens: where the service gets its keystone from
    :param role: how the account gets its role
    :param cafile: the option with the authorities of certificates
    :param schema: how it gets its tables and columns
    """

    name: str
    server: str
    address: str
    account: str
    auth_url: str = ''
    selection: str = ''
    project: str = ''
    tokens: str = ''
    role: str = ''
    cafile: str = ''
    schema: str = ''


@dataclasses.dataclass(frozen=True)
class Cause:
    """A row of the table.

    :param kind: stable name for programs
    :param phrase: what the party did, after its name
    :param step: what to do next, with attributes of ``Party`` in braces
    """

    kind: str
    phrase: str
    step: str = ''

    def with_detail(self, detail: object) -> 'Cause':
        """Return the row with a detail in its phrase."""
        return dataclasses.replace(self, phrase=self.phrase % detail)

    def with_step(self, detail: object) -> 'Cause':
        """Return the row with a detail in its step."""
        literal = str(detail).replace('{', '{{').replace('}', '}}')
        return dataclasses.replace(self, step=self.step % literal)

    def in_call(self) -> 'Cause':
        """Return the row for a request to nova-api that has no time left."""
        return dataclasses.replace(self, step='raise [aggregate_mirror] '
                                   'inline_timeout to do more within a call')

    def step_for(self, party: Party) -> str:
        """Return the next step for a party."""
        return self.step.format_map(vars(party))


def _log(kind: str, phrase: str) -> Cause:
    """Return a row whose next step is to see the log of the party."""
    return Cause(kind, phrase, 'see the log of {server}')


# Connections, to services and to databases.
REFUSED = Cause('connection_refused', 'refused the connection', 'start '
                '{server}; if it runs, correct host and port in {address}')
UNRESOLVED = Cause('name_unresolved', 'has a host name that does not resolve',
                   'correct the host in {address}; if it is right, repair the '
                   'name resolution of this host')
UNREACHABLE = Cause('unreachable', 'could not be reached: %s',
                    'let this host reach the host in {address}')
DISCONNECTED = _log('disconnected', 'closed the connection without an answer')
_WAITING = 'see in the log of {server} what it waits for'
_SILENT = Cause('silent', 'was silent%s', _WAITING)
NO_CONNECTION = Cause(
    'no_connection', 'accepted no connection for %.1f s',
    'let this host reach host and port in {address}, through each firewall')
TLS = Cause('tls_failed', 'failed the TLS handshake%s',
            'let {address} agree with the TLS settings of {server}')
_CERTIFICATE = Cause('certificate_refused', 'has a certificate that is not '
                     'accepted: %s', 'renew the certificate')
_AUTHORITY = 'set {cafile} to the file of the authority that signed it'
_OTHER_NAME = ('let its certificate have that name; if {address} should have '
               'another host, correct it')
_CERTIFICATES = {9: 'correct the clock of this host',
                 **dict.fromkeys((2, 18, 19, 20, 21), _AUTHORITY),
                 **dict.fromkeys((62, 64), _OTHER_NAME)}
"""Steps by OpenSSL's codes."""
PROXY = Cause('proxy_failed', 'is behind the proxy %s, which %s',
              'if this host reaches {address} without a proxy, name its host '
              'in no_proxy; otherwise correct %s; both in the environment of '
              'this process')
DESCRIPTORS = Cause(
    'no_descriptor', 'was not asked: this process has too many open files',
    'raise the limit of open files of this process')
FILE = Cause('file_unusable', 'cannot use %s: %s',
             'let this process create and use that path, or correct {address}')
# Answers of services.
LOGIN = Cause('login_refused', 'refused the credentials with 401',
              'correct {account}')
TOKEN = Cause('token_refused', '%s', '{tokens}')
ROLE = Cause('role_missing', '%s', '{role}')
NO_ENDPOINT = Cause('no_endpoint', 'has no endpoint in the catalog%s',
                    'correct {selection}')
NOT_IN_CATALOG = Cause('not_in_catalog', 'is not in the catalog', 'register '
                       'it: "openstack service create" if "openstack service '
                       'list" lacks it, then "openstack endpoint create"')
NO_CATALOG = Cause('no_catalog', 'has no endpoint, because the token has no '
                   'catalog', 'add {project}')
ANSWERED = _log('answered', '%s')
NO_BACKEND = Cause('no_backend', '%s', 'start {server} behind that address; '
                   'if it runs, see its log')
_ANOTHER = 'correct {address}; if it is right, let {server} answer there'
WRONG_ADDRESS = Cause('wrong_address', '%s', _ANOTHER)
UNUSABLE = Cause('unusable_answer', '%s, which cannot be used', _ANOTHER)
MALFORMED = Cause('malformed_answer', 'sent %s', _ANOTHER)
UNASKED = Cause('failed', 'could not be asked: %s', 'correct {address}')
TRUNCATED = _log('truncated_answer', 'sent an incomplete body')
UNDECODABLE = _log('undecodable_answer', 'sent a body that cannot be decoded')
NOT_HTTP = Cause('not_http', 'sent an answer that is not HTTP',
                 'correct scheme and port in {address}')
REDIRECTS = Cause('redirected', 'redirected too many times',
                  'correct {address}')
SLOW = Cause('slow', 'did not answer in time: %.1f s for all requests',
             _WAITING)
NO_PROVIDER = Cause('provider_not_found', '%s')
CHANGED = Cause('generation_conflict', '%s')
CONFIGURATION = Cause('invalid_configuration', 'cannot be asked: %s',
                      'correct {address}')
STATUS_UNKNOWN = _log('cell_down', 'reports status UNKNOWN for %s')
UNLISTED = Cause('node_unlisted', 'no longer lists %s', 'run this again')
OUT_OF_TIME = Cause('out_of_time', 'was not waited for: no time is left')
# Databases.
PASSWORD = Cause('password_refused', 'refused the user or the password',
                 'correct {account}; if they are right, let that user connect '
                 'from this host')
ABSENT = Cause('no_database', 'is on a server that has no database of that '
               'name', 'correct its name in {address}; if it is right, create '
               'the database, and {schema}')
READ_ONLY = Cause('read_only', 'is read-only', 'let it accept writes or, if '
                  'it is a replica, set the host in {address} to its primary')
RIGHTS = Cause('right_missing', 'refused the user a right that is required',
               'grant all rights on the database to the user in {address}')
FULL = Cause('no_space', 'has no space left', 'make room on {server}')
CROWDED = Cause('too_many_connections', 'has too many connections',
                'raise max_connections on {server}')
CROWDED_BY_USER = Cause(
    'too_many_connections_of_user', 'has too many connections of the user',
    'raise max_user_connections on {server}')
CROWDED_DATABASE = Cause(
    'too_many_connections_to_database', 'has too many connections to the '
    'database', 'raise the connection limit of the database')
USED_UP = Cause('user_limit', 'refused the user, whose %s is used up',
                'on {server}, raise that limit of the user in {address}')
HOST = Cause('host_refused', 'does not let the user connect from this host',
             'on {server}, let the user in {address} connect from this host')
BLOCKED = Cause(
    'host_blocked', 'blocks this host after many connections that failed',
    'run "mysqladmin flush-hosts" on {server}')
STARTING = _log('not_accepting', 'does not accept connections now')
CLOSED = _log('connection_closed', 'closed the connection')
STOPPED_STATEMENT = _log('statement_ended',
                         'ended a statement that took too long')
TABLE = Cause('table_missing', 'lacks a table', 'correct the name of the '
              'database in {address}; if it is right, {schema}')
COLUMN = Cause('column_missing', 'lacks a column', '{schema}')
_BOUNDED = ('let {address} begin with mysql+pymysql:// for MySQL or MariaDB; '
            'for PostgreSQL, with postgresql+psycopg2:// or '
            'postgresql+psycopg://, whichever is installed')
"""With other drivers, the wait for a server has no limit."""
DRIVERLESS = Cause(
    'driver_unknown', 'has a driver that SQLAlchemy does not know', _BOUNDED)
_MODULE = Cause('driver_missing', 'needs the Python module %s, which is not '
                'installed', _BOUNDED)
_DRIVERS = ('pymysql', 'psycopg2', 'psycopg')
_URL = Cause('url_unusable', 'has a URL that the driver %s cannot use%s',
             'correct {address}')
LOCKED = Cause('locked', 'is locked by another session',
               'see which session holds the lock on {server}')
NOT_ASKED = Cause('not_asked', 'was not asked: no time is left')
NOT_ASKED_FURTHER = Cause('not_asked', 'was not asked further: no time is '
                          'left for the rest of the transaction')
POOL = Cause('pool_exhausted', 'was not asked: each connection that this '
             'process may open is in use',
             'raise max_overflow in the section of {address}')
# An SQLite file.
FILE_FAILED = Cause('failed', 'failed: %s')
FAILED = _log('failed', 'failed: %s')
MOVE = 'move %s* to another directory, and restart nova-api and the agent'
"""The step for an SQLite journal that nothing repairs: nova-api creates one,
and the next full sync mirrors what was to be mirrored."""
FILE_FULL = Cause('no_space', 'has no space left', 'make room in %s')
FILE_DENIED = Cause('access_denied', 'cannot use %s: Permission denied',
                    'run "chmod u+rwX %s"')
FILE_OF_ANOTHER = Cause('access_denied', 'cannot use %s: Permission denied',
                        'run this as its owner, user %s')
FILE_LOCKED = Cause('locked', 'is locked by another process',
                    'find it with "fuser -v %s"')
FILE_DAMAGED = Cause('damaged', 'is not an SQLite database, or is damaged',
                     MOVE)
IO_ERROR = Cause('io_error', 'had an I/O error in %s',
                 'see the kernel log of this host')


def catalog(service: str) -> str:
    """Return where the URL of a service is that no option has."""
    return 'the URL of %s in the catalog' % service


def tokens(service: str) -> str:
    """Return the step for a service that asks another keystone."""
    return ('let auth_url of [keystone_authtoken] in {0}.conf name the same '
            'keystone, and restart {0}; if it does already, see the log of '
            '{0}'.format(service))


def openstack_client(service: str, role: str = 'give your user a role that '
                     'may do this') -> Party:
    """Return a service that the openstack client asks with its options."""
    option = '%s of the openstack client (OS_%s, or in clouds.yaml)'
    return Party(
        service, service, catalog(service),
        account=option % ('the account', 'USERNAME and OS_PASSWORD'),
        auth_url=option % ('auth_url', 'AUTH_URL'),
        selection=option % (
            'region or interface', 'REGION_NAME and OS_INTERFACE'),
        project=option % (
            'a project', 'PROJECT_NAME and OS_PROJECT_DOMAIN_NAME'),
        # The token may have been given, and be old.
        tokens='unless your token has expired, ' + tokens(service),
        role=role, cafile='OS_CACERT')


def keystone(party: Party) -> Party:
    """Return keystone, as the requests to a service need it."""
    return dataclasses.replace(
        party, name='keystone', server='keystone', address=party.auth_url)


def database(name: str, option: str, schema: str) -> Party:
    """Return a database whose URL is in an option."""
    return Party(
        name, 'the database server', option,
        account='user and password in ' + option,
        cafile='the parameter for the authority in ' + option, schema=schema)


def cell(name: str, mapping: str = '') -> Party:
    """Return the database of a cell.

    :param mapping: the URL in its mapping; a template has places in braces
    """
    option = 'database_connection of the cell mapping'
    if '{' in mapping:
        option = ('[database] connection, which fills in the URL of the cell '
                  'mapping')
    # Without update_cell, which sets from nova.conf what it is not given.
    return database(
        'the database of cell ' + name, option, 'run "nova-manage db sync"')


def lacking(cause: Cause, name: str) -> Cause:
    """Return the row for a table or a column whose name is known."""
    return dataclasses.replace(cause, phrase='lacks the ' + name)


def not_again(cause: Cause) -> Cause:
    """Return the row for a back-off after what a party did."""
    return dataclasses.replace(
        cause, phrase='is not tried again yet: it ' + cause.phrase)


def module_missing(name: str) -> Cause:
    """Return the row for a Python module that is not installed."""
    cause = _MODULE.with_detail(name)
    step = 'install the package %s in this Python environment' % name
    return dataclasses.replace(cause, step=step) if name in _DRIVERS else cause


def url_unusable(driver: str, parameters: str, reason: str) -> Cause:
    """Return the row for a URL; the parameters are what follows ``?``."""
    cause = _URL.with_detail((driver, reason and ': ' + reason))
    if not parameters:
        return cause
    return dataclasses.replace(
        cause, step='correct or remove %s in {address}').with_step(parameters)


def certificate_refused(code: int, reason: str) -> Cause:
    """Return the row for a certificate, by OpenSSL's code."""
    cause = _CERTIFICATE.with_detail(reason)
    return dataclasses.replace(cause, step=_CERTIFICATES.get(code, cause.step))


def silent(seconds: float) -> Cause:
    """Return the row for a wait; 0 if it was not measured."""
    return _SILENT.with_detail(' for %.1f s' % seconds if seconds else '')
