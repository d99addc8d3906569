"""A member of a share group as the hub knows it: heartbeats, its share session, and its requests in order.

Requests are carried out here, and the program's thread waits for them as long as it wants to. What it does
not wait for, or is interrupted in (Ctrl-C), goes on, and a later call has what came of it: acquired records
are not dropped, and no acknowledgement is sent twice.

Nothing here keeps the consumer alive. One that is dropped without ``close`` is collected, and leaves.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from time import monotonic
from typing import Any
from uuid import UUID, uuid4

import gevent
import gevent.event
from gevent.lock import BoundedSemaphore
from kafka.errors import (
    CorruptRecordError,
    FencedMemberEpochError,
    GroupIdNotFoundError,
    InvalidShareSessionEpochError,
    KafkaError,
    KafkaTimeoutError,
    RetriableError,
    ShareSessionNotFoundError,
    TopicAuthorizationFailedError,
    UnknownError,
    UnknownMemberIdError,
)
from kafka.structs import TopicPartition

from compat.kafka import _beats
from compat.kafka._client import Client
from compat.kafka.share._metrics import ShareMetrics
from compat.kafka.share._records import batches_of
from dafka.broker import BrokerStoppedError
from dafka.broker.interface.share import (
    CLOSE_SESSION,
    OPEN_SESSION,
    AcknowledgeType,
    ShareFetched,
    ShareFetchLimits,
    ShareHeartbeat,
    SharePlace,
    ShareRequest,
)

log = logging.getLogger(__name__)

JOIN, LEAVE = 0, -1
PAUSE = 0.1  # seconds until something is tried again
PATIENCE = 1.0  # seconds that the end waits for acknowledgements that a fetch has taken along

_LOST = (UnknownMemberIdError, FencedMemberEpochError, GroupIdNotFoundError)
_RAISED = (TopicAuthorizationFailedError, CorruptRecordError)  # of a partition, as by Kafka's consumer
_CLOSED = (ShareSessionNotFoundError, InvalidShareSessionEpochError)

Types = Mapping[TopicPartition, Mapping[int, int]]
"""Types of acknowledgements by partition and offset."""
Outcome = list[tuple[TopicPartition, Any]]
"""The error of the acknowledgements of each partition, a class or an exception, or None."""


class Request:
    """Acknowledgements on their way, and with ``limits`` a fetch."""

    def __init__(self, types: Types, limits: ShareFetchLimits | None = None) -> None:
        self.types = types
        self.limits = limits
        self.fetched: dict[TopicPartition, Any] = {}
        self.outcome: Outcome = []
        self.error: Exception | None = None  # of all of it
        self.has_begun = False
        self.is_over = False


class ShareMember:
    """One consumer's membership. Its methods are called in the hub."""

    def __init__(
        self, client: Client, config: Mapping[str, Any], metrics: ShareMetrics | None = None
    ) -> None:
        self._client = client
        self._metrics = metrics
        self._group = config["group_id"]
        self._client_id = config["client_id"] or ""
        self._rack = config["client_rack"] or None
        self.member_id = str(uuid4())
        self.failure: Exception | None = None  # for the program
        self._topics: tuple[str, ...] = ()
        self._told: tuple[str, ...] | None = None
        self._epoch = JOIN
        self._joins = False  # whether it has asked to join, and does not know the answer
        self._target: dict[UUID, tuple[int, ...]] = {}
        self._given: dict[UUID, tuple[int, ...]] = {}  # of it, topics that are known and subscribed to
        self._names: dict[UUID, str] = {}
        self._session = OPEN_SESSION
        self._places: frozenset[SharePlace] = frozenset()  # of the session
        self._acquired: dict[TopicPartition, SharePlace] = {}  # where the last records of each came from
        self._in_order = BoundedSemaphore(1)
        self._heart: gevent.Greenlet | None = None
        self._wake = gevent.event.Event()
        self._assigned = gevent.event.Event()
        self._closed = False
        self._news = gevent.event.Event()  # for the program's thread, the only one that waits for it
        self._fetching: gevent.Greenlet | None = None
        self._has_taken_along = False  # whether there are acknowledgements with the fetch
        self._sending: set[gevent.Greenlet] = set()  # acknowledgements without a fetch
        self.lock: float | None = None  # for how long (seconds) the records of the last fetch are acquired

    @property
    def _broker(self) -> Any:
        return self._client.broker

    @property
    def assignment(self) -> set[TopicPartition]:
        """The partitions of the member."""
        return {
            TopicPartition(self._names[topic], number)
            for topic, numbers in self._given.items()
            if topic in self._names
            for number in numbers
        }

    # -- membership ------------------------------------------------------------------------------------

    def subscribe(self, topics: tuple[str, ...]) -> None:
        """Read these topics from now on; none: leave the group."""
        self._topics = topics
        self._give()
        if self._heart is None:
            self._heart = self._client.hub.spawn(self._beat)
        self._wake.set()

    def _beat(self) -> None:
        while not self._closed:
            pause = PAUSE
            try:
                pause = self._heartbeat()
            except BrokerStoppedError:
                pass
            except Exception as error:  # of a value that no request has room for, too
                self.failure, self._joins = error, False
                self._news.set()
            self._wake.wait(pause)
            self._wake.clear()

    def _heartbeat(self) -> float:
        """One heartbeat; seconds until the next one."""
        if not self._topics:
            _beats.end(self)
            self._leave()
            return 60.0
        topics = None if self._told == self._topics and self._epoch != JOIN else self._topics
        began = monotonic()
        self._joins = self._joins or self._epoch == JOIN
        answer = self._broker.share_heartbeat(self._beat_with(self._epoch, topics))
        if self._metrics is not None:
            self._metrics.beaten(began)
        if self._closed:
            return 60.0
        if answer.error in _LOST and self._epoch != JOIN:
            self._epoch, self._target, self._given = JOIN, {}, {}
            return 0.001
        if answer.error is not None:
            if not issubclass(answer.error, RetriableError):
                self.failure = answer.error(answer.detail)
                self._news.set()
            return PAUSE
        self._epoch, self._joins = answer.member_epoch, False
        self._told = topics or self._told
        if answer.assignment is not None:
            target = {topic: tuple(numbers) for topic, numbers in answer.assignment.items()}
            if self._metrics is not None and target != self._target:
                self._metrics.rebalanced()
            self._target = target
        is_known = self._take_over()
        interval: float = answer.interval
        if not is_known:
            return min(interval, PAUSE)
        return interval if self._broker.is_remote else _beats.pause(self, interval)

    def _take_over(self) -> bool:
        """Read what the member was given, but for topics whose names are not known yet; whether all are.

        A topic without a name is not fetched: what came of it would be dropped, and locked for others.
        """
        target = self._target
        if target.keys() - self._names.keys():
            with suppress(RetriableError):
                found = self._broker.metadata(self._topics).topics
                self._names.update({one.topic_id: name for name, one in found.items() if one.error is None})
        if target is self._target:  # still, after the wait for an answer
            self._give()
            self._assigned.set()
        return target.keys() <= self._names.keys()

    def _give(self) -> None:
        """Read what is assigned and subscribed to: the coordinator may not know of the subscription yet."""
        self._given = {
            topic: numbers
            for topic, numbers in self._target.items()
            if self._names.get(topic) in self._topics
        }

    def _beat_with(self, epoch: int, topics: tuple[str, ...] | None) -> ShareHeartbeat:
        return ShareHeartbeat(
            self._group, self.member_id, epoch, topics, self._rack if epoch == JOIN else None, self._client_id
        )

    def _leave(self) -> None:
        is_member, self._epoch, self._joins = self._epoch != JOIN or self._joins, JOIN, False
        self._target, self._given, self._told = {}, {}, None
        if is_member:
            self._broker.share_heartbeat(self._beat_with(LEAVE, None))

    def close(self, types: Types) -> Outcome:
        """Acknowledge what is left, give everything else back, and leave; what became of acknowledgements."""
        self._closed = True
        _beats.end(self)
        self._wake.set()
        fetching = self._fetching
        if fetching is not None:  # nobody wants its records any more
            if self._has_taken_along or self._sending:
                fetching.join(PATIENCE)
            fetching.kill()
        gevent.joinall(list(self._sending))  # they wait for their turn, which is not that of a session's end
        outcome: Outcome = []
        with suppress(BrokerStoppedError, KafkaError):
            with self._in_order:
                if self._session != OPEN_SESSION:
                    outcome = self._acknowledge(types, CLOSE_SESSION)
            self._leave()
        with suppress(BrokerStoppedError):
            self._broker.forget_connection(self)
        return outcome

    # -- requests ----------------------------------------------------------------------------------------

    def carry_out(self, request: Request, token: object) -> None:
        """Have an answer to a request, unless that has begun before; in a green thread of its own."""
        if request.has_begun:
            return
        request.has_begun = True
        try:
            if request.limits is None:
                self._sending.add(gevent.getcurrent())
                request.outcome = self._send(request.types)
            elif not self._closed:
                self._fetching, self._has_taken_along = gevent.getcurrent(), bool(request.types)
                request.fetched, request.outcome = self._fetch(request.types, request.limits, token)
        except gevent.GreenletExit:
            request.outcome = [(key, KafkaTimeoutError) for key in request.types]
        except Exception as error:
            request.error = error
            request.outcome = [(key, error) for key in request.types]
        finally:
            if request.limits is not None:
                self._fetching = None
            self._sending.discard(gevent.getcurrent())
            request.is_over = True
            if self._metrics is not None:
                errors = dict(request.outcome)
                failed = [len(some) for key, some in request.types.items() if errors.get(key) is not None]
                self._metrics.sent(sum(map(len, request.types.values())), sum(failed))
            self._news.set()

    def error_of(self, request: Request) -> Exception | None:
        """What a request has met, but for the stop of a broker that has been started again since."""
        is_over = isinstance(request.error, BrokerStoppedError) and self._broker.running
        return None if is_over else request.error

    def wait(self, request: Request, seconds: float) -> None:
        """Wait for a request, or for :meth:`interrupt`."""
        if not request.is_over:
            self._news.wait(seconds)
        self._news.clear()

    def interrupt(self) -> None:
        """End the wait of the program's thread."""
        self._news.set()

    def _fetch(
        self, types: Types, limits: ShareFetchLimits, token: object
    ) -> tuple[dict[TopicPartition, Any], Outcome]:
        """Acknowledge, and acquire further records: both by partition, the first with what was fetched."""
        if not self._given:
            self._assigned.clear()
            self._assigned.wait(limits.max_wait)
        with self._in_order:
            places = {(topic, number) for topic, numbers in self._given.items() for number in numbers}
            if not places and not types:
                return {}, []
            lost: Outcome = []
            if self._session == OPEN_SESSION and types:
                lost, types = [(key, ShareSessionNotFoundError) for key in types], {}
            request = self._request(types, self._session)
            added = places - self._places
            began = monotonic()
            answer = self._broker.share_fetch(request, added, self._places - places, limits, token)
            if self._metrics is not None:
                self._metrics.fetched(began, *_sizes(answer))
            if answer.error in _CLOSED:
                self._session, self._places = OPEN_SESSION, frozenset()
                return {}, lost + [(key, answer.error) for key in types]
            if answer.error is UnknownError:  # Kafka's for topics that were deleted meanwhile
                self._session, self._places = OPEN_SESSION, frozenset()
            elif answer.error is not None and not issubclass(answer.error, RetriableError):
                raise answer.error(answer.detail)
            if answer.error is not None:
                gevent.sleep(PAUSE)
                return {}, lost + [(key, answer.error) for key in types]
            self._session, self._places = self._session + 1, frozenset(places)
            self.lock = answer.lock
            outcome = lost + self._outcome(answer, types)  # before the ids of what was fetched are noted
            fetched = self._named(answer)
            self._look_at_errors(answer, limits)
            return fetched, outcome

    def _look_at_errors(self, answer: ShareFetched, limits: ShareFetchLimits) -> None:
        """Keep the errors of partitions that are the program's business; wait if there is nothing else."""
        errors = {place: one.error for place, one in answer.partitions.items() if one.error is not None}
        for (topic, number), error in errors.items():
            if error in _RAISED and topic in self._names:
                self.failure = error(f"partition {number} of topic {self._names[topic]!r}")
        if errors and not any(one.batches for one in answer.partitions.values()):
            gevent.sleep(min(PAUSE, limits.max_wait))  # with an error the answer comes at once

    def _send(self, types: Types) -> Outcome:
        """Acknowledge without a fetch."""
        with self._in_order:
            if self._session == OPEN_SESSION:
                return [(key, ShareSessionNotFoundError) for key in types]
            return self._acknowledge(types, self._session)

    def _acknowledge(self, types: Types, epoch: int) -> Outcome:
        began = monotonic()
        answer = self._broker.share_acknowledge(self._request(types, epoch))
        if self._metrics is not None:
            self._metrics.acknowledged(began)
        if answer.error is not None:
            if answer.error in _CLOSED:
                self._session, self._places = OPEN_SESSION, frozenset()
            return [(key, answer.error) for key in types]
        self._session = OPEN_SESSION if epoch == CLOSE_SESSION else epoch + 1
        return self._outcome(answer, types)

    def _request(self, types: Types, epoch: int) -> ShareRequest:
        given = {self._acquired[key]: batches_of(some) for key, some in types.items()}
        renews = any(AcknowledgeType.RENEW in some.values() for some in types.values())
        return ShareRequest(self._group, self.member_id, epoch, given, renews)

    def _named(self, answer: ShareFetched) -> dict[TopicPartition, Any]:
        """What was acquired, by partition; each is acknowledged under the id of its topic, which may be
        deleted and made again meanwhile."""
        found: dict[TopicPartition, Any] = {}
        for place, one in answer.partitions.items():
            if one.acquired and place[0] in self._names:
                partition = TopicPartition(self._names[place[0]], place[1])
                found[partition], self._acquired[partition] = one, place
        return found

    def _outcome(self, answer: ShareFetched, types: Types) -> Outcome:
        found = {key: answer.partitions.get(self._acquired[key]) for key in types}
        return [(key, None if one is None else one.acknowledge_error) for key, one in found.items()]


def _sizes(answer: ShareFetched) -> tuple[int, int]:
    """How many octets of batches there are in an answer, and how many acquired records."""
    partitions = answer.partitions.values()
    return (
        sum([len(batch) for one in partitions for batch in one.batches]),
        sum([run.last - run.first + 1 for one in partitions for run in one.acquired]),
    )
