# SPDX-License-Identifier: Apache-2.0
"""Checks of placement: credentials, endpoint, microversions and rights.

Long because each step on the way to placement has failures of its own.
"""

from collections import abc
import shlex
import time

from oslo_config import cfg
from oslo_utils import uuidutils
from oslo_utils import versionutils

from nova_aggregate_mirror import causes
from nova_aggregate_mirror import checks
from nova_aggregate_mirror.checks import discovery
from nova_aggregate_mirror.checks import inputs
from nova_aggregate_mirror.checks import nova
from nova_aggregate_mirror import exceptions
from nova_aggregate_mirror.http import auth
from nova_aggregate_mirror.http import errors
from nova_aggregate_mirror.limits import deadline
from nova_aggregate_mirror.placement import client

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
    if not names:
        return []
    if 'auth_type' in names:
        # It is unknown which of the other options are used.
        _auth_type, *others = EXAMPLE
        names = ['auth_type', *discovery.unset(conf, group, others)]
    report, consequence = checks.failure, CONSEQUENCES[group][1]
    if conf.aggregate_mirror.missing_credentials != 'fail':
        report, consequence = checks.warning, (
            '%s, and from version 2 of this package on %s'
            % CONSEQUENCES[group])
    return report('%s: %s. Set:' % (reason, consequence),
                  *_examples(conf, group, names))


def _examples(conf: cfg.ConfigOpts, group: str, names: abc.Iterable[str]
              ) -> list[str]:
    """Return the lines that set these options."""
    lines = ['[%s]' % auth.section(conf, group)]
    for name in names:
        value = EXAMPLE.get(name, name.upper()) % {'group': group}
        lines.append('%s = %s' % (name, value))
    return lines


def _authentication(service: discovery.Discovery) -> checks.Findings:
    began = time.monotonic()
    service.authenticate()
    return _slowness(service.conf, 'keystone', began)


def _slowness(conf: cfg.ConfigOpts, party: str, began: float
              ) -> checks.Findings:
    """Warn about an answer that a request to nova-api would not wait for."""
    waited = time.monotonic() - began
    limit = conf.aggregate_mirror.inline_timeout
    if waited <= limit:
        return []
    return checks.warning(
        '%s answered after %.1f s, and a request to nova-api waits for all '
        'parties together %g s: see the log of %s.' % (
            party.capitalize(), waited, limit, party))


def endpoint(deployment: inputs.Deployment) -> checks.Findings:
    """Check that placement answers at its endpoint."""
    service = deployment.placement
    findings = _catalog(service)
    if findings:
        return findings
    began = time.monotonic()
    url = service.endpoint()
    service.microversions(url)
    return _slowness(deployment.conf, 'placement', began) or checks.good(
        'Placement answers at %s.' % errors.without_secrets(url))


def _catalog(service: discovery.Discovery) -> checks.Findings:
    """Check that the catalog has the endpoint that nova.conf selects."""
    try:
        service.endpoint()
    except exceptions.MirrorError as exc:
        return _failed(service, exc)
    return []


def _failed(service: discovery.Discovery, exc: exceptions.MirrorError
            ) -> checks.Findings:
    """Return the finding for an error, with the commands for its kind."""
    commands = COMMANDS.get(exc.failure.kind)
    return checks.failed(exc, *(commands(service) if commands else ()))


def _scope(service: discovery.Discovery) -> list[str]:
    """Return the options without which a token has no catalog."""
    return _examples(service.conf, service.group, discovery.unset(
        service.conf, service.group, ('project_name', 'project_domain_name')))


def _registration(service: discovery.Discovery) -> list[str]:
    """Return the commands that create the endpoint that is selected."""
    options = service.conf[service.group]
    interface = (options.valid_interfaces or ['public'])[0]
    region = shlex.quote(options.region_name or 'RegionOne')
    return ['openstack service create --name %s %s'
            % (service.group, options.service_type),
            'openstack endpoint create --region %s %s %s URL' % (
                region, options.service_type, interface)]


def _selection(service: discovery.Discovery) -> list[str]:
    """Return the options that select an endpoint that there is."""
    options = service.conf[service.group]
    interfaces = options.valid_interfaces or ['public']

    def right(endpoint: tuple[str, str]) -> tuple[bool, bool]:
        region, interface = endpoint
        return region == options.region_name, interface in interfaces

    # Of the endpoints, one with most that is right; the region counts more.
    region, interface = max(service.offered(), key=right)
    lines = []
    if options.region_name and options.region_name != region:
        lines.append('region_name = %s' % region)
    if interface not in interfaces:
        lines.append('valid_interfaces = %s' % interface)
    return ['[%s]' % service.group, *lines] if lines else []


def _renewal(service: discovery.Discovery) -> list[str]:
    """Return the commands for an application credential without a role.

    Its roles are those of its creation: no role can be added later.
    """
    if not service.account.is_application_credential:
        return []
    return ['openstack application credential create --role %s %s-2'
            % (auth.ROLES[service.group], service.group),
            '[%s]' % auth.section(service.conf, service.group),
            'application_credential_id = ID',
            'application_credential_secret = SECRET']


COMMANDS = {
    causes.NO_CATALOG.kind: _scope, causes.NOT_IN_CATALOG.kind: _registration,
    causes.NO_ENDPOINT.kind: _selection, causes.ROLE.kind: _renewal}
"""What returns the lines to copy, by the kind of a failure."""


def microversions(deployment: inputs.Deployment) -> checks.Findings:
    """Check that placement has the microversion of every request."""
    service = deployment.placement
    oldest, newest = service.microversions(service.endpoint())
    text = 'Placement has microversions %s to %s' % (oldest, newest)
    first, needed, last = map(versionutils.convert_version_to_tuple, (
        oldest, client.MICROVERSION, newest))
    if last < needed:
        return checks.failure(
            '%s; %s is required. Upgrade placement to 2.0.0 (Train) or '
            'later first:' % (text, client.MICROVERSION),
            'pip install --upgrade openstack-placement',
            'placement-manage db sync')
    if needed < first:
        return checks.failure(
            '%s; %s is no longer supported. In nova-api\'s environment, run:'
            % (text, client.MICROVERSION), nova.UPGRADE)
    return checks.good('%s; %s is used.' % (text, client.MICROVERSION))


def rights(deployment: inputs.Deployment) -> checks.Findings:
    """Check that the account may read and write aggregates of providers.

    The requests are for a provider that does not exist: placement checks the
    permissions first.
    """
    service, placement = deployment.placement, deployment.client
    absent = client.Provider(uuidutils.generate_uuid(), frozenset(), 0)
    attempts = (placement.probe, lambda: placement.get(absent.uuid),
                lambda: placement.put(absent, frozenset()))
    for attempt in attempts:
        try:
            with deadline.within(discovery.PATIENCE):
                attempt()
        except exceptions.ProviderNotFound:
            continue
        except exceptions.MirrorError as exc:
            return _failed(service, exc)
    return checks.good('The account may list providers, and read and write '
                       'their aggregates.')


def neutron(deployment: inputs.Deployment) -> checks.Findings:
    """Check the credentials of [neutron], and its endpoint in the catalog."""
    return (_credentials(deployment.conf, 'neutron')
            or _authentication(deployment.neutron)
            or _catalog(deployment.neutron))
