"""Transactions: which are open, since when, where; and ending one."""

from __future__ import annotations

import time
from typing import Any

import gevent
from kafka.errors import ConcurrentTransactionsError

from dafka.broker.looking.outcomes import check
from dafka.console import limits
from dafka.console.desk import Desk
from dafka.console.routes import NAME, TEXT, Parameter, Routes

routes = Routes()

_ID = Parameter("id", NAME, "The transactional id", required=True)
_PATIENCE, _PAUSE = 10.0, 0.1  # seconds that the end of a transaction is waited for


@routes.add(
    "GET",
    "/transactions",
    "Transactional ids with their states; open ones with their age and partitions",
    Parameter("search", TEXT, "Only ids with this in them", default=""),
    Parameter("state", TEXT, "Only in this state, by Kafka's word: Ongoing, Empty ..."),
)
def list_transactions(desk: Desk, search: str, state: str | None) -> dict[str, Any]:
    found = sorted(desk.call("list_transactions", [state] if state else []))
    matching = [one for one in found if search in one.transactional_id]
    shown = matching[: limits.TOPICS_SHOWN]
    ids = [one.transactional_id for one in shown]
    described = desk.call("describe_transactions", ids) if ids else {}
    return {
        "total": len(found),
        "matching": len(matching),
        "transactions": [_row(id_, described[id_]) for id_ in ids if described[id_].error is None],
    }


@routes.add("POST", "/transaction/abort", "Abort an open transaction; its producer is fenced", _ID)
def abort_transaction(desk: Desk, id: str) -> dict[str, Any]:
    found = desk.call("describe_transactions", [id])[id]
    check({id: found})
    deadline = time.monotonic() + _PATIENCE
    while True:  # as a new producer with this id does it
        outcome = desk.call("init_producer_id", id, found.timeout)
        if outcome.error is not ConcurrentTransactionsError or time.monotonic() > deadline:
            break
        gevent.sleep(_PAUSE)  # it is being ended
    check({id: outcome})
    return {"id": id}


def _row(transactional_id: str, one: Any) -> dict[str, Any]:
    return {
        "id": transactional_id,
        "state": one.state,
        "producer_id": one.producer_id,
        "epoch": one.epoch,
        "timeout": one.timeout,
        "started": None if one.started < 0 else one.started,
        "partitions": [list(key) for key in sorted(one.partitions)[: limits.TOPICS_SHOWN]],
    }
