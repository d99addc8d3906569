"""The group and the transactional part of a broker: calls are passed on to its coordinators while it runs.

On the wire the transactional part takes the versions before KIP-890's second protocol, which are listed in
:mod:`dafka.broker.transactions.coordinator`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from dafka.broker.groups.coordinator import Coordinator as Groups
from dafka.broker.interface.groups import GroupInterface
from dafka.broker.interface.transactions import TransactionInterface
from dafka.broker.transactions.coordinator import TransactionCoordinator as Transactions

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


def _passed_on(part: str, method: Callable[Concatenate[T, P], R]) -> Callable[Concatenate[Any, P], R]:
    """The method, as one of a broker that has its object in the attribute ``part``."""

    @wraps(method)
    def call(broker: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        broker._check()
        return method(getattr(broker, part), *args, **kwargs)

    return call


class CoordinatedCalls(GroupInterface, TransactionInterface):
    """A broker's groups and transactions; its class has the coordinators and knows whether it runs."""

    _groups: Groups
    _transactions: Transactions
    _check: Callable[[], None]

    join_group = _passed_on("_groups", Groups.join_group)
    sync_group = _passed_on("_groups", Groups.sync_group)
    heartbeat = _passed_on("_groups", Groups.heartbeat)
    leave_group = _passed_on("_groups", Groups.leave_group)
    describe_groups = _passed_on("_groups", Groups.describe_groups)
    list_groups = _passed_on("_groups", Groups.list_groups)
    delete_groups = _passed_on("_groups", Groups.delete_groups)
    commit_offsets = _passed_on("_groups", Groups.commit_offsets)
    fetch_offsets = _passed_on("_groups", Groups.fetch_offsets)
    delete_offsets = _passed_on("_groups", Groups.delete_offsets)

    init_producer_id = _passed_on("_transactions", Transactions.init_producer_id)
    add_partitions_to_transaction = _passed_on("_transactions", Transactions.add_partitions_to_transaction)
    add_offsets_to_transaction = _passed_on("_transactions", Transactions.add_offsets_to_transaction)
    commit_transaction_offsets = _passed_on("_transactions", Transactions.commit_transaction_offsets)
    end_transaction = _passed_on("_transactions", Transactions.end_transaction)
    describe_producers = _passed_on("_transactions", Transactions.describe_producers)
    describe_transactions = _passed_on("_transactions", Transactions.describe_transactions)
    list_transactions = _passed_on("_transactions", Transactions.list_transactions)
