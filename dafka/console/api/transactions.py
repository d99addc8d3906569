"""Transactions: which are open, since when, where, and what they hold up; and ending one."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any

import gevent
from kafka.errors import ConcurrentTransactionsError

from dafka.broker.interface.records import LATEST
from dafka.broker.looking.outcomes import RefusedError, check
from dafka.console import limits
from dafka.console.api.topics import THE_TOPIC, chosen
from dafka.console.desk import Desk
from dafka.console.errors import NotThereError
from dafka.console.routes import NAME, OFFSET, PARTITION, TEXT, Parameter, Routes, thing

routes = Routes()

_ID = Parameter("id", NAME, "The transactional id", required=True)
_OPEN = {"Ongoing", "PrepareCommit", "PrepareAbort"}
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
    known = {id_: described[id_] for id_ in ids if described[id_].error is None}
    keys = {key for one in known.values() if one.state in _OPEN for key in one.partitions}
    begun: dict[int, list[dict[str, Any]]] = {}
    for one in _begun(desk, sorted(keys)):
        begun.setdefault(one["producer_id"], []).append(one)
    return {
        "total": len(found),
        "matching": len(matching),
        "transactions": [
            _row(id_, one) | {"begun": begun.get(one.producer_id, [])} for id_, one in known.items()
        ],
    }


@routes.add(
    "GET",
    "/topics/{topic}/transactions",
    "What is open in the partitions of a topic; `holds`: readers of committed records wait for it",
    THE_TOPIC,
)
def get_open_transactions(desk: Desk, topic: str) -> dict[str, Any]:
    """A producer without a transaction of its own ("hanging") has no ``id``."""
    begun = _begun(desk, chosen(desk, topic, None))
    ids = _ids(desk, {one["producer_id"] for one in begun})
    described = desk.call("describe_transactions", sorted(ids.values())) if ids else {}
    for one in begun:
        id_ = ids.get(one["producer_id"])
        known = described.get(id_)
        one |= {"id": None, "started": None}
        if known is not None and known.error is None and (topic, one["partition"]) in known.partitions:
            one |= {"id": id_, "started": None if known.started < 0 else known.started}
    return {"transactions": begun}


@routes.add(
    "POST",
    "/topics/{topic}/abort",
    "End what a producer has open in a partition although no transaction has it: a hanging one",
    THE_TOPIC,
    body=thing(
        ["partition", "producer_id", "epoch"],
        partition=PARTITION,
        producer_id=OFFSET,
        epoch={"type": "integer", "minimum": 0, "maximum": 2**15 - 1},
    ),
)
def abort_in_partition(desk: Desk, topic: str, body: Any) -> dict[str, Any]:
    key, producer = (topic, body["partition"]), body["producer_id"]
    chosen(desk, topic, [key[1]])
    if not any(one["partition"] == key[1] and one["producer_id"] == producer for one in _begun(desk, [key])):
        raise NotThereError(f"producer {producer} has nothing open in {topic}-{key[1]}")
    id_ = _ids(desk, [producer]).get(producer)
    if id_ is not None and key in desk.call("describe_transactions", [id_])[id_].partitions:
        raise RefusedError(f"the transaction of {id_} has it: abort that one", ["InvalidTxnStateError"])
    check({f"{topic}-{key[1]}": desk.call("write_markers", producer, body["epoch"], False, [key])[key]})
    return {"partition": key[1]}


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


def _begun(desk: Desk, keys: Collection[tuple[str, int]]) -> list[dict[str, Any]]:
    """Open transactions in some partitions, and what they hold up; of too many, only in the first."""
    asked = list(keys)[: limits.PARTITIONS_ASKED]
    if not asked:
        return []
    stable, end = (
        desk.call("list_offsets", dict.fromkeys(asked, LATEST), read_committed=committed)
        for committed in (True, False)
    )
    held = [key for key in asked if stable[key].error is None and end[key].error is None]
    held = [key for key in held if stable[key].offset < end[key].offset]
    found = desk.call("describe_producers", held) if held else {}
    return [
        {
            "topic": key[0],
            "partition": key[1],
            "producer_id": one.producer_id,
            "epoch": one.epoch,
            "from": one.transaction_start,
            "last_write": one.last_timestamp,
            "last_stable": stable[key].offset,
            "end": end[key].offset,
            "holds": one.transaction_start == stable[key].offset,
        }
        for key in held
        if found[key].error is None
        for one in found[key].producers
        if one.transaction_start >= 0
    ][: limits.FOUND]


def _ids(desk: Desk, producers: Collection[int]) -> dict[int, str]:
    """Transactional ids by producer id."""
    if not producers:
        return {}
    listed = desk.call("list_transactions", [], sorted(producers))
    return {one.producer_id: one.transactional_id for one in listed}


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
