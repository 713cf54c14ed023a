# SPDX-License-Identifier: Apache-2.0
"""Services that the openstack client asks, with the options that it has."""

from nova_aggregate_mirror import causes


def party(service: str, role: str = 'give your user a role that may do this'
          ) -> causes.Party:
    """Return a service that the openstack client asks with its options."""
    return causes.Party(
        service, service, causes.catalog(service),
        account=_option('the account', 'USERNAME and OS_PASSWORD'),
        auth_url=_option('auth_url', 'AUTH_URL'),
        selection=_option(
            'region or interface', 'REGION_NAME and OS_INTERFACE'),
        project=_option(
            'a project', 'PROJECT_NAME and OS_PROJECT_DOMAIN_NAME'),
        # The token may have been given, and be old.
        tokens='unless your token has expired, ' + causes.tokens(service),
        role=role, cafile='OS_CACERT')


def _option(what: str, variable: str) -> str:
    return '%s of the openstack client (OS_%s, or in clouds.yaml)' % (
        what, variable)
