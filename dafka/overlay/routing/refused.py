"""What neighbours have told and there was no room for: it is asked for again when there is some.

A neighbour tells once. So a word that was refused would stay unknown until something about its peer changes;
kept is who has told it, and how much it needs. An honest neighbour knows no more than MOST_PEERS others, so
nothing is forgotten of those that it has told, unless very many have been refused of all neighbours together:
then those that have told most are not noted any further.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from dafka.overlay.limits import MOST_PEERS, MOST_REFUSED


class Need(NamedTuple):
    """Of a word: ``time`` is that of its filter; the octets of that, and how many leaves it lists, if they
    did not fit. Both are 0 if it was the peer itself that there was no room for."""

    time: int
    octets: int = 0
    leaves: int = 0


class Refused:
    """By neighbour, and peer. Neighbours have their turn one after the other: one that has told very much
    does not keep the others waiting."""

    def __init__(self) -> None:
        self._by_neighbour: OrderedDict[bytes, OrderedDict[bytes, Need]] = OrderedDict()
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, neighbour: bytes, peer: bytes, need: Need) -> None:
        needs = self._by_neighbour.setdefault(neighbour, OrderedDict())
        if peer not in needs:
            share = MOST_REFUSED // len(self._by_neighbour)
            if len(needs) > MOST_PEERS or (self._size >= MOST_REFUSED and len(needs) >= share):
                return
            self._size += 1
        needs[peer] = need

    def forget(self, neighbour: bytes, peer: bytes) -> bool:
        """Whether it was there."""
        needs = self._by_neighbour.get(neighbour)
        if needs is None or needs.pop(peer, None) is None:
            return False
        self._size -= 1
        if not needs:
            del self._by_neighbour[neighbour]
        return True

    def forget_all(self, neighbour: bytes) -> None:
        """A neighbour is gone."""
        self._size -= len(self._by_neighbour.pop(neighbour, ()))

    def clear(self) -> None:
        self._by_neighbour.clear()
        self._size = 0

    def look(self) -> tuple[bytes, bytes, Need]:
        """Neighbour and peer that have waited for longest; they go behind the others."""
        neighbour, needs = next(iter(self._by_neighbour.items()))
        self._by_neighbour.move_to_end(neighbour)
        peer, need = next(iter(needs.items()))
        needs.move_to_end(peer)
        return neighbour, peer, need
