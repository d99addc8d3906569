"""The routing table: for each known peer its filter and the paths that lead to it.

Of each neighbour one path to a peer is kept, the one it told last. So there are at most as many paths as
links, no two begin with the same hop, and a full mesh does not explode. Each path carries the logical times
of its hops, a vector timestamp: it is dead when one of its hops says that a link of the path went at a later
time.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict, deque
from typing import NamedTuple

from dafka.overlay.filters import Filter
from dafka.overlay.limits import MOST_HOPS, MOST_REVOCATIONS
from dafka.overlay.wire.leaves import Leaf


class Path(NamedTuple):
    """From the first hop to the peer, which is the last, and the logical time of each."""

    hops: tuple[bytes, ...]
    times: tuple[int, ...]


class Said(NamedTuple):
    """What a neighbour was told of a peer."""

    path: Path | None
    """To the peer; None if that is the teller itself."""
    filter_time: int
    told_time: int
    """By the clock of the teller."""

    def is_of(self, path: Path, filter_time: int) -> bool:
        return self.filter_time == filter_time and self.path == path


class Word(NamedTuple):
    """The word of a peer for neighbours."""

    said: Said
    octets: bytes


class KnownPeer:
    """``time`` is when the peer set its filter and listed its leaves, by its own logical clock."""

    __slots__ = ("filter", "is_lost", "leaves", "octets", "paths", "ranked", "time", "told", "word")

    def __init__(self, time: int, filter: Filter) -> None:
        self.time = time
        self.filter = filter
        self.leaves: tuple[Leaf, ...] = ()
        self.octets = 0
        """The memory of the filter and the leaves."""
        self.is_lost = False
        """There was a path, and there is none any more: it is about to be forgotten."""
        self.paths: dict[bytes, Path] = {}  # by first hop
        self.ranked: list[Path] = []
        """Shortest first; of two that are as long, the order of their ids decides."""
        self.told: tuple[Path | None, int] | None = None
        """The best path and the time of the filter that all neighbours know of, but for those on the path."""
        self.word: Word | None = None
        """The last one that was written about it."""

    def best(self, avoiding: bytes | None = None) -> Path | None:
        """The shortest path that does not lead through a peer."""
        for path in self.ranked:
            if avoiding is None or avoiding not in path.hops:
                return path
        return None

    def put(self, path: Path) -> None:
        self.paths[path.hops[0]] = path
        insort(self.ranked, path, key=_rank)

    def drop(self, first_hop: bytes) -> Path | None:
        """The path that is gone now, if there was one."""
        path = self.paths.pop(first_hop, None)
        if path is not None:
            del self.ranked[bisect_left(self.ranked, _rank(path), key=_rank)]
        return path


def _rank(path: Path) -> tuple[int, tuple[bytes, ...]]:
    return len(path.hops), path.hops


class RoutingTable:
    """The paths from the node ``me``."""

    def __init__(self, me: bytes) -> None:
        self.peers: dict[bytes, KnownPeer] = {}
        self._me = me
        # The paths over each link, by peer and first hop, with some that are gone.
        self._over: dict[tuple[bytes, bytes], dict[tuple[bytes, bytes], Path]] = {}
        self._gone: deque[tuple[bytes, Path]] = deque()  # these, and where they led to
        self._revoked: OrderedDict[tuple[bytes, bytes], int] = OrderedDict()

    def put(self, peer: bytes, path: Path) -> None:
        """A neighbour's last word about a peer that is known."""
        self.drop(peer, path.hops[0])
        self.tidy(2 * MOST_HOPS)
        self.peers[peer].put(path)
        one = peer, path.hops[0]  # the same tuple for all links: a path may have very many
        for link in self._links(path):
            self._over.setdefault(link, {})[one] = path

    def drop(self, peer: bytes, first_hop: bytes) -> bool:
        """The path over this neighbour is gone. Whether there was one. :meth:`tidy` is to be called later."""
        known = self.peers.get(peer)
        path = None if known is None else known.drop(first_hop)
        if path is None:
            return False
        self._gone.append((peer, path))
        return True

    @property
    def is_untidy(self) -> bool:
        """Whether :meth:`tidy` has something to do."""
        return bool(self._gone)

    def tidy(self, links: int) -> None:
        """Forget which links paths led over that are gone, of some of them. A path may have very many."""
        while self._gone and links > 0:
            peer, path = self._gone.popleft()
            links -= len(path.hops)
            one = peer, path.hops[0]
            for link in self._links(path):
                users = self._over.get(link)
                if users is not None and users.get(one) is path:
                    del users[one]
                    if not users:
                        del self._over[link]

    def revoke(self, revoker: bytes, time: int, hop: bytes) -> list[bytes] | None:
        """A link went. The peers that have lost paths, each once; None if this is not new."""
        if time <= self._revoked.get((revoker, hop), -1):
            return None
        self._revoked[revoker, hop] = time
        self._revoked.move_to_end((revoker, hop))
        if len(self._revoked) > MOST_REVOCATIONS:
            self._revoked.popitem(last=False)
        lost: dict[bytes, None] = {}
        for (peer, first_hop), path in self._over.get(_link(revoker, hop), {}).items():
            if self._time_of(revoker, path) < time and self._has(peer, path):
                self.drop(peer, first_hop)
                lost[peer] = None
        return list(lost)

    def is_revoked(self, path: Path) -> bool:
        """Whether a link of a path is known to have gone since the path was told."""
        ends = (self._me, *path.hops)
        times = dict(zip(path.hops, path.times, strict=True))
        for one, other in zip(ends, path.hops):  # noqa: B905
            for revoker, hop in ((one, other), (other, one)):
                if times.get(revoker, _LATER) < self._revoked.get((revoker, hop), -1):
                    return True
        return False

    def _links(self, path: Path) -> list[tuple[bytes, bytes]]:
        ends = (self._me, *path.hops)
        return [_link(one, other) for one, other in zip(ends, path.hops)]  # noqa: B905

    def _has(self, peer: bytes, path: Path) -> bool:
        known = self.peers.get(peer)
        return known is not None and known.paths.get(path.hops[0]) is path

    def _time_of(self, revoker: bytes, path: Path) -> int:
        return path.times[path.hops.index(revoker)] if revoker in path.hops else _LATER


_LATER = 2**64  # than any logical time: this node knows its own links


def _link(one: bytes, other: bytes) -> tuple[bytes, bytes]:
    return (one, other) if one < other else (other, one)
