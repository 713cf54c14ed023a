# SPDX-License-Identifier: Apache-2.0
"""All situations, in the order of the table."""

from tests.cloud.situations.cases import edges
from tests.cloud.situations.cases import fillings
from tests.cloud.situations.cases import filters
from tests.cloud.situations.cases import isolation
from tests.cloud.situations.cases import moves
from tests.cloud.situations.cases import networks
from tests.cloud.situations.cases import resources
from tests.cloud.situations.cases import services
from tests.cloud.situations.cases import zones

SITUATIONS = (
    *resources.SITUATIONS, *services.SITUATIONS, *zones.SITUATIONS,
    *isolation.SITUATIONS, *filters.SITUATIONS, *networks.SITUATIONS,
    *moves.SITUATIONS, *edges.SITUATIONS, *fillings.SITUATIONS)
