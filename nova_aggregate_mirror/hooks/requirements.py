# SPDX-License-Identifier: Apache-2.0
"""Check of the nova internals that this package relies on."""

import inspect

from nova.compute import api as compute_api
from nova.db.api import models as api_models
from nova.db.main import models as main_models

from nova_aggregate_mirror import nova_signatures

PARAMETERS = {
    'add_host_to_aggregate': ['self', 'context', 'aggregate_id', 'host_name'],
    'remove_host_from_aggregate': ['self', 'context', 'aggregate_id',
                                   'host_name'],
    'delete_aggregate': ['self', 'context', 'aggregate_id'],
}

# Nova's own mirroring is muted in these calls; if nova used other calls, nova
# and the hook would both write.
MIRRORING = {'add_host_to_aggregate': 'aggregate_add_host',
             'remove_host_from_aggregate': 'aggregate_remove_host'}

COLUMNS = {
    api_models.Aggregate: ('id', 'uuid', 'name'),
    api_models.AggregateHost: ('host', 'aggregate_id'),
    api_models.AggregateMetadata: ('aggregate_id', 'key', 'value'),
    api_models.CellMapping: ('id', 'uuid', 'name', 'database_connection'),
    api_models.HostMapping: ('host', 'cell_id'),
    main_models.ComputeNode: ('uuid', 'host', 'deleted'),
}


def check() -> None:
    """Check the installed nova against the internals relied on.

    :raises UnexpectedNova: lists all differences
    """
    api = compute_api.AggregateAPI
    differences = []
    if not isinstance(inspect.getattr_static(api, 'placement_client', None),
                      property):
        differences.append('AggregateAPI.placement_client is not a property')
    for name, call in MIRRORING.items():
        method = inspect.unwrap(getattr(api, name, lambda: None))
        if not {'placement_client', call} <= set(method.__code__.co_names):
            differences.append('AggregateAPI.%s does not call '
                               'placement_client.%s' % (name, call))
    for model, columns in COLUMNS.items():
        differences += ['%s has no column %s' % (model.__name__, column)
                        for column in columns if not hasattr(model, column)]
    nova_signatures.check({api: PARAMETERS}, differences)
