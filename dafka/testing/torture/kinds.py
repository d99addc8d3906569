"""Every kind of fault, which calls it may meet, and why a correct program survives it.

A fault is one that real clusters do, and the broker stays a correct Kafka meanwhile: acknowledged records are
there, and refused ones are not written. Each kind belongs to a level:

``network``
    What a lossy network does to requests and answers. Kafka promises nothing about a request whose answer was
    lost: it may have been carried out or not.
``broker``
    What brokers that restart, move, lag and fill up say about themselves. All their errors may be retried,
    and clients do it by themselves.
``group``
    What the other members of a group do to this one. Kafka promises that a record is read by one member of a
    group at a time *per generation*, and that a consumer that has lost its membership cannot commit any more.
``everything``
    All of it, and a refusal that may not be retried.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

LEVELS = ("network", "broker", "group", "everything")

PRODUCE, FETCH = "produce", "fetch"
COMMIT, JOIN, SYNC = "commit", "join", "sync"
INIT, TRANSACTION = "init", "transaction"
ACQUIRE, ACKNOWLEDGE = "acquire", "acknowledge"

OPERATIONS: Mapping[str, str] = {
    PRODUCE: "a Produce with records for this partition",
    FETCH: "a Fetch whose answer has records of this partition",
    COMMIT: "an OffsetCommit of this group",
    JOIN: "a JoinGroup of this group",
    SYNC: "a SyncGroup of this group",
    INIT: "an InitProducerId of this transactional id, or of any producer that is only idempotent",
    TRANSACTION: "a request of this transactional id that commits offsets or ends the transaction",
    ACQUIRE: "a ShareFetch of this share group whose answer has records",
    ACKNOWLEDGE: "a ShareFetch or ShareAcknowledge of this share group that acknowledges records",
}
"""The calls that faults meet, each counted by itself for each partition, group or transactional id.

How often other calls are made (heartbeats, fetches that find nothing, metadata) depends on the time, so they
are not counted and meet no faults of their own.
"""


class Kind(NamedTuple):
    """A kind of fault. ``weight``: how often it is chosen, compared with others. ``planned``: operations for
    which only plans have it."""

    level: str
    operations: Sequence[str]
    does: str
    survived: str
    weight: float = 1.0
    planned: Sequence[str] = ()


_CALLS = (PRODUCE, FETCH, COMMIT, JOIN, SYNC, INIT, TRANSACTION, ACQUIRE, ACKNOWLEDGE)
_COORDINATED = (COMMIT, JOIN, SYNC, INIT, TRANSACTION)
# A member whose first JoinGroup lost its answer is waited for until its session ends, 10 to 45 s. So it is
# only for plans: a test should not take that long by chance.
_RETRIED = "the client repeats the request by itself"
_AGAIN = "records that were read and not committed are read again, and processing one twice does no harm"

KINDS: Mapping[str, Kind] = {
    "lost_request": Kind(
        "network", _CALLS, "the request is not carried out, and the connection ends", _RETRIED
    ),
    "lost_answer": Kind(
        "network",
        _CALLS,
        "the request is carried out, and the connection ends before the answer",
        "the client repeats it; an idempotent producer's batch is not written twice",
        weight=2.0,
        planned=(JOIN,),
    ),
    "cut_answer": Kind(
        "network",
        _CALLS,
        "the request is carried out, and the connection ends in the middle of the answer's frame",
        "as with lost_answer",
        planned=(JOIN,),
    ),
    "slow_answer": Kind("network", _CALLS, "the answer comes late", "a request's timeout is longer"),
    "refused": Kind(
        "network",
        _CALLS,
        "the request is not carried out, the connection ends, and the next ones are closed at once",
        "the client connects again",
        weight=0.5,
    ),
    "disconnect": Kind(
        "network",
        (PRODUCE, FETCH, COMMIT),
        "the request is not carried out, and all connections of all clients end",
        "clients connect again, and repeat what was under way",
        weight=0.5,
    ),
    "half_open": Kind(
        "network",
        _CALLS,
        "the request is carried out, and its connection stays open without an answer",
        "the client gives up after its request timeout, which takes as long; so it is not chosen by itself",
        weight=0.0,
    ),
    "not_leader": Kind("broker", (PRODUCE, FETCH), "NOT_LEADER_OR_FOLLOWER, as after an election", _RETRIED),
    "not_enough_replicas": Kind(
        "broker", (PRODUCE,), "NOT_ENOUGH_REPLICAS with acks=all: not written", _RETRIED
    ),
    "not_enough_replicas_after_append": Kind(
        "broker",
        (PRODUCE,),
        "NOT_ENOUGH_REPLICAS_AFTER_APPEND with acks=all: written",
        "the client repeats it; an idempotent producer's batch is not written twice",
    ),
    "timed_out": Kind(
        "broker",
        (PRODUCE,),
        "REQUEST_TIMED_OUT with acks=all: written, and the replicas are late",
        "the client repeats it; an idempotent producer's batch is not written twice",
    ),
    "full_disk": Kind("broker", (PRODUCE,), "KAFKA_STORAGE_ERROR: not written", _RETRIED),
    "empty": Kind(
        "broker", (FETCH,), "no records though there are some, as before replicas have them", _RETRIED
    ),
    "not_coordinator": Kind(
        "broker", _COORDINATED, "NOT_COORDINATOR, as after the coordinator has moved", _RETRIED
    ),
    "loading": Kind(
        "broker", _COORDINATED, "COORDINATOR_LOAD_IN_PROGRESS, as just after it has moved", _RETRIED
    ),
    "restart": Kind(
        "broker",
        (PRODUCE, FETCH, COMMIT, TRANSACTION, ACKNOWLEDGE),
        "the request is not carried out; the broker stops, and starts again with what is stored, without "
        "the members of groups",
        "clients connect again and repeat what was under way; for a member of a classic group it is as if "
        f"its session had ended: {_AGAIN}",
        weight=0.5,
    ),
    "evict": Kind(
        "group",
        (COMMIT, FETCH),
        "before the call the member that commits, or has the partition, is taken out of its group, as if "
        "its session had ended",
        f"the commit fails, the consumer joins again; {_AGAIN}",
        weight=2.0,
    ),
    "rebalance": Kind(
        "group",
        (COMMIT, FETCH),
        "before the call another member joins the group and leaves again",
        f"the consumer joins again; {_AGAIN}",
    ),
    "slow_member": Kind(
        "group",
        (COMMIT, FETCH),
        "before the call another member joins, and takes its time until it leaves",
        "as with rebalance; nothing is read meanwhile",
        weight=0.5,
    ),
    "denied": Kind(
        "everything",
        (PRODUCE,),
        "TOPIC_AUTHORIZATION_FAILED: not written, and not to be retried",
        "the program looks at what became of what it sent, and commits nothing that it did not write",
        weight=0.5,
    ),
}
"""All kinds of faults by name."""


def kinds_of(level: str) -> dict[str, Kind]:
    """The kinds that a level allows. Raises ValueError."""
    if level not in LEVELS:
        raise ValueError(f"a level is one of {', '.join(LEVELS)}, not {level!r}")
    return {name: kind for name, kind in KINDS.items() if level in (kind.level, "everything")}
