# SPDX-License-Identifier: Apache-2.0
"""A double of neutron's REST API for ports, subnets and counts, over HTTP.

It filters and counts as neutron does; the tests of the full cloud use a real
neutron.
"""

from collections import abc
import http.server
import ipaddress
import itertools
import json
import threading
from typing import Any
import urllib.parse
import uuid

import fixtures
from keystoneauth1 import loading
from oslo_config import cfg

from tests import documents

DETAILS = 'ip_availability_details'


class NeutronService(fixtures.Fixture):
    """Neutron on a loopback port.

    ``subnets`` and ``ports`` are lists of what neutron returns; ``requests``
    has the paths of requests.

    :param details: whether it has network-ip-availability-details
    """

    def __init__(self, details: bool = True) -> None:
        self.subnets: list[dict[str, Any]] = []
        self.ports: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.details = details
        self.statuses: dict[str, int] = {}
        """Path to the status of its answers."""
        self.replaced: dict[str, Any] = {}
        """Path to the answer that it has instead."""
        self.page = 0
        """Number of resources in an answer at most; 0 for all."""

    def _setUp(self) -> None:
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service._answer(self)

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing: the requests are recorded."""

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        server.daemon_threads = True
        server.block_on_close = False
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = 'http://127.0.0.1:%d' % server.server_port
        threading.Thread(target=server.serve_forever, args=(0.01,),
                         daemon=True).start()

    def configure(self, conf: cfg.ConfigOpts, url: str = '') -> None:
        """Set the options of ``[neutron]`` that lead here, or to a URL."""
        if 'neutron' not in conf:
            loading.register_session_conf_options(conf, 'neutron')
            loading.register_auth_conf_options(conf, 'neutron')
            loading.register_adapter_conf_options(conf, 'neutron')
        conf.set_override('auth_type', 'none', 'neutron')
        conf.set_override('endpoint_override', url or self.url, 'neutron')

    def subnet(self, network: str, segment: str, cidr: str,
               **values: Any) -> str:
        """Create a subnet with all addresses in a pool but the gateway's."""
        hosts = list(ipaddress.ip_network(cidr).hosts())
        pool = {'start': str(hosts[1]), 'end': str(hosts[-1])}
        subnet = documents.subnet(str(uuid.uuid4()), **{
            'network_id': network, 'cidr': cidr, 'segment_id': segment or None,
            'ip_version': ipaddress.ip_network(cidr).version,
            'allocation_pools': [pool], **values})
        self.subnets.append(subnet)
        return str(subnet['id'])

    def port(self, network: str, *addresses: tuple[str, str],
             **values: Any) -> str:
        """Create a port with pairs of subnet and address; return its ID."""
        port = documents.port(str(uuid.uuid4()), **{
            'network_id': network,
            'fixed_ips': [{'subnet_id': subnet, 'ip_address': address}
                          for subnet, address in addresses],
            'ip_allocation': 'immediate' if addresses else 'deferred',
            **values})
        self.ports.append(port)
        return str(port['id'])

    def _answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        parts = urllib.parse.urlsplit(handler.path)
        what = parts.path.removeprefix('/v2.0/')
        self.requests.append(what)
        query = urllib.parse.parse_qs(parts.query)
        answers = {'ports': self._ports, 'subnets': self._subnets,
                   'network-ip-availabilities': self._counts}
        body, key = self.replaced.get(what), what.replace('-', '_')
        if body is None:
            fields = query.get('fields', ())
            body = {key: [_with_fields(resource, fields)
                          for resource in answers[what](query)]}
            start = int(query.get('marker', ['0'])[0])
            if self.page and len(body[key]) > start + self.page:
                following = urllib.parse.urlencode(
                    {**query, 'marker': start + self.page}, doseq=True)
                body[key + '_links'] = [
                    {'rel': 'previous', 'href': self.url},
                    {'rel': 'next', 'href': '%s/v2.0/%s?%s' % (
                        self.url, what, following)}]
            if self.page:
                body[key] = body[key][start:start + self.page]
        text = json.dumps(body).encode()
        handler.send_response(self.statuses.get(what, 200))
        handler.send_header('Content-Type', 'application/json')
        handler.send_header('Content-Length', str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def _ports(self, query: abc.Mapping[str, list[str]]
               ) -> list[dict[str, Any]]:
        wanted = {one.removeprefix('subnet_id=')
                  for one in query.get('fixed_ips', ())}
        ports = _filtered(self.ports, query)
        if not wanted:
            return ports
        return [port for port in ports if wanted.intersection(
            address['subnet_id'] for address in port['fixed_ips'])]

    def _subnets(self, query: abc.Mapping[str, list[str]]
                 ) -> list[dict[str, Any]]:
        return _filtered(self.subnets, query)

    def _counts(self, query: abc.Mapping[str, list[str]]
                ) -> list[dict[str, Any]]:
        networks: dict[str, list[Any]] = {}
        for subnet in self._subnets(query):
            networks.setdefault(subnet['network_id'], []).append(subnet)
        return [self._network_counts(network, subnets)
                for network, subnets in sorted(networks.items())]

    def _network_counts(self, network: str, subnets: list[dict[str, Any]]
                        ) -> dict[str, Any]:
        counts = [self._subnet_counts(subnet) for subnet in subnets]
        whole: dict[str, Any] = _sums(counts, ('total_ips', 'used_ips'))
        if self.details:
            details = [each[DETAILS] for each in counts]
            whole[DETAILS] = _sums(details, details[0])
        return documents.network_counts(network, counts, **whole)

    def _subnet_counts(self, subnet: dict[str, Any]) -> dict[str, Any]:
        pools = [(_number(pool['start']), _number(pool['end']))
                 for pool in subnet['allocation_pools']]
        addresses = itertools.chain(*(one['fixed_ips'] for one in self.ports))
        used = [_number(each['ip_address']) for each in addresses
                if each['subnet_id'] == subnet['id']]
        total = inside = 0
        for first, last in pools:
            total += last - first + 1
            inside += sum(first <= each <= last for each in used)
        whole = ipaddress.ip_network(
            subnet['cidr'], strict=False).num_addresses
        counts: dict[str, Any] = {
            'total_ips': total if pools else whole, 'used_ips': len(used)}
        if self.details:
            counts[DETAILS] = {'total_ips_in_subnet': whole - 2,
                               'total_ips_in_allocation_pool': total,
                               'used_ips_in_subnet': len(used),
                               'used_ips_in_allocation_pool': inside}
        return documents.subnet_counts(
            subnet['id'], cidr=subnet['cidr'],
            ip_version=subnet['ip_version'], **counts)


def _number(address: str) -> int:
    return int(ipaddress.ip_address(address))


def _filtered(resources: list[dict[str, Any]],
              query: abc.Mapping[str, list[str]]) -> list[dict[str, Any]]:
    for name, values in query.items():
        if name != 'fixed_ips':
            resources = [resource for resource in resources
                         if name not in resource or resource[name] in values]
    return resources


def _sums(counts: abc.Sequence[dict[str, int]], names: abc.Iterable[str]
          ) -> dict[str, int]:
    return {name: sum(each[name] for each in counts) for name in names}


def _with_fields(resource: dict[str, Any], fields: abc.Collection[str]
                 ) -> dict[str, Any]:
    """Return the attributes of a resource that a query names, or all."""
    return {name: value for name, value in resource.items()
            if not fields or name in fields}
