# SPDX-License-Identifier: Apache-2.0
"""Checks of placement: credentials, endpoint, microversions and rights.

Long because each step on the way to placement has failures of its own.
"""

from oslo_config import cfg
from oslo_utils import uuidutils
from oslo_utils import versionutils

from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import discovery
from nova_aggregate_mirror.checks import inputs
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.limits import observations
from nova_aggregate_mirror.placement import client

RESTART = 'systemctl restart placement-api'
EXAMPLE = {
    'auth_type': 'password',
    'auth_url': 'https://keystone.example.org/v3',
    'username': '%(group)s',
    'password': 'secret',
    'project_name': 'service',
    'user_domain_name': 'Default',
    'project_domain_name': 'Default',
}
# Effect of a section without credentials, in this release and from the next
# major release on. Nova-scheduler reads [neutron].
CONSEQUENCES = {
    'placement': (
        'operations stay in the journal', 'nova-api does not start'),
    'neutron': (
        'nova-scheduler cannot query neutron for the hosts of a routed '
        'network', 'nova-scheduler does not start'),
}
# The smallest role of each account. Neutron shows the subnets of other
# projects to administrators only.
ROLES = {'placement': 'service', 'neutron': 'admin'}


def credentials(deployment: inputs.Deployment) -> checks.Findings:
    """Check that nova.conf has complete credentials for placement."""
    return _credentials(deployment.conf, 'placement')


def authentication(deployment: inputs.Deployment) -> checks.Findings:
    """Check that keystone issues a token for the credentials."""
    return _authentication(deployment.placement)


def _credentials(conf: cfg.ConfigOpts, group: str) -> checks.Findings:
    section = auth.section(conf, group)
    try:
        names = auth.missing(conf, group)
        reason = '[%s] has no %s' % (section, ', '.join(names))
    except exceptions.MissingCredentials as exc:
        reason, names = str(exc), ['auth_type']
    except exceptions.MirrorError as exc:
        return [checks.failure('%s. Correct:' % exc, '[%s]' % section)]
    if not names:
        return []
    lines = ['[%s]' % section]
    # Without auth_type it is unknown which of the other options are used.
    for name in EXAMPLE if 'auth_type' in names else names:
        value = EXAMPLE.get(name, name.upper())
        lines.append('%s = %s' % (name, value % {'group': group}))
    now, next_release = CONSEQUENCES[group]
    if conf.aggregate_mirror.missing_credentials == 'fail':
        return [checks.failure(
            '%s: %s. Add any of these that are missing:'
            % (reason, next_release), *lines)]
    return [checks.warning(
        '%s: %s, and from version 2 of this package on %s. Add any of these '
        'that are missing:' % (reason, now, next_release), *lines)]


def _authentication(service: discovery.Discovery) -> checks.Findings:
    section = auth.section(service.conf, service.group)
    try:
        service.authenticate()
    except exceptions.NotAuthorized as exc:
        if _has_application_credential(service):
            return [_renewal(service, exc)]
        user, _project, domain = _account(service.conf, service.group)
        return [checks.failure(
            '%s. Create the account unless it exists, and set its password '
            'to that in [%s]:' % (exc, section),
            'openstack user create --or-show --domain %s %s' % (domain, user),
            role_command(service.conf, service.group),
            'openstack user set --password-prompt %s' % user)]
    except exceptions.MirrorError as exc:
        return _untrusted(service, exc) or [checks.failure(
            '%s. Start keystone, or correct:' % exc,
            '[%s]' % section, 'auth_url = %s' % EXAMPLE['auth_url'])]
    return []


def _untrusted(service: discovery.Discovery, exc: exceptions.MirrorError
               ) -> checks.Findings:
    """Return the step for a certificate that is not accepted, if it is."""
    if not observations.is_untrusted(exc):
        return []
    return [checks.failure(
        '%s. Set the file of the authority that signed it:' % exc,
        '[%s]' % service.group, 'cafile = FILE')]


def _has_application_credential(service: discovery.Discovery) -> bool:
    values = service.conf[auth.section(service.conf, service.group)]
    return bool(values.auth_type == 'v3applicationcredential')


def _renewal(service: discovery.Discovery, exc: exceptions.NotAuthorized
             ) -> checks.Finding:
    """Return the step for an application credential.

    Its roles are those of its creation: no role can be added later.
    """
    return checks.failure(
        '%s. As the user that nova uses, create another application '
        'credential, and set its ID and secret:' % exc,
        'openstack application credential create --role %s %s-2'
        % (ROLES[service.group], service.group),
        '[%s]' % auth.section(service.conf, service.group),
        'application_credential_id = ID',
        'application_credential_secret = SECRET')


def endpoint(deployment: inputs.Deployment) -> checks.Findings:
    """Check that placement answers at its endpoint."""
    service = deployment.placement
    findings = _catalog(service)
    if findings:
        return findings
    try:
        url = service.endpoint()
        service.microversions(url)
    except (exceptions.NotAuthorized, exceptions.MalformedAnswer) as exc:
        return [checks.failure(
            '%s. Correct the URL of placement in the catalog:' % exc,
            'openstack endpoint list --service %s'
            % service.conf[service.group].service_type)]
    except exceptions.MirrorError as exc:
        return _untrusted(service, exc) or [checks.failure(
            '%s. Start placement, whose service may also be named apache2, '
            'httpd or devstack@placement-api:' % exc, RESTART)]
    return [checks.good('Placement answers at %s.'
                        % errors.without_secrets(url))]


def _catalog(service: discovery.Discovery) -> checks.Findings:
    """Check that the catalog has the endpoint that nova.conf selects."""
    try:
        if service.endpoint():
            return []
        if not service.has_catalog():
            return [checks.failure(
                '%s %s. Add the project:' % (
                    service.group, errors.NO_CATALOG),
                '[%s]' % auth.section(service.conf, service.group),
                *('%s = %s' % (name, EXAMPLE[name])
                  for name in ('project_name', 'project_domain_name')))]
        return [_not_in_catalog(service, service.offered())]
    except exceptions.MirrorError as exc:
        return [checks.failure(
            '%s. Check these options:' % exc, '[%s]' % service.group,
            'endpoint_override', 'region_name', 'valid_interfaces')]


def _not_in_catalog(service: discovery.Discovery,
                    offered: list[tuple[str, str]]) -> checks.Finding:
    options = service.conf[service.group]
    interfaces = options.valid_interfaces or ['public']
    text = '%s %s for region %s, interface %s' % (
        service.group, errors.NOT_IN_CATALOG,
        options.region_name or 'not set', ','.join(interfaces))
    if offered:
        return checks.failure(
            '%s. It has %s. Select an existing endpoint, for example:' % (
                text, '; '.join(
                    'region %s, interface %s' % endpoint
                    for endpoint in offered)),
            '[%s]' % service.group, 'region_name = %s' % offered[0][0],
            'valid_interfaces = %s' % offered[0][1])
    return checks.failure(
        '%s, nor for any other. When the service runs, register it:' % text,
        'openstack service create --name %s %s'
        % (service.group, options.service_type),
        'openstack endpoint create --region %s %s %s URL' % (
            options.region_name or 'RegionOne', options.service_type,
            interfaces[0]))


def microversions(deployment: inputs.Deployment) -> checks.Findings:
    """Check that placement has the microversion of every request."""
    service = deployment.placement
    try:
        oldest, newest = service.microversions(service.endpoint())
    except exceptions.MirrorError as exc:
        return [checks.failure('%s. Restart it:' % exc, RESTART)]
    text = 'Placement has microversions %s to %s' % (oldest, newest)
    first, needed, last = map(versionutils.convert_version_to_tuple, (
        oldest, client.MICROVERSION, newest))
    if last < needed:
        return [checks.failure(
            '%s; %s is required. Upgrade placement to 2.0.0 (Train) or '
            'later first:' % (text, client.MICROVERSION),
            'pip install --upgrade openstack-placement',
            'placement-manage db sync', RESTART)]
    if needed < first:
        return [checks.failure(
            '%s; %s is no longer supported. In nova-api\'s environment, run:'
            % (text, client.MICROVERSION),
            'pip install --upgrade WHEEL_OR_REPOSITORY')]
    return [checks.good('%s; %s is used.' % (text, client.MICROVERSION))]


def rights(deployment: inputs.Deployment) -> checks.Findings:
    """Check that the account may read and write aggregates of providers.

    The requests are for a provider that does not exist: placement checks the
    permissions first.
    """
    service, placement = deployment.placement, deployment.client
    seconds = deployment.conf.aggregate_mirror.inline_timeout
    absent = client.Provider(uuidutils.generate_uuid(), frozenset(), 0)
    for action, attempt in (
            ('list providers', placement.probe),
            ('read aggregates of providers',
             lambda: placement.get(absent.uuid)),
            ('write aggregates of providers',
             lambda: placement.put(absent, frozenset()))):
        try:
            with deadline.within(seconds):
                attempt()
        except exceptions.ProviderNotFound:
            continue
        except exceptions.NotAuthorized as exc:
            if _has_application_credential(service):
                return [_renewal(service, exc)]
            if not isinstance(exc, exceptions.Forbidden):
                return [checks.failure(
                    '%s. It does not accept keystone\'s token: correct '
                    '[keystone_authtoken] in placement.conf, then run:' % exc,
                    RESTART)]
            return [checks.failure(
                'The account may not %s: %s. Run:' % (action, exc),
                role_command(service.conf, service.group))]
        except exceptions.MirrorError as exc:
            return [checks.failure(
                'Could not %s: %s. See placement\'s log. If its database is '
                'not up to date, run:' % (action, exc),
                'placement-manage db sync', RESTART)]
    return [checks.good('The account may list providers, and read and write '
                        'their aggregates.')]


def neutron(deployment: inputs.Deployment) -> checks.Findings:
    """Check that nova-scheduler can query neutron for a network's hosts."""
    return (_credentials(deployment.conf, 'neutron')
            or _authentication(deployment.neutron)
            or _catalog(deployment.neutron))


def role_command(conf: cfg.ConfigOpts, group: str) -> str:
    """Return the command that gives an account the smallest role it needs."""
    user, project, domain = _account(conf, group)
    return 'openstack role add --project %s --user %s%s %s' % (
        # Keystone has one domain with this name, and the same in lower case
        # as its ID.
        project, user, '' if domain.lower() == 'default'
        else ' --user-domain %s' % domain, ROLES[group])


def _account(conf: cfg.ConfigOpts, group: str) -> tuple[str, str, str]:
    """Return user, project and domain for a suggested command."""
    values = conf[auth.section(conf, group)]

    def first(*names: str) -> str:
        return next((values[name] for name in names
                     if name in values and values[name]), '')

    return (first('username', 'user_id') or group,
            first('project_name', 'project_id') or EXAMPLE['project_name'],
            first('user_domain_name', 'user_domain_id')
            or EXAMPLE['user_domain_name'])
