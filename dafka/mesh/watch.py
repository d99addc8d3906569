"""Warnings of a consumer or a store about partitions that do not progress.

A node waits without a limit for records that no other node sends, because a node that has them may come
back. It does not follow partitions for which its table has no room. Both look like a mesh without traffic, so
they are logged for users who do not look at metrics. What is not meant is a node that sends slowly: of very
many partitions some are always late then, and each is sent in its turn.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dafka.mesh import limits
from dafka.mesh.address import address_name, topic_name

if TYPE_CHECKING:
    from dafka.roles.consumer import ConsumerRole
    from dafka.roles.store import StoreRole

log = logging.getLogger(__name__)


class Watch:
    """Looks at a role at each :meth:`tick`; ``who`` names the node in messages."""

    def __init__(self, who: str, role: ConsumerRole | StoreRole) -> None:
        self._who = who
        self._role = role
        self._told = 0  # how many partitions were logged that nobody sends
        self._full = False

    def tick(self, now: float) -> None:
        """Time has passed."""
        if self._role.refused and not self._full:
            self._full = True
            log.warning("%s: its table of partitions is full; further partitions are not followed", self._who)
        if not self._role.unanswered:
            self._told = 0
        elif self._role.unanswered >= 2 * self._told:
            unanswered = self._role.unanswered_since(now - limits.UNANSWERED_SECONDS)
            if unanswered >= max(1, 2 * self._told):
                self._told = unanswered
                self._tell(unanswered)

    def _tell(self, unanswered: int) -> None:
        longest = self._role.longest_unanswered
        if longest is None:
            return
        topic, address, first, end = longest
        log.warning(
            "%s: %s known to have records that nobody sends, the first of them topic %r, partition %s, "
            "sequences %d to %d; they are asked for again and again",
            self._who,
            "1 partition is" if unanswered == 1 else f"{unanswered} partitions are",
            topic_name(topic),
            address_name(address),
            first,
            end - 1,
        )
