# SPDX-License-Identifier: Apache-2.0
"""Checks of placement: credentials, endpoint, microversions and rights.

Long because each step on the way to placement has failures of its own.
"""

import shlex

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
        return [checks.error(exc, 'Correct:', '[%s]' % section)]
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
        if service.account.is_application_credential:
            return [_renewal(service, exc)]
        name, domain = service.account.user
        user = ('--domain %s ' % shlex.quote(domain) if domain else ''
                ) + shlex.quote(name)
        return [checks.error_with_step(
            exc, '%s%s, and set its password to that in [%s]:' % (
                'Create the account unless it exists' if domain
                else 'Give the account its role',
                auth.EARLIER[service.group], section),
            # Keystone chooses the ID of a new user.
            *(['openstack user create --or-show ' + user] if domain else []),
            service.account.role_command,
            'openstack user set --password-prompt ' + user)]
    except exceptions.MirrorError as exc:
        return [checks.error(
            exc, 'Start keystone, or correct:', '[%s]' % section,
            'auth_url = %s' % EXAMPLE['auth_url'])]
    return []


def _renewal(service: discovery.Discovery, exc: exceptions.NotAuthorized
             ) -> checks.Finding:
    """Return the step for an application credential.

    Its roles are those of its creation: no role can be added later.
    """
    return checks.error_with_step(
        exc, 'As the owner of the application credential, who needs the role '
        '%s%s, create another one, and set its ID and secret:'
        % (auth.ROLES[service.group], auth.EARLIER[service.group]),
        'openstack application credential create --role %s %s-2'
        % (auth.ROLES[service.group], service.group),
        '[%s]' % auth.section(service.conf, service.group),
        'application_credential_id = ID',
        'application_credential_secret = SECRET')


def endpoint(deployment: inputs.Deployment) -> checks.Findings:
    """Check that placement answers at its endpoint."""
    service = deployment.placement
    findings = _catalog(service)
    if findings:
        return findings
    listing = ('openstack endpoint list --service %s'
               % service.conf[service.group].service_type)
    try:
        url = service.endpoint()
        service.microversions(url)
    except (exceptions.NotAuthorized, exceptions.MalformedAnswer) as exc:
        if service.conf[service.group].endpoint_override:
            return [checks.error_with_step(
                exc, 'Correct:', '[%s]' % service.group,
                'endpoint_override = URL')]
        return [checks.error_with_step(
            exc, 'Correct the URL of placement in the catalog:', listing)]
    except exceptions.MirrorError as exc:
        return [checks.error(
            exc, 'Start placement, whose service may also be named apache2, '
            'httpd or devstack@placement-api:', RESTART)]
    return [checks.good('Placement answers at %s.'
                        % errors.without_secrets(url))]


def _catalog(service: discovery.Discovery) -> checks.Findings:
    """Check that the catalog has the endpoint that nova.conf selects."""
    try:
        if service.endpoint():
            return []
        offered = service.offered()
    except exceptions.MirrorError as exc:
        return [checks.error(exc)]
    if offered is not None:
        return [_not_in_catalog(service, offered)]
    return [checks.failure(
        '%s %s. Add the project:' % (service.group, errors.NO_CATALOG),
        '[%s]' % auth.section(service.conf, service.group),
        *('%s = %s' % (name, EXAMPLE[name])
          for name in ('project_name', 'project_domain_name')))]


def _not_in_catalog(service: discovery.Discovery,
                    offered: list[tuple[str, str]]) -> checks.Finding:
    options = service.conf[service.group]
    interfaces = options.valid_interfaces or ['public']
    text = '%s %s for %s' % (
        service.group, errors.NOT_IN_CATALOG, errors.selection(
            options.region_name, ','.join(interfaces)))
    if offered:
        return checks.failure(
            '%s. It has %s. Select an existing endpoint, for example:' % (
                text, '; '.join(
                    errors.selection(*endpoint) for endpoint in offered)),
            '[%s]' % service.group, 'region_name = %s' % offered[0][0],
            'valid_interfaces = %s' % offered[0][1])
    return checks.failure(
        '%s, nor for any other. When the service runs, register it:' % text,
        'openstack service create --name %s %s'
        % (service.group, options.service_type),
        'openstack endpoint create --region %s %s %s URL' % (
            shlex.quote(options.region_name or 'RegionOne'),
            options.service_type, interfaces[0]))


def microversions(deployment: inputs.Deployment) -> checks.Findings:
    """Check that placement has the microversion of every request."""
    service = deployment.placement
    try:
        oldest, newest = service.microversions(service.endpoint())
    except exceptions.MirrorError as exc:
        return [unavailable(exc)]
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
    for attempt in (
            placement.probe, lambda: placement.get(absent.uuid),
            lambda: placement.put(absent, frozenset())):
        try:
            with deadline.within(seconds):
                attempt()
        except exceptions.ProviderNotFound:
            continue
        except exceptions.MirrorError as exc:
            if (isinstance(exc, exceptions.Forbidden) and exc.failure.step
                    and service.account.is_application_credential):
                return [_renewal(service, exc)]
            return [unavailable(exc)]
    return [checks.good('The account may list providers, and read and write '
                        'their aggregates.')]


def unavailable(exc: exceptions.MirrorError) -> checks.Finding:
    """Return the finding for a failure after placement has answered."""
    return checks.error(exc, 'See placement\'s log:',
                        'journalctl -u placement-api')


def neutron(deployment: inputs.Deployment) -> checks.Findings:
    """Check the credentials of [neutron], and its endpoint in the catalog."""
    return (_credentials(deployment.conf, 'neutron')
            or _authentication(deployment.neutron)
            or _catalog(deployment.neutron))
