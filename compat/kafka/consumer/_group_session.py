"""A consumer's membership as the coordinator sees it: joins, syncs and heartbeats, in the hub.

The program's thread (:mod:`~compat.kafka.consumer._group_member`) decides; this does what must go on while
that thread computes or has given up waiting. A join that a short ``poll`` does not wait out continues
here, and the next ``poll`` finds its outcome. Heartbeats begin as soon as a join has been answered and go on
until the next one; each is parked at the coordinator until its interval is over or a rebalance begins, so
that members hear of it at once.

The error of a heartbeat, a class, is kept as the ``pending_error``: the program's thread acts on it in its
next ``poll``, and a fetch that it waits in is ended. A program that does not poll for
``max_poll_interval_ms`` is taken out of its group here.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from time import monotonic
from typing import Any

import gevent
import gevent.event
from kafka.errors import (
    FencedInstanceIdError,
    GroupAuthorizationFailedError,
    GroupMaxSizeReachedError,
    IllegalGenerationError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    RetriableError,
    UnknownMemberIdError,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolType

from compat.kafka._calls import Calls
from compat.kafka._client import Client
from compat.kafka._metrics import ConsumerMetrics
from compat.kafka.consumer._in_group import GroupSession
from dafka.broker import BrokerStoppedError
from dafka.broker.interface.broker import Joined, JoinRequest, LeavingMember, Synced
from dafka.hub.hub import Hub

log = logging.getLogger(__name__)

NO_GENERATION = -1
SHORTEST_INTERVAL = 0.005  # seconds between heartbeats, whatever is configured: the hub has more to do

Protocols = Sequence[tuple[str, bytes]]


class JoinAttempt:
    """A join or sync under way. ``outcome``: Joined (for the leader, which assigns), Synced, an exception."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.outcome: Joined | Synced | Exception | None = None
        self.green: gevent.Greenlet | None = None
        self._over = gevent.event.Event()  # belongs to the hub

    def wait(self, seconds: float) -> bool:
        """Wait for the outcome; whether there is one. For the program's thread."""
        if self.outcome is None and seconds > 0:
            self._hub.run(self._over.wait, seconds)
        return self.outcome is not None

    def wake(self) -> None:
        """End the wait; for any thread."""
        self._hub.post(self._over.set)

    def run(self, attempt: Callable[[], Joined | Synced | Exception]) -> None:
        """Make the attempt; in a green thread of the hub."""
        try:
            self.outcome = attempt()
        except Exception as error:
            self.outcome = error
        finally:
            self._over.set()


class Session(GroupSession):
    """One consumer's membership as the hub knows it."""

    LEAVING = "LeaveGroup"

    def __init__(
        self, client: Client, calls: Calls, config: Mapping[str, Any], wake_caller: Callable[[], None]
    ) -> None:
        """``wake_caller``, a method that is called in the hub, ends a fetch of the program's thread."""
        super().__init__(client, calls, config, wake_caller)
        self._session_timeout = config["session_timeout_ms"] / 1000
        self._interval = max(config["heartbeat_interval_ms"] / 1000, SHORTEST_INTERVAL)
        self.member_id = ""
        self.generation = NO_GENERATION
        self.protocol: str | None = None
        self.pending_error: Any = None  # the error class that heartbeats or commits have met
        self.metrics: ConsumerMetrics | None = None
        self._attempt: JoinAttempt | None = None
        self._heart: gevent.Greenlet | None = None

    # -- from the program's thread --------------------------------------------------------------

    @property
    def lost(self) -> bool:
        """Whether other members may have this consumer's partitions: it has no valid membership."""
        return self.generation == NO_GENERATION or not self.member_id or self.pending_error in _LOSSES

    @property
    def called(self) -> bool:
        """Whether the program's thread has to act on :attr:`pending_error`."""
        return self.pending_error is not None

    @property
    def broker_runs(self) -> bool:
        """Whether the broker can be called; one of this process may have been stopped and started again."""
        return self._broker.running

    def join(self, protocols: Protocols, assignments: Mapping[str, bytes] | None = None) -> JoinAttempt:
        """Join and sync; with ``assignments``, which only a leader has, just sync."""
        attempt = JoinAttempt(self._client.hub)
        self._client.hub.post(self._begin, attempt, protocols, assignments)
        return attempt

    def fail_membership(self, error: Any, generation: int, member_id: str) -> None:
        """Have the program's thread join again: a commit under that name was refused."""
        if (generation, member_id) == (self.generation, self.member_id) and self.pending_error not in _LOSSES:
            self.pending_error = error

    def forget(self) -> None:
        """The membership is lost: begin anew."""
        if self.pending_error is not IllegalGenerationError:
            self.member_id = ""
        self.generation = NO_GENERATION
        self.protocol = None
        self.pending_error = None

    # -- in the hub -----------------------------------------------------------------------------

    def _begin(self, attempt: JoinAttempt, protocols: Protocols, assignments: Any) -> None:
        self._end_attempt()  # an earlier one, whose program was interrupted before it noted it
        self._attempt = attempt
        attempt.green = self._client.hub.spawn(
            attempt.run, lambda: self._join_and_sync(protocols, assignments)
        )

    def _join_and_sync(self, protocols: Protocols, assignments: Any) -> Joined | Synced | Exception:
        while True:
            if assignments is None:
                joined = self._join(protocols)
                if isinstance(joined, Exception):
                    return joined
                if joined.leader == joined.member_id and not joined.skip_assignment:
                    return joined
            began = monotonic()
            synced = self._broker.sync_group(
                self._group,
                self.generation,
                self.member_id,
                self.instance_id,
                protocol_type=ConsumerProtocolType,
                protocol=self.protocol,
                assignments=assignments,
            )
            if self.metrics is not None:
                self.metrics.synced(began)
            if synced.error is None:
                return synced
            log.info("SyncGroup for group %s: %s", self._group, synced.error.__name__)
            if synced.error is FencedInstanceIdError:
                return self._exception(synced.error)
            if synced.error in _LOSSES:
                self.pending_error = synced.error
                return UnknownMemberIdError()
            if synced.error is not RebalanceInProgressError and not issubclass(synced.error, RetriableError):
                return self._exception(synced.error)
            assignments = None

    def _join(self, protocols: Protocols) -> Joined | Exception:
        self._stop_heart()
        self.pending_error = None
        while True:
            request = JoinRequest(
                self.member_id,
                self._session_timeout,
                self._poll_interval,
                ConsumerProtocolType,
                protocols,
                self.instance_id,
                self._client_id,
                require_known_member=True,
            )
            began = monotonic()
            joined = self._broker.join_group(self._group, request)
            if self.metrics is not None:
                self.metrics.joined(began)
            error = joined.error
            if error is None:
                break
            log.debug("JoinGroup for group %s: %s", self._group, error.__name__)
            if error is MemberIdRequiredError:
                self.member_id = joined.member_id
            elif error is UnknownMemberIdError:
                self.pending_error = error
                return UnknownMemberIdError()
            elif error is RebalanceInProgressError or issubclass(error, RetriableError):
                gevent.sleep(self._backoff)
            else:
                return self._exception(error)
        self.member_id = joined.member_id
        self.generation = joined.generation
        self.protocol = joined.protocol
        self._heart = self._client.hub.spawn(self._beat)
        log.info("joined group %s as %s, generation %d", self._group, self.member_id, self.generation)
        return joined

    def _exception(self, error: Any) -> Exception:
        if error in (GroupAuthorizationFailedError, GroupMaxSizeReachedError):
            return error(self._group)  # type: ignore[no-any-return]
        if error is FencedInstanceIdError:
            return error((self._group, self.instance_id))
        return error()  # type: ignore[no-any-return]

    # -- heartbeats -----------------------------------------------------------------------------

    def _beat(self) -> None:
        me = gevent.getcurrent()
        try:
            while self._heart is me:
                left = self._poll_interval - (monotonic() - self.last_poll)
                if left < 0:
                    self._give_up()
                    return
                seconds = min(self._interval, left + 0.001)
                began = monotonic()
                try:
                    error = self._broker.heartbeat(
                        self._group, self.generation, self.member_id, self.instance_id, max_wait=seconds
                    )
                except BrokerStoppedError:  # one of this process, which may be started again
                    gevent.sleep(self._backoff)
                    continue
                if self.metrics is not None:
                    self.metrics.heartbeat(began, seconds)
                if error is None or self._heart is not me:
                    continue
                if issubclass(error, RetriableError):  # no coordinator for the moment
                    gevent.sleep(self._backoff)
                    continue
                self.pending_error = error
                self._wake_program()
                if error is not RebalanceInProgressError:
                    log.warning(
                        "Heartbeat of %s in group %s: %s", self.member_id, self._group, error.__name__
                    )
                    return
                # The member stays alive while its program has no time to join again.
                gevent.sleep(seconds)
        except BrokerStoppedError:
            pass

    def _give_up(self) -> None:
        log.warning(
            "Consumer poll timeout has expired. This means the time between subsequent calls to poll() was "
            "longer than the configured max_poll_interval_ms (%d), which typically implies that the poll "
            "loop is spending too much time processing messages. You can address this either by "
            "increasing max_poll_interval_ms or by reducing the maximum size of batches returned in poll() "
            "with max_poll_records.",
            self._poll_interval * 1000,
        )
        self.pending_error = UnknownMemberIdError
        if self.instance_id is None:
            self._broker.leave_group(self._group, [LeavingMember(self.member_id)])

    def _stop_heart(self) -> None:
        heart, self._heart = self._heart, None
        if heart is not None:
            heart.kill(block=False)

    def _end_attempt(self) -> None:
        attempt, self._attempt = self._attempt, None
        if attempt is not None and attempt.green is not None:
            attempt.green.kill(block=False)

    def _leave(self) -> None:
        self._stop_heart()
        self._end_attempt()
        member_id, self.member_id = self.member_id, ""
        self.generation, self.protocol, self.pending_error = NO_GENERATION, None, None
        if member_id and self.instance_id is None:
            self._broker.leave_group(self._group, [LeavingMember(member_id)])


_LOSSES = (UnknownMemberIdError, IllegalGenerationError)
