# SPDX-License-Identifier: Apache-2.0
"""An endpoint of placement in keystone's catalog, for one lane alone."""

from tests.cloud.outages import lane as lanes


def region(lane: lanes.Lane) -> str:
    """Return the region of a lane's endpoint."""
    return lane.config.directory.name


def create(lane: lanes.Lane) -> None:
    """Create the endpoint, with the lane's URL of placement."""
    identity = lane.identity()
    service, = identity.get('/services?type=placement').json()['services']
    identity.post('/regions', json={'region': {'id': region(lane)}})
    identity.post('/endpoints', json={'endpoint': {
        'service_id': service['id'], 'interface': 'public',
        'region_id': region(lane), 'url': lane.config.placement_url}})


def move(lane: lanes.Lane, url: str) -> None:
    """Change the URL of the endpoint."""
    identity = lane.identity()
    endpoint, = identity.get(
        '/endpoints?region_id=%s' % region(lane)).json()['endpoints']
    identity.patch('/endpoints/%s' % endpoint['id'], json={
        'endpoint': {'url': url}})
