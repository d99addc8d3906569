"""How a consumer comes by its partitions, as a member of a group or without one: the methods of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from kafka.structs import ConsumerGroupMetadata

Identity = tuple[int, str, str | None]  # generation, member id, instance id


class Membership(ABC):
    """Assigns partitions of the subscribed topics. For the program's thread, but for :meth:`interrupt`."""

    wait_slice: float  # seconds that one wait may take before the next :meth:`poll`

    @property
    @abstractmethod
    def generation(self) -> int:
        """The group's generation; -1 outside of a group."""

    @abstractmethod
    def changed(self) -> None:
        """Look at the metadata next time: the subscription has changed, or metadata is known to be old."""

    @abstractmethod
    def poll(self, deadline: float, before_revoking: Callable[[float | None], None]) -> bool:
        """Bring the assignment up to date; False if that is not done at ``deadline``.

        ``before_revoking`` is told how many milliseconds it has; None: as many as it likes.
        """

    @abstractmethod
    def interrupt(self) -> None:
        """End a wait for other members; for any thread."""

    @abstractmethod
    def leave(self, timeout_ms: float | None) -> None:
        """End the membership together with the subscription, within ``timeout_ms``."""

    @abstractmethod
    def close(self, timeout_ms: float | None) -> None:
        """Give the partitions back, tell the listener, and leave."""

    @abstractmethod
    def identity(self) -> Identity:
        """Generation, member id and instance id to commit under.

        Raises:
            RebalanceInProgressError: a rebalance is under way in this member.
            CommitFailedError: there is no membership.
        """

    @abstractmethod
    def commit_refused(self, error: type[Exception], generation: int, member_id: str) -> None:
        """Note that the coordinator has refused a commit under that name, for any thread."""

    @abstractmethod
    def metadata(self) -> ConsumerGroupMetadata:
        """kafka-python's snapshot of the membership."""

    @abstractmethod
    def partitions_for_topic(self, topic: str) -> Iterable[int] | None:
        """The partitions in the last metadata; None if the topic was not in it."""
