"""The first and the last of the timestamps of a batch's records, told as differences to the batch's base.

Of many records they come as columns: the first octets of the varints, the second ones, and so on. Looking at
one after the other would cost as much as all that is done for those records otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from dafka.protocol.batch_stretch import stamp_numbers

NO_TIMESTAMP = -1
_LOWEST, _HIGHEST = 1 << 64, -1 << 64  # beyond every timestamp
_NOT_NEGATIVE = bytes(range(0, 0x100, 2))  # first octets of the varints of numbers that are not


class Stamps:
    """The timestamps seen so far, in ms. That a record has none (-1) counts only if none has one."""

    def __init__(self, base: int) -> None:
        self._base = base
        self._none = NO_TIMESTAMP - base
        self._lowest, self._highest = _LOWEST, _HIGHEST  # behind the base

    @property
    def oldest(self) -> int:
        return NO_TIMESTAMP if self._lowest == _LOWEST else self._base + self._lowest

    @property
    def largest(self) -> int:
        return self._base + self._highest

    def see(self, stamp: int) -> None:
        """Take note of a timestamp, as zigzag has it."""
        delta = (stamp >> 1) ^ -(stamp & 1)
        if delta < self._lowest and delta != self._none:
            self._lowest = delta
        if delta > self._highest:
            self._highest = delta

    def see_ends(self, stamps: tuple[bytes, ...]) -> bool:
        """Take note of the first and the last of many timestamps. Their first octets are the first column,
        and so on. Whether it was possible without a look at each of them."""
        if len(stamps) == 1:
            for stamp in _distinct(stamps[0]):
                self.see(stamp)
            return True
        if self._none >= 0 or stamps[0].translate(None, _NOT_NEGATIVE):
            return False
        first, last = _end(stamps, min), _end(stamps, max)
        if first is None or last is None:
            return False
        self.see(first)
        self.see(last)
        return True

    def see_each(self, stamps: tuple[bytes, ...]) -> None:
        """:meth:`see_ends` for any timestamps."""
        numbers = set(stamp_numbers(stamps))
        none = self._none << 1 if self._none >= 0 else ~(self._none << 1)
        if none in numbers:
            self.see(none)
            numbers.remove(none)
        for negative in (0, 1):
            some = [number for number in numbers if number & 1 == negative]
            if some:
                self.see(min(some))
                self.see(max(some))


def _end(columns: tuple[bytes, ...], pick: Callable[[Iterable[int]], int]) -> int | None:
    """The smallest or the largest of varints that are not negative, as zigzag has it.

    None if the varints with the smallest, or the largest, last octet do not stand together, and so on for the
    octets before it. Time goes on, so those of timestamps mostly do.
    """
    number, first, behind = 0, 0, len(columns[0])
    for column in reversed(columns):
        octet = pick(_distinct(column[first:behind]))
        end = column.rfind(octet, first, behind) + 1
        first = column.find(octet, first, behind)
        if column is not columns[0] and column.count(octet, first, end) < end - first:
            return None
        number, behind = number << 7 | octet & 0x7F, end
    return number


def _distinct(column: bytes) -> Collection[int]:
    """The octets that there are in a column. Equal ones mostly stand together."""
    found = bytearray()
    most = len(column) >> 4
    while column:
        if len(found) > most:
            return set(column).union(found)
        found.append(column[0])
        column = column.lstrip(column[:1])
    return found
