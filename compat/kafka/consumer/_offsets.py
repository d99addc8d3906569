"""A consumer's positions: where they come from when it has none, and committing them for its group.

A partition without a position starts at its group's committed offset; without one, where
``auto_offset_reset`` says; with neither, ``NoOffsetForPartitionError``. The states in between are kept by
kafka-python's ``SubscriptionState``.

Automatic commits happen in the consumer's own calls, as in kafka-python: in a poll after
``auto_commit_interval_ms``, before an assignment changes, and when it closes. They commit the
positions: the records that were returned to the program so far.
"""

from __future__ import annotations

import logging
import struct
from collections import deque
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any

import gevent
from kafka.consumer.subscription_state import SubscriptionState
from kafka.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    GroupIdNotFoundError,
    IllegalGenerationError,
    RebalanceInProgressError,
    RetriableError,
    StaleMemberEpochError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnstableOffsetCommitError,
)
from kafka.future import Future
from kafka.structs import OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from kafka.util import Timer

from compat.kafka._calls import Calls, NotYetError
from compat.kafka._client import Client
from compat.kafka._metrics import ConsumerMetrics
from compat.kafka.consumer._fetches import reads_committed
from compat.kafka.consumer._membership import Identity, Membership
from dafka.broker.interface.broker import CommittedOffset, Error

log = logging.getLogger(__name__)

IDLE_PAUSE = 0.05  # seconds between looks when there is nothing to wait for

Offsets = dict[TopicPartition, OffsetAndMetadata]

_LOST = UnknownMemberIdError, IllegalGenerationError, GroupIdNotFoundError, RebalanceInProgressError
"""Errors of a commit after which the member has to join again."""


class Positions:
    """Finds, resets and commits the positions of one consumer."""

    def __init__(
        self,
        client: Client,
        calls: Calls,
        subscription: SubscriptionState,
        member: Membership,
        config: dict[str, Any],
        metrics: ConsumerMetrics | None = None,
    ) -> None:
        self._client = client
        self._calls = calls
        self._metrics = metrics
        self._subscription = subscription
        self._member = member
        self._config = config
        self._group_id = config["group_id"]
        self._interval = config["auto_commit_interval_ms"] / 1000
        self._next_commit = monotonic() + self._interval
        self._completed: deque[tuple[Callable[..., Any], Offsets, Any]] = deque()
        self._fenced = False

    # -- finding and resetting -----------------------------------------------------------------

    def resolve(self, deadline: float) -> bool:
        """Give every assigned partition a position; whether all have one now.

        Answers that come after ``deadline`` are kept for the next call.

        Raises:
            NoOffsetForPartitionError: neither a committed offset nor a reset policy.
        """
        subscription = self._subscription
        if subscription.has_all_fetch_positions():
            return True
        try:
            missing = subscription.missing_fetch_positions()
            if missing and self._group_id is not None:
                for partition, committed in self._committed(missing, deadline).items():
                    position = OffsetAndMetadata(committed.offset, "", committed.leader_epoch)
                    subscription.seek(partition, position)
            subscription.reset_missing_positions()
            waiting = subscription.partitions_needing_reset()
            if waiting:
                self._reset(waiting, deadline)
        except NotYetError:
            return False
        except RetriableError as error:
            log.debug("no positions: %s", error)
            return False
        return bool(subscription.has_all_fetch_positions())

    def await_position(self, partition: TopicPartition, timeout_ms: float | None) -> int | None:
        """The position of an assigned partition; None if it is not known within ``timeout_ms``."""
        timer = Timer(timeout_ms)
        seconds = timer.timeout_secs
        deadline = float("inf") if seconds is None else monotonic() + seconds
        state = self._subscription.assignment[partition]
        while not self.resolve(deadline) and state.position is None and not timer.expired:
            left = timer.timeout_secs
            self._client.pause(IDLE_PAUSE if left is None else min(left, IDLE_PAUSE))
        return None if state.position is None else state.position.offset

    def _reset(self, partitions: set[TopicPartition], deadline: float) -> None:
        subscription = self._subscription
        assignment = subscription.assignment
        wanted = {tuple(one): int(assignment[one].reset_strategy) for one in sorted(partitions)}
        key = "offsets", tuple(wanted.items())
        found = self._calls.resume(key, deadline - monotonic(), self._list_in_hub, wanted)
        answers = {partition: found[tuple(partition)] for partition in partitions}
        for partition, answer in answers.items():
            if answer.error is None:
                subscription.seek(partition, answer.offset)
                continue
            error = answer.error(partition)
            if not isinstance(error, RetriableError):
                raise error
            subscription.reset_failed([partition], monotonic() + self._config["retry_backoff_ms"] / 1000)
            self._member.changed()

    def _list_in_hub(self, timestamps: Any) -> Any:
        return self._client.broker.list_offsets(timestamps, read_committed=reads_committed(self._config))

    def offsets_at(
        self, timestamps: dict[TopicPartition, int], timeout_ms: float | None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first offset at or after each timestamp (-1: the end, -2: the beginning), None if none.

        Raises:
            KafkaTimeoutError: a partition stayed unknown for ``timeout_ms``.
        """
        timer = Timer(timeout_ms, f"Failed to get offsets by timestamps in {timeout_ms} ms")
        found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
        missing = dict(timestamps)
        while missing:
            wanted = {(one.topic, one.partition): int(timestamp) for one, timestamp in missing.items()}
            answers = self._calls.within(timer.timeout_ms, "ListOffsets", self._list_in_hub, wanted)
            for partition in list(missing):
                answer = answers[tuple(partition)]
                if answer.error is None:
                    del missing[partition]
                    exists = answer.offset is not None and answer.offset >= 0
                    found[partition] = (
                        OffsetAndTimestamp(answer.offset, answer.timestamp, answer.leader_epoch)
                        if exists
                        else None
                    )
                    continue
                error = answer.error(partition)
                if not isinstance(error, RetriableError):
                    raise error
            if missing:
                self._back_off(timer)
                timer.maybe_raise()
        return found

    def _back_off(self, timer: Timer) -> None:
        seconds = self._config["retry_backoff_ms"] / 1000
        if timer.timeout_secs is not None:
            seconds = min(seconds, timer.timeout_secs)
        self._client.pause(seconds)

    # -- committed offsets -----------------------------------------------------------------------

    def fetch_committed(self, partitions: Iterable[TopicPartition], timeout_ms: float | None) -> Offsets:
        """The group's committed offsets; partitions without one are left out.

        Raises:
            KafkaTimeoutError: the broker did not say within ``timeout_ms`` (None: it is waited for).
        """
        wanted = [tuple(partition) for partition in partitions]
        return _as_offsets(self._calls.within(timeout_ms, "OffsetFetch", self._committed_in_hub, wanted))

    def _committed(self, partitions: Iterable[TopicPartition], deadline: float) -> Offsets:
        wanted = sorted(tuple(partition) for partition in partitions)
        # Since an earlier generation other members may have committed more.
        key = "committed", self._member.generation, tuple(wanted)
        return _as_offsets(self._calls.resume(key, deadline - monotonic(), self._committed_in_hub, wanted))

    def _committed_in_hub(self, wanted: Any) -> Any:
        stable = reads_committed(self._config)
        while True:
            try:
                return self._client.broker.fetch_offsets(self._group_id, wanted, require_stable=stable)
            except UnstableOffsetCommitError:  # an open transaction commits them; wait for its end
                gevent.sleep(self._config["retry_backoff_ms"] / 1000)

    def commit(
        self, offsets: Offsets, timeout_ms: float | None, *, final: tuple[type[Exception], ...] = ()
    ) -> None:
        """Commit and wait for it, repeating it while the error is one that passes and not ``final``.

        Raises:
            TypeError: not ``{TopicPartition: OffsetAndMetadata}``.
            CommitFailedError: subscribed, but no (longer a) member of the group.
            RebalanceInProgressError: a rebalance is under way; poll and try again.
            FencedInstanceIdError: another consumer has joined with this ``group_instance_id``.
            KafkaTimeoutError: the error did not pass within ``timeout_ms`` (``request_timeout_ms``).
        """
        _check_offsets(offsets)
        self.call_back()
        if not offsets:
            return
        timeout_ms = self._config["request_timeout_ms"] if timeout_ms is None else timeout_ms
        timer = Timer(timeout_ms, f"Failed to commit offsets in {timeout_ms} ms")
        while True:
            error = self._calls.within(
                timer.timeout_ms, "OffsetCommit", self._commit_in_hub, offsets, self._member.identity()
            )
            if error is None:
                return
            if not isinstance(error, RetriableError) or isinstance(error, final):
                raise error
            log.debug("committing %s: %r", offsets, error)
            self._back_off(timer)
            timer.maybe_raise()

    def commit_async(self, offsets: Offsets, callback: Callable[..., Any] | None) -> Future:
        """Commit without waiting; the callback is called in a later poll or commit of the consumer.

        Raises:
            TypeError: not ``{TopicPartition: OffsetAndMetadata}``.
        """
        self.call_back()
        _check_offsets(offsets)
        if callback is None:
            callback = self._config["default_offset_commit_callback"] or _log_commit
        future = Future()
        future.add_both(lambda outcome: self._completed.append((callback, offsets, outcome)))
        try:
            identity = self._member.identity()
        except (CommitFailedError, RebalanceInProgressError) as error:
            return future.failure(error)
        if not offsets:
            return future.success(None)
        hub = self._client.hub
        hub.post(hub.spawn, self._commit_for, future, dict(offsets), identity)
        return future

    def _commit_for(self, future: Future, offsets: Offsets, identity: Identity) -> None:
        try:
            error = self._commit_in_hub(offsets, identity)
        except Exception as raised:
            error = raised
        if isinstance(error, FencedInstanceIdError):
            self._fenced = True
        if error is None:
            future.success(None)
        else:
            future.failure(error)

    def _commit_in_hub(self, offsets: Offsets, identity: Identity) -> Exception | None:
        while True:
            error = self._commit_once(offsets, identity)
            if not isinstance(error, StaleMemberEpochError):
                return error
            # The member's epoch was raised while the commit was on its way: again, with the new one.
            stale = identity
            try:
                identity = self._member.identity()
            except CommitFailedError as failure:
                return failure
            if identity == stale:
                gevent.sleep(self._config["retry_backoff_ms"] / 1000)  # the heartbeat's answer is on its way

    def _commit_once(self, offsets: Offsets, identity: Identity) -> Exception | None:
        generation, member_id, instance_id = identity
        began = monotonic()
        answers = self._client.broker.commit_offsets(
            self._group_id,
            {
                tuple(partition): CommittedOffset(
                    offset,
                    None if metadata is None else str(metadata),
                    -1 if leader_epoch is None else leader_epoch,
                )
                for partition, (offset, metadata, leader_epoch) in offsets.items()
            },
            generation=generation,
            member_id=member_id,
            instance_id=instance_id,
        )
        if self._metrics is not None:
            self._metrics.committed(began)
        error = self._first_error(answers)
        if isinstance(error, _LOST):
            self._member.commit_refused(type(error), generation, member_id)
            return CommitFailedError(type(error)())
        return error

    @staticmethod
    def _first_error(answers: dict[tuple[str, int], Error | None]) -> Exception | None:
        for key, error in answers.items():
            if error is not None:
                return error(key)
        return None

    def call_back(self) -> None:
        """Call the callbacks of asynchronous commits that have ended since.

        Raises:
            FencedInstanceIdError: one of them met another consumer with this ``group_instance_id``.
        """
        if self._fenced:
            raise FencedInstanceIdError(
                f"Got fenced exception for group_instance_id {self._config['group_instance_id']}"
            )
        completed = self._completed
        while completed:
            callback, offsets, outcome = completed.popleft()
            callback(offsets, outcome)

    # -- automatic commits -----------------------------------------------------------------------

    def commit_is_due(self) -> bool:
        """Whether the interval of automatic commits has passed."""
        return bool(self._config["enable_auto_commit"]) and monotonic() >= self._next_commit

    def auto_commit_now(self) -> None:
        """Commit without waiting, if commits are automatic."""
        if self._config["enable_auto_commit"]:
            self._next_commit = monotonic() + self._interval
            self.commit_async(self._subscription.all_consumed_offsets(), None)

    def auto_commit_and_wait(self, timeout_ms: float | None = None) -> None:
        """Commit and wait for it, if commits are automatic; a failure is only logged."""
        if not self._config["enable_auto_commit"]:
            return
        self._next_commit = monotonic() + self._interval
        offsets = self._subscription.all_consumed_offsets()
        if not offsets:
            return
        try:
            # Offsets of a deleted topic cannot be committed, and a rebalance must not wait for that.
            self.commit(offsets, timeout_ms, final=(UnknownTopicOrPartitionError,))
        except UnknownTopicOrPartitionError as error:
            log.warning("Offset commit failed for a partition that is gone: %s", error)
        except (CommitFailedError, RebalanceInProgressError) as error:
            log.warning("Offset commit failed, which may mean that records come twice: %s", error)
        except Exception:
            log.exception("Offset commit failed: This is likely to cause duplicate message delivery")


def _as_offsets(answers: dict[Any, Any]) -> Offsets:
    return {
        TopicPartition(*key): OffsetAndMetadata(found.offset, found.metadata or "", found.leader_epoch)
        for key, found in answers.items()
        if found is not None and found.offset >= 0
    }


def _check_offsets(offsets: Any) -> None:
    keys_right = all(isinstance(partition, TopicPartition) for partition in offsets)
    if not keys_right or not all(isinstance(committed, OffsetAndMetadata) for committed in offsets.values()):
        raise TypeError("offsets must be dict[TopicPartition, OffsetAndMetadata]")
    for committed in offsets.values():
        struct.pack(">q", committed.offset)  # kafka-python tries in vain until its timeout


def _log_commit(offsets: Offsets, outcome: Any) -> None:
    if isinstance(outcome, Exception):
        log.warning("Auto offset commit failed: %r", outcome)
