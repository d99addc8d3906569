"""The API, one module for each family of paths."""

from dafka.console.api import (
    access,
    cluster,
    configs,
    groups,
    networks,
    overview,
    records,
    streams,
    topics,
    transactions,
)

_FAMILIES = (
    cluster,
    overview,
    topics,
    configs,
    records,
    streams,
    groups,
    transactions,
    access,
    networks,
)

ROUTES = [route for family in _FAMILIES for route in family.routes.all]
"""All of them."""
