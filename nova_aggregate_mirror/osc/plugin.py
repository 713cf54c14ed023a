# SPDX-License-Identifier: Apache-2.0
"""Plugin interface of the openstack client, which reads these names."""

import argparse
from typing import Any

API_NAME = 'aggregate_mirror'
API_VERSION_OPTION = 'os_aggregate_mirror_api_version'
API_VERSIONS = {'1': 'nova_aggregate_mirror.osc.command.Clients'}
DEFAULT_API_VERSION = '1'


def make_client(instance: Any) -> Any:
    # Imported here, because every openstack command imports this module.
    from nova_aggregate_mirror.osc import command
    return command.Clients(instance.sdk_connection)


def build_option_parser(parser: argparse.ArgumentParser
                        ) -> argparse.ArgumentParser:
    """Add no option: there is only one version."""
    return parser
