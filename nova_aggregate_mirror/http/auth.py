# SPDX-License-Identifier: Apache-2.0
"""Authentication to a service with the options of its nova.conf section."""

from collections import abc
import contextlib
import shlex
from typing import Any
from typing import cast

from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import loading
from keystoneauth1 import plugin
from keystoneauth1 import session as ks_session
from oslo_config import cfg
import requests

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.http import transport
from nova_aggregate_mirror import option_values

# Keystoneauth declares these options as optional, because one of each tuple is
# sufficient. A plugin with the option before a tuple needs one of the tuple.
_NEEDED = (
    ('password', ('auth_url',)),
    ('password', ('username', 'user_id')),
    ('password', ('password',)),
    ('password', ('user_domain_name', 'user_domain_id', 'default_domain_name',
                  'default_domain_id', 'user_id')),
    ('application_credential_secret', ('auth_url',)),
    ('application_credential_secret', (
        'application_credential_id', 'application_credential_name')),
    ('application_credential_secret', ('application_credential_secret',)))
# The smallest roles. Neutron shows other projects' subnets to admins only.
ROLES = {'placement': 'service', 'neutron': 'admin'}


def party(conf: cfg.ConfigOpts, group: str, service: str = '') -> causes.Party:
    """Return a service, with the options of its account in ``[group]``.

    :param service: the section that selects the endpoint; by default the same
    """
    service = service or group
    service_section = '[%s] in nova.conf' % service
    own_section = '[%s] in nova.conf' % section(conf, group)
    address = causes.catalog(service)
    selection = 'region_name or valid_interfaces of ' + service_section
    if conf[service].endpoint_override:
        address = selection = 'endpoint_override of ' + service_section
    # Keystone's 401 does not say which option of the account is wrong.
    if _values(conf, group).auth_type == 'v3applicationcredential':
        credentials = 'the application credential'
        role = ('create another application credential, with the role %s, '
                'and set it in [%s]' % (ROLES[group], section(conf, group)))
    else:
        user, domain = _identity(conf, group, 'user')
        text = 'username (now %s), domains' if domain else 'user_id (now %s)'
        credentials = text % user + ', password or project'
        role = 'run "%s"' % role_command(conf, group)
    return causes.Party(
        service, service, address, selection=selection,
        account='%s of %s' % (credentials, own_section),
        auth_url='auth_url of ' + own_section, tokens=causes.tokens(service),
        project='project_name and project_domain_name to ' + own_section,
        role=role if service == group else '',
        cafile='cafile of [%s] in nova.conf' % group)


def role_command(conf: cfg.ConfigOpts, group: str) -> str:
    """Return the command that gives the account the smallest role it needs."""
    text = 'openstack role add'
    for noun in 'project', 'user':
        name, domain = _identity(conf, group, noun)
        text += ' --%s %s' % (noun, shlex.quote(name))
        # The default domain need not be named; its ID is in lower case.
        if domain.lower() not in ('', 'default'):
            text += ' --%s-domain %s' % (noun, shlex.quote(domain))
    return '%s %s' % (text, ROLES[group])


def _identity(conf: cfg.ConfigOpts, group: str, noun: str) -> tuple[str, str]:
    """Return (name, domain) or (ID, '') of the user or the project."""
    values = _values(conf, group)

    def first(*names: str) -> str:
        present = (values[name] for name in names if name in values)
        return next(filter(None, present), '')

    # The order is that in which keystoneauth looks at them.
    identifier = first(noun + '_id')
    if identifier:
        return identifier, ''
    name = first('username' if noun == 'user' else 'project_name')
    default = group if noun == 'user' else 'service'
    domain = first(noun + '_domain_id', 'default_domain_id',
                   noun + '_domain_name', 'default_domain_name')
    return name or default, domain or 'Default'


def _values(conf: cfg.ConfigOpts, group: str) -> Any:
    """Return the options of the account, those of its plugin included."""
    name = section(conf, group)
    # Also before the plugin is loaded, because errors name its options.
    with contextlib.suppress(ks_exceptions.NoMatchingPlugin):
        conf.register_opts(loading.get_auth_plugin_conf_options(
            conf[name].auth_type or 'none'), group=name)
    return conf[name]


def section(conf: cfg.ConfigOpts, group: str) -> str:
    """Return the section with the auth options; auth_section may name it."""
    # Again: nova registers them before it has read what auth_section is.
    loading.register_auth_conf_options(conf, group)
    return conf[group].auth_section or group


def load(conf: cfg.ConfigOpts, group: str) -> plugin.BaseAuthPlugin:
    """Load the auth plugin, without network access.

    :raises MissingCredentials: options are missing, or auth_type is unknown
    :raises InvalidConfiguration: when an option has an invalid value
    """
    with reading(conf, group):
        absent = _absent(_values(conf, group))
        try:
            if not absent:
                # None is returned only without an auth_type.
                return cast(plugin.BaseAuthPlugin,
                            loading.load_auth_from_conf_options(conf, group))
        except ks_exceptions.MissingRequiredOptions as exc:
            absent = [option.dest for option in exc.options]
    error = exceptions.MissingCredentials(
        '[%s] has no %s' % (section(conf, group), ', '.join(absent)),
        step='complete this section of nova.conf')
    error.options = absent
    try:
        raise error
    finally:
        del error  # Its traceback refers to this frame.


def _absent(values: Any) -> list[str]:
    """Return the missing ones of ``_NEEDED``, or only the auth_type."""
    if not values.auth_type:
        return ['auth_type']
    absent = []
    names = {option.dest
             for option in loading.get_plugin_options(values.auth_type)}
    for marker, any_of in _NEEDED:
        is_set = any(values[name] for name in names.intersection(any_of))
        if marker in names and any_of[0] in names and not is_set:
            absent.append(any_of[0])
    return absent


def session(conf: cfg.ConfigOpts, group: str) -> ks_session.Session:
    """Create a session with bounded adapters, without network access."""
    with reading(conf, group):
        session = loading.load_session_from_conf_options(
            conf, group, session=_Transport(), auth=load(conf, group),
            # The list of timings would grow for the lifetime of the process.
            collect_timing=False, app_name='nova-aggregate-mirror')
        # Raises here: to the SDK, an invalid option means an absent service.
        dict(conf[group])
        transport.bound(session, is_shared=False)
        return session


@contextlib.contextmanager
def reading(conf: cfg.ConfigOpts, group: str) -> abc.Iterator[None]:
    """Translate the errors of reading a section."""
    with errors.translated(errors.Call(
            lambda: party(conf, group), 'reading [%s]' % group)):
        try:
            yield
        except cfg.Error as exc:
            raise option_values.invalid_option(conf, exc) from exc


class _Transport(requests.Session):
    """Session that reads the proxies from the environment once per server.

    Reading them for each request takes a sixth of the client's time for it.
    No caller passes proxies for a single request.
    """

    def __init__(self) -> None:
        super().__init__()
        self._settings: dict[Any, Any] = {}

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any,
                                   verify: Any, cert: Any) -> Any:
        key = (*url.split('/', 3)[:3], stream, verify, cert)
        if key not in self._settings:
            self._settings[key] = super().merge_environment_settings(
                url, proxies, stream, verify, cert)
        return dict(self._settings[key])
