"""Room: how many records and bytes may be handed over, and what fetches under way have set aside of it.

A FETCH sets aside the room that its answer will need, and live records may not use that, or a busy partition
would starve the others. Fetches set aside half of the room at most: nobody may ever answer them, and records
that come in their order go on meanwhile.
"""

from __future__ import annotations

from dafka.roles.follower import Follower


class Room:
    """``fetches``: as many may be under way at once."""

    def __init__(self, fetches: int) -> None:
        self.records = 0
        self.bytes = 0
        self.reserved_records = 0
        self.reserved_bytes = 0
        self._fetches = fetches

    def set(self, records: int, size: int) -> None:
        """There is room for so many records and bytes, from now on."""
        self.records, self.bytes = records, size

    def use(self, records: int, size: int) -> None:
        """So much was handed over."""
        self.records -= records
        self.bytes -= size

    def give_back(self, records: int, size: int) -> None:
        """So much of what was handed over takes no room any more."""
        self.use(-records, -size)

    def for_records_of(self, follower: Follower) -> tuple[int, int]:
        """Records and bytes of the partition that find room: room set aside by other fetches is not free."""
        return (
            self.records - self.reserved_records + follower.reserved_records,
            self.bytes - self.reserved_bytes + follower.reserved_bytes,
        )

    # -- credit -------------------------------------------------------------------------------------

    @property
    def credit(self) -> tuple[int, int]:
        """Records and bytes that fetches may still set aside."""
        return _half(self.records) - self.reserved_records, _half(self.bytes) - self.reserved_bytes

    def has_credit_for(self, follower: Follower) -> bool:
        """Whether a record of the partition has credit, or there is some and no other fetch has any.

        A fetch into less room than a record would be for nothing while others may use it up.
        """
        records, size = self.credit
        return records > 0 and (size >= follower.record_bytes or (size > 0 and not self.reserved_records))

    def window(self, follower: Follower, fetch_bytes: int) -> int:
        """The records that a fetch of the partition asks for at most; about ``fetch_bytes`` at most.

        Partitions that nothing has come of may not exist, so all fetches there may be find credit for one.
        """
        records, size = self.credit
        size = min(size, fetch_bytes)
        if follower.untried:
            records = min(records, _half(self.records) // self._fetches)
            size = min(size, _half(self.bytes) // self._fetches)
        return max(1, min(follower.window, records, size // follower.record_bytes))

    def reserve(self, follower: Follower, count: int) -> None:
        """Set room aside for ``count`` records of the partition, in place of what is set aside for it."""
        # Not more than there is: sizes are guesses, and other fetches must find what was set aside for them.
        free = self.credit[1] + follower.reserved_bytes
        size = min(count * follower.record_bytes, max(0, free))
        self.reserved_records += count - follower.reserved_records
        self.reserved_bytes += size - follower.reserved_bytes
        follower.reserved_records, follower.reserved_bytes = count, size


def _half(room: int) -> int:
    return (room + 1) // 2
