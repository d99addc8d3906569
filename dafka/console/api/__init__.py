"""The API, one module for each family of paths."""

from dafka.console.api import access, cluster, configs, groups, records, streams, topics, transactions

ROUTES = [
    route
    for family in (cluster, topics, configs, records, streams, groups, transactions, access)
    for route in family.routes.all
]
"""All of them."""
