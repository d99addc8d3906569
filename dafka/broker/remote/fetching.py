"""Fetch: from every broker that leads one of the partitions, at the same time.

The first broker that has something ends the wait. The requests to the others are not lost: they stay under
way, and the next fetch that asks a broker for the same takes over the one that is there. So a slow broker
never makes another's records wait, and no records are fetched twice.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import NamedTuple

import gevent
import gevent.event
from kafka.errors import (
    IncompatibleBrokerVersion,
    KafkaConnectionError,
    KafkaStorageError,
    NetworkExceptionError,
    OffsetNotAvailableError,
    RequestTimedOutError,
    UnknownError,
)

from dafka.broker.codec.fetch_request import API_KEY, FLEXIBLE, HIGHEST, LOWEST, encode_fetch
from dafka.broker.codec.fetch_response import decode_fetch
from dafka.broker.codec.responses import body_of
from dafka.broker.interface.broker import NO_OFFSET, Error, Fetched, FetchFrom, TopicPartition
from dafka.broker.remote.cluster import LOST, Cluster
from dafka.broker.remote.leaders import leader_moved, no_leader
from dafka.broker.remote.limits import (
    EMPTY_PAUSE,
    FETCH_GRACE,
    FETCHES_KEPT,
    FETCHES_KEPT_SECONDS,
    RETRY_BACKOFF,
)
from dafka.broker.remote.nodes import Node

log = logging.getLogger(__name__)

Wanted = dict[TopicPartition, FetchFrom]
Answers = dict[TopicPartition, Fetched]


class _Asked(NamedTuple):
    """A fetch from one broker; equal ones have the same answers."""

    node: Node
    partitions: tuple[tuple[TopicPartition, FetchFrom], ...]
    min_bytes: int
    max_bytes: int
    read_committed: bool


class _Request:
    """A fetch under way at one broker."""

    def __init__(self, asked: _Asked, request_timeout: float, max_wait: float) -> None:
        self.asked = asked
        self.answers: Answers = {}
        self.started = time.monotonic()
        self._timeout = request_timeout
        self._max_wait = max_wait
        self.green = gevent.spawn(self._run)

    @property
    def found(self) -> Answers:
        """The partitions with something to tell."""
        return {key: one for key, one in self.answers.items() if one.batches or one.error or one.diverging}

    def _run(self) -> None:
        wanted = dict(self.asked.partitions)
        try:
            self.answers = self._ask(wanted)
        except RequestTimedOutError:
            self.answers = _failed(wanted, RequestTimedOutError)
        except LOST:
            self.answers = _failed(wanted, NetworkExceptionError)
        except IncompatibleBrokerVersion:
            self.answers = _failed(wanted, IncompatibleBrokerVersion)
        except Exception:
            log.exception("a fetch from %s failed on something unexpected", self.asked.node)
            self.answers = _failed(wanted, UnknownError)

    def _ask(self, wanted: Wanted) -> Answers:
        with self.asked.node.waiting() as connection:
            version = connection.version(API_KEY, LOWEST, HIGHEST)
            body = encode_fetch(
                wanted,
                version,
                int(self._max_wait * 1000),
                self.asked.min_bytes,
                self.asked.max_bytes,
                self.asked.read_committed,
            )
            flexible = version >= FLEXIBLE
            answer = connection.request(
                API_KEY, version, body, self._timeout + self._max_wait, flexible=flexible
            )
            error, answers = connection.decode(lambda: decode_fetch(body_of(answer, flexible), version))
        if error is not None:
            return _failed(wanted, error)
        return {one: answers.get(one, _nothing(NetworkExceptionError)) for one in wanted}


class Fetching:
    """All fetches of one client's process from one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kept: dict[_Asked, _Request] = {}
        self._sweeping: gevent.Greenlet | None = None

    def fetch(
        self,
        wanted: Mapping[TopicPartition, FetchFrom],
        max_wait: float,
        min_bytes: int,
        max_bytes: int,
        read_committed: bool,
    ) -> Answers:
        """See ``BrokerInterface.fetch``."""
        deadline = time.monotonic() + max_wait
        while True:
            began = time.monotonic()
            left = max(deadline - began, 0.0)
            requests, answers = self._begin(wanted, left, min_bytes, max_bytes, read_committed)
            try:
                if not answers:
                    self._wait(requests, left + FETCH_GRACE)
            finally:
                done = [one for one in requests if one.green.dead]
                self._keep([one for one in requests if not one.green.dead])
            for request in done:
                answers.update(request.found)
            passing = {key: one for key, one in answers.items() if _passes(one.error)}
            if passing:
                self._cluster.forget_leaders({topic for topic, _ in passing})
            found = {key: one for key, one in answers.items() if key not in passing}
            if any(_lost(one) for one in found.values()):
                self._cluster.forget_leaders({key[0] for key, one in found.items() if _lost(one)})
            if found:
                return found
            if time.monotonic() >= deadline:
                everything = {key: _nothing(None) for key in wanted}
                for request in done:
                    everything.update(request.answers)
                everything.update(passing)
                return everything
            # A broker that does not wait must not be asked all the time.
            if passing or time.monotonic() - began < EMPTY_PAUSE:
                pause = RETRY_BACKOFF if passing else EMPTY_PAUSE
                gevent.sleep(min(pause, max(deadline - time.monotonic(), 0.0)))

    def close(self) -> None:
        """Give up what is under way."""
        kept, self._kept = self._kept, {}
        for request in kept.values():
            request.green.kill(block=False)

    def _begin(
        self,
        wanted: Mapping[TopicPartition, FetchFrom],
        max_wait: float,
        min_bytes: int,
        max_bytes: int,
        read_committed: bool,
    ) -> tuple[list[_Request], Answers]:
        try:
            led, leaderless = self._cluster.by_leader(wanted)
        except KafkaConnectionError:
            return [], _failed(dict(wanted), NetworkExceptionError)
        answers = {one: _nothing(no_leader(self._cluster, one)) for one in leaderless}
        requests = []
        for node, some in led.items():
            partitions = tuple((one, wanted[one]) for one in some)
            asked = _Asked(node, partitions, min_bytes, max_bytes, read_committed)
            request = self._kept.pop(asked, None)
            if request is None:
                request = _Request(asked, self._cluster.request_timeout, max_wait)
            requests.append(request)
        return requests, answers

    def _wait(self, requests: list[_Request], seconds: float) -> None:
        """Until one of them has found something, all are over, or the time is."""
        deadline = time.monotonic() + seconds
        waiting = [request for request in requests if not request.green.dead]
        if any(request.found for request in requests if request.green.dead):
            return
        while waiting:
            left = deadline - time.monotonic()
            greens = [request.green for request in waiting]
            over = gevent.wait(greens, timeout=max(left, 0.0), count=1) if left > 0 else []
            if not over or any(request.found for request in waiting if request.green.dead):
                return
            waiting = [request for request in waiting if not request.green.dead]

    def _keep(self, requests: list[_Request]) -> None:
        for request in requests:
            while len(self._kept) >= FETCHES_KEPT:
                self._kept.pop(next(iter(self._kept))).green.kill(block=False)
            former = self._kept.pop(request.asked, None)
            if former is not None:
                former.green.kill(block=False)
            self._kept[request.asked] = request
        if self._kept and (self._sweeping is None or self._sweeping.dead):
            self._sweeping = gevent.spawn(self._sweep)

    def _sweep(self) -> None:
        while self._kept:
            gevent.sleep(FETCHES_KEPT_SECONDS / 4)
            old = time.monotonic() - FETCHES_KEPT_SECONDS
            for asked, request in list(self._kept.items()):
                if request.started < old and request.green.dead:
                    del self._kept[asked]


def _nothing(error: Error | None) -> Fetched:
    return Fetched(error, NO_OFFSET, NO_OFFSET, [])


def _failed(wanted: Wanted, error: Error) -> Answers:
    return dict.fromkeys(wanted, _nothing(error))


def _passes(error: Error | None) -> bool:
    """Whether the next answer may be another one: the leader has moved, or has not caught up."""
    return error is OffsetNotAvailableError or (leader_moved(error) and error is not KafkaStorageError)


def _lost(answer: Fetched) -> bool:
    return answer.error in (NetworkExceptionError, RequestTimedOutError, KafkaStorageError)
