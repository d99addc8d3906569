"""The API, one module for each family of paths."""

from dafka.console.api import cluster, configs, groups, records, streams, topics, transactions

ROUTES = [
    route
    for family in (cluster, topics, configs, records, streams, groups, transactions)
    for route in family.routes.all
]
"""All of them."""
