"""The calls of coordinators with faults: groups, transactions, producer ids, share groups. Hub side."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from kafka.errors import (
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    NetworkExceptionError,
    NotCoordinatorError,
)

from dafka.broker.interface.broker import (
    CommittedOffset,
    Error,
    Joined,
    JoinRequest,
    LeavingMember,
    Synced,
    TopicPartition,
)
from dafka.broker.interface.share import ShareFetched, ShareFetchLimits, SharePlace, ShareRequest
from dafka.broker.interface.transactions import NO_EPOCH, NO_PRODUCER_ID, ProducerIdentity
from dafka.testing.torture import others
from dafka.testing.torture.deciding import BEHIND, Chaos, Link, Ranges, told_of
from dafka.testing.torture.history import NO_OFFSETS, NOTHING
from dafka.testing.torture.kinds import (
    ACKNOWLEDGE,
    ACQUIRE,
    COMMIT,
    INIT,
    JOIN,
    KINDS,
    SYNC,
    TRANSACTION,
)

OF_COORDINATOR: Mapping[str, Error] = {
    "not_coordinator": NotCoordinatorError,
    "loading": CoordinatorLoadInProgressError,
}
IDEMPOTENT = "idempotent"  # at the point of InitProducerId, for producers without a transactional id

T = TypeVar("T")


class CoordinatorCalls:
    """The part of a client's broker that coordinates."""

    link: Link | None
    name: str
    _chaos: Chaos

    @property
    @abstractmethod
    def _broker(self) -> Any: ...

    @abstractmethod
    def _transmit(self, kind: str, carry_out: Callable[[], T], lost: Callable[[], T]) -> T: ...

    # -- groups ---------------------------------------------------------------------------------

    def commit_offsets(
        self,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        *,
        member_id: str = "",
        **identity: Any,
    ) -> dict[TopicPartition, Error | None]:
        act: Callable[[], None] | None = None

        def possible(kind: str) -> bool:
            nonlocal act
            if KINDS[kind].level != "group":
                return True
            if member_id:
                act = others.disturbance(self._broker, kind, group, member_id=member_id)
            return act is not None

        def carry_out() -> dict[TopicPartition, Error | None]:
            if act is not None:
                self._broker.hub.spawn(act).join()
            return self._broker.commit_offsets(  # type: ignore[no-any-return]
                group, offsets, member_id=member_id, **identity
            )

        return self._coordinated(
            f"{COMMIT} {group}",
            carry_out,
            lambda error: dict.fromkeys(offsets, error),
            lambda answers: next((error for error in answers.values() if error is not None), None),
            {key: (one.offset, one.offset) for key, one in offsets.items()},
            group,
            possible=possible,
        )

    def join_group(self, group: str, request: JoinRequest) -> Joined:
        return self._coordinated(
            f"{JOIN} {group}",
            lambda: self._broker.join_group(group, request),
            lambda error: Joined(error, member_id=request.member_id),
            lambda joined: joined.error,
        )

    def sync_group(self, group: str, *args: Any, **options: Any) -> Synced:
        return self._coordinated(
            f"{SYNC} {group}",
            lambda: self._broker.sync_group(group, *args, **options),
            Synced,
            lambda synced: synced.error,
        )

    def leave_group(self, group: str, members: Sequence[LeavingMember]) -> list[Error | None]:
        left: list[Error | None] = self._broker.leave_group(group, members)
        self._chaos.history.add(self.name, f"leave {group}", 0, told_of(next(iter(left), None)), True)
        return left

    # -- transactions ---------------------------------------------------------------------------

    def commit_transaction_offsets(
        self,
        transactional_id: str,
        producer_id: int,
        epoch: int,
        group: str,
        offsets: Mapping[TopicPartition, CommittedOffset],
        **options: Any,
    ) -> dict[TopicPartition, Error | None]:
        return self._coordinated(
            f"{TRANSACTION} {transactional_id}",
            lambda: self._broker.commit_transaction_offsets(
                transactional_id, producer_id, epoch, group, offsets, **options
            ),
            lambda error: dict.fromkeys(offsets, error),
            lambda answers: next((error for error in answers.values() if error is not None), None),
        )

    def end_transaction(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool
    ) -> Error | None:
        return self._coordinated(
            f"{TRANSACTION} {transactional_id}",
            lambda: self._broker.end_transaction(transactional_id, producer_id, epoch, commit),
            lambda error: error,
            lambda error: error,
        )

    def end_transaction_with_epoch(
        self, transactional_id: str, producer_id: int, epoch: int, commit: bool
    ) -> ProducerIdentity:
        return self._coordinated(
            f"{TRANSACTION} {transactional_id}",
            lambda: self._broker.end_transaction_with_epoch(transactional_id, producer_id, epoch, commit),
            ProducerIdentity,
            lambda identity: identity.error,
        )

    def init_producer_id(
        self,
        transactional_id: str | None,
        timeout: float,
        producer_id: int = NO_PRODUCER_ID,
        epoch: int = NO_EPOCH,
    ) -> ProducerIdentity:
        return self._coordinated(
            f"{INIT} {transactional_id or IDEMPOTENT}",
            lambda: self._broker.init_producer_id(transactional_id, timeout, producer_id, epoch),
            ProducerIdentity,
            lambda identity: identity.error,
            possible=lambda kind: transactional_id is not None or kind not in OF_COORDINATOR,
        )

    # -- share groups ---------------------------------------------------------------------------

    def share_fetch(
        self,
        request: ShareRequest,
        partitions: Collection[SharePlace],
        forgotten: Collection[SharePlace],
        limits: ShareFetchLimits,
        connection: object = None,
    ) -> ShareFetched:
        def carry_out() -> ShareFetched:
            answer: ShareFetched = self._broker.share_fetch(
                request, partitions, forgotten, limits, connection
            )
            return answer

        if any(request.acknowledgements.values()):
            return self._shared(ACKNOWLEDGE, request, carry_out, connection)
        fetched = carry_out() if self.link is not None else self._chaos.repeated(carry_out)
        if any(one.acquired for one in fetched.partitions.values()):
            return self._shared(ACQUIRE, request, lambda: fetched, connection)
        return fetched

    def share_acknowledge(self, request: ShareRequest) -> ShareFetched:
        def carry_out() -> ShareFetched:
            answer: ShareFetched = self._broker.share_acknowledge(request)
            return answer

        if any(request.acknowledgements.values()):
            return self._shared(ACKNOWLEDGE, request, carry_out, None)
        return carry_out() if self.link is not None else self._chaos.repeated(carry_out)

    def _shared(
        self, operation: str, request: ShareRequest, carry_out: Callable[[], ShareFetched], connection: object
    ) -> ShareFetched:
        def failed(error: Error) -> ShareFetched:
            if connection is not None:  # it has ended, and its session with it
                self._broker.forget_connection(connection)
            return ShareFetched(NetworkExceptionError)

        return self._coordinated(
            f"{operation} {request.group}", carry_out, failed, lambda answer: answer.error
        )

    # -- how they are carried -------------------------------------------------------------------

    def _coordinated(
        self,
        point: str,
        carry_out: Callable[[], Any],
        failed: Callable[[Error], T],
        error_of: Callable[[T], Error | None],
        offsets: Ranges = NO_OFFSETS,
        group: str = "",
        possible: Callable[[str], bool] = lambda kind: True,
    ) -> T:
        """A call of a coordinator. ``failed`` makes an answer of an error, and ``error_of`` finds it."""
        chaos, history = self._chaos, self._chaos.history
        number, fault = chaos.decide(point)
        if fault is not None and not possible(fault.kind):
            fault = None
        if fault is not None:
            history.happens(fault)
        kind = "" if fault is None else fault.kind
        if kind in OF_COORDINATOR:
            error = OF_COORDINATOR[kind]
            history.add(self.name, point, number, told_of(error), False, offsets, fault, group)
            return failed(error)
        done = False
        told = NOTHING

        def carried_out() -> T:
            nonlocal done, told
            answer: T = carry_out()
            error = error_of(answer)
            done = error is None
            if kind not in BEHIND:
                told = told_of(error)
            return answer

        try:
            return self._transmit(kind, carried_out, lambda: failed(CoordinatorNotAvailableError))
        finally:
            history.add(self.name, point, number, told, done, offsets, fault, group)
