"""Subscription flooding: each node tells its neighbours what it and the peers behind it want.

The rules of Broker's developer guide ("Subscription Flooding"), with bounds:

- A subscription whose path contains the receiver is refused. No honest neighbour sends one: it chooses a
  path that avoids whom it tells.
- A filter with an older time than the known one is not taken, one with a newer time replaces it. The word of
  a neighbour about itself is taken in any case: nobody knows better.
- The path counts in any case. A neighbour tells its best path only, and tells again when that, or the
  filter, has changed; so its last word about a peer replaces the one before. (A link is reliable and in order
  as long as it lives, and begins anew with a handshake.) A full mesh of n nodes exchanges (n - 1)^2 messages
  for a new filter, as in the guide.
- A neighbour that has no such path left withdraws its word.
- A new neighbour is told of all others at once. A word is written once for all who are told it, as long as it
  is the same and no link of this node has ended since: the vector timestamp in it must be later than that.
- When a link goes, both its ends flood a revocation with their logical time. It takes along all paths that
  led over the link and are older. Without it nodes would go on to tell each other of ever longer ways around,
  through each other, to a peer that is gone.
- A word that there is no room for is not forgotten: the neighbour is asked to say it again when there is
  some, see :meth:`Flooding.ask_again`. What a peer wants may be too much while the peer itself is not: it is
  told of with an older time, so that others who have room take what it wants from elsewhere.
- Paths are gone at once. The consequences for very many peers (telling the neighbours, forgetting those
  without a path) are found out in pieces, for each as it is then: see :meth:`Flooding.go_on`.

The logical clock rises when the filter or the links change. It begins at ``time``, which has to be later than
that of any earlier life of the same id: the microseconds of the wall clock will do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice

from dafka.overlay.filters import Filter, reduced
from dafka.overlay.limits import (
    ALL_FILTER_OCTETS,
    ASKED_AT_ONCE,
    MOST_ALL_LEAVES,
    MOST_HOPS,
    MOST_PEERS,
    SETTLED_AT_ONCE,
    TIDIED_AT_ONCE,
)
from dafka.overlay.routing.demand import Demand
from dafka.overlay.routing.leaves import Leaves
from dafka.overlay.routing.outputs import Discovered, Output, Tell, Unreachable, joined
from dafka.overlay.routing.refused import Need, Refused
from dafka.overlay.routing.table import KnownPeer, Path, RoutingTable, Said, Word
from dafka.overlay.wire.handshake import Announcement
from dafka.overlay.wire.leaves import Leaf
from dafka.overlay.wire.routed import Inquiry, Revocation, Subscription, Withdrawal, encode_routed
from dafka.protocol.errors import MalformedMessage

_TO_BE_SAID = Said(None, -1, -1)  # whatever was told before, the neighbour has asked for it


class Flooding:
    """The knowledge of the node ``me`` about others, and what it tells them."""

    def __init__(self, me: bytes, time: int, filter: Filter = ()) -> None:
        self.me = me
        self.table = RoutingTable(me)
        self.demand = Demand()
        self.leaves = Leaves(me, self.demand)
        self.clock = time
        self.discarded: Counter[str] = Counter()
        """Words of neighbours that were not taken, by cause."""
        self.changes = 0
        """How often a path or a filter has changed. Routes from before are to be computed anew."""
        self._filter = reduced(filter)
        self._time = time
        self._listed: tuple[Leaf, ...] = ()
        self._behind: frozenset[bytes] = frozenset()
        self.demand.replace((), self._filter)
        self._told: dict[bytes, dict[bytes, Said]] = {}
        self._ended = time  # when the last of its links did
        self._contradicted = -1  # when somebody was wrong about that: words from before do not count
        self._unsettled: dict[bytes, None] = {}  # peers that something has changed about
        self._refused = Refused()
        self._filter_octets = 0  # of all peers that are not lost
        self._lost_leaves = 0  # in the lists of those that are

    @property
    def neighbours(self) -> list[bytes]:
        """The direct peers."""
        return list(self._told)

    def is_neighbour(self, peer: bytes) -> bool:
        return peer in self._told

    def is_leaf(self, peer: bytes) -> bool:
        """Whether a peer of version 1 is behind this node."""
        return peer in self._behind

    @property
    def announcement(self) -> Announcement:
        """The announcement of the handshake."""
        return Announcement(self._filter, self._time, self.clock, self._listed)

    @property
    def filter(self) -> Filter:
        return self._filter

    def subscribe(self, filter: Filter) -> list[Output]:
        """This node wants these topics from now on, and no others."""
        filter = reduced(filter)
        if filter == self._filter:
            return []
        self.demand.replace(self._filter, filter)
        self._filter = filter
        return self._tell_anew()

    def list_leaves(self, leaves: tuple[Leaf, ...]) -> list[Output]:
        """These peers of version 1 are behind this node from now on, and no others."""
        if leaves == self._listed:
            return []
        self._listed, self._behind = leaves, frozenset(leaf.id for leaf in leaves)
        self.changes += 1
        return self.leaves.put(self.me, leaves) + self._tell_anew()

    def link_up(self, neighbour: bytes, announced: Announcement, heard: Announcement) -> list[Output]:
        """The handshake with a neighbour is over, with the announcements that it was told and that it
        told."""
        assert neighbour not in self._told and neighbour != self.me
        self.clock += 1
        self._told[neighbour] = {self.me: Said(None, announced.time, self.clock)}
        word = Subscription((neighbour,), (heard.clock,), heard.time, heard.filter, heard.leaves)
        told = self._tell_own(neighbour)
        for peer in self.table.peers:
            if peer != neighbour:
                told += self._tell_some(peer, [neighbour])
        return joined(told) + self._take(neighbour, word)

    def link_down(self, neighbour: bytes) -> list[Output]:
        """A neighbour is gone: all paths over it are."""
        if self._told.pop(neighbour, None) is None:
            return []
        self.clock += 1
        self._ended = self.clock
        self._refused.forget_all(neighbour)
        outputs = self._revoke(Revocation(self.me, self.clock, neighbour), None)
        behind = [neighbour]  # which is told of first, before the end of its connection is
        behind += [peer for peer, known in self.table.peers.items() if neighbour in known.paths]
        for peer in behind:
            self.table.drop(peer, neighbour)
        return outputs + self._lost(behind)

    def leave(self) -> list[Output]:
        """This node has said goodbye to all neighbours: nobody can be reached, and nobody is told anything.

        One by one, each of them would be told of all the others.
        """
        self.clock += 1
        self._told.clear()
        self._refused.clear()
        for peer, known in self.table.peers.items():
            for first_hop in list(known.paths):
                self.table.drop(peer, first_hop)
        return self._lost(list(self.table.peers))

    def hear_subscription(self, neighbour: bytes, word: Subscription) -> list[Output]:
        if word.path[-1] != neighbour or self.me in word.path:
            raise MalformedMessage("path", "a path that does not come from its sender, or leads through here")
        return self._take(neighbour, word)

    def hear_withdrawal(self, neighbour: bytes, word: Withdrawal) -> list[Output]:
        if word.peer == neighbour:
            raise MalformedMessage("withdrawal", "a neighbour that has no path to itself")
        self._refused.forget(neighbour, word.peer)
        return self._lost([word.peer]) if self.table.drop(word.peer, neighbour) else []

    def hear_revocation(self, neighbour: bytes, word: Revocation) -> list[Output]:
        if word.revoker == self.me:
            self.clock = self._ended = max(self.clock, word.time)
            if self.is_neighbour(word.hop):
                return self._contradict()
        return self._revoke(word, neighbour)

    def hear_inquiry(self, neighbour: bytes, word: Inquiry) -> list[Output]:
        """It is answered by :meth:`go_on`: once, however often it comes until then."""
        told = self._told[neighbour]
        if word.peer in told:
            told[word.peer] = _TO_BE_SAID
            known = self.table.peers.get(word.peer)
            if known is not None:
                known.told = None
            self._unsettled[word.peer] = None
        return []

    def ask_again(self) -> list[Output]:
        """Ask for words that there was no room for, as far as there is some now. To be called a few times a
        second: a neighbour that does not answer keeps the room from others no longer than that."""
        peers = MOST_PEERS - len(self.table.peers)
        octets = ALL_FILTER_OCTETS - self._filter_octets
        leaves = MOST_ALL_LEAVES - self._listed_leaves
        unknown: set[bytes] = set()  # peers that are asked about
        asked: list[Output] = []
        for _ in range(min(len(self._refused), ASKED_AT_ONCE)):
            neighbour, peer, need = self._refused.look()
            known = self.table.peers.get(peer)
            if known is None:
                if peer in unknown or len(unknown) < peers:
                    unknown.add(peer)
                    self._refused.forget(neighbour, peer)
                    asked.append(Tell(neighbour, _inquiry(peer)))
                continue
            is_known = neighbour in known.paths
            if is_known and need.time > known.time:
                more_octets = need.octets - known.octets
                more_leaves = need.leaves - self.leaves.listed_by(peer)
                if more_octets > octets or more_leaves > leaves:
                    continue
                octets, leaves, is_known = octets - more_octets, leaves - more_leaves, False
            self._refused.forget(neighbour, peer)
            if not is_known:
                asked.append(Tell(neighbour, _inquiry(peer)))
        return joined(asked)

    def _take(self, neighbour: bytes, word: Subscription) -> list[Output]:
        peer = word.path[0]
        path = Path(word.path[::-1], word.times[::-1])
        if self.table.is_revoked(path):
            # The neighbour does not know yet, and will tell another path, or none.
            self.discarded["revoked"] += 1
            return self._lost([peer]) if self.table.drop(peer, neighbour) else []
        outputs: list[Output] = []
        if peer in self._unsettled:
            outputs += self._settle(peer)
        if len(self.table.peers) >= MOST_PEERS:
            outputs += self.go_on()
        known = self.table.peers.get(peer)
        if known is None:
            if len(self.table.peers) >= MOST_PEERS and peer != neighbour:
                self.discarded["too-many-peers"] += 1
                self._refused.add(neighbour, peer, Need(word.time))
                return outputs
            known = self.table.peers[peer] = KnownPeer(word.time, ())
            outputs.append(Discovered(peer))
            outputs += self._adopt(neighbour, known, word)
        elif word.time > known.time or peer == neighbour:
            outputs += self._adopt(neighbour, known, word)
        elif word.time < known.time:
            self.discarded["older-filter"] += 1
        self.table.put(peer, path)
        self.changes += 1
        return outputs + self._tell(peer)

    def _adopt(self, neighbour: bytes, known: KnownPeer, word: Subscription) -> list[Output]:
        """Take the filter and the leaves of a peer: nothing, if that would be too much in all."""
        peer, time = word.path[0], word.time
        filter, leaves = reduced(word.filter), word.leaves
        self._filter_octets -= known.octets
        octets = sum(map(len, filter)) + sum(leaf.octets for leaf in leaves)
        listed = self._listed_leaves - self.leaves.listed_by(peer)
        lacks_octets = self._filter_octets + octets > ALL_FILTER_OCTETS
        if lacks_octets or listed + len(leaves) > MOST_ALL_LEAVES:
            self.discarded["too-much-filter" if lacks_octets else "too-many-leaves"] += 1
            self._refused.add(neighbour, peer, Need(time, octets, len(leaves)))
            filter, leaves = () if lacks_octets else filter, ()
            time = max(0, time - 1)
        self.demand.replace(known.filter, filter)
        known.time, known.filter, known.leaves, known.word = time, filter, leaves, None
        outputs = self.leaves.put(peer, leaves)
        known.octets = sum(map(len, filter)) + self.leaves.octets_of(peer)
        self._filter_octets += known.octets
        return outputs

    @property
    def _listed_leaves(self) -> int:
        return self.leaves.listed - self._lost_leaves

    def _revoke(self, word: Revocation, source: bytes | None) -> list[Output]:
        lost = self.table.revoke(*word)
        if lost is None:
            return []
        octets = encode_routed(word)
        outputs: list[Output] = [Tell(neighbour, octets) for neighbour in self._told if neighbour != source]
        return outputs + self._lost(lost)

    def _contradict(self) -> list[Output]:
        """Somebody says that a link of this node went which is there: an earlier life of this id, or a liar.

        It is told again at a later time, and with it everything that was told over it.
        """
        self.clock += 1
        self._ended = self._contradicted = self.clock
        outputs: list[Output] = []
        for neighbour, told in self._told.items():
            told.pop(self.me, None)
            outputs += self._tell_own(neighbour)
        for known in self.table.peers.values():
            known.told = None
        self._unsettled.update(dict.fromkeys(self.table.peers))
        return joined(outputs + self.go_on())

    @property
    def is_behind(self) -> bool:
        """Whether :meth:`go_on` is to be called."""
        return bool(self._unsettled) or self.table.is_untidy

    def go_on(self) -> list[Output]:
        """Tell of some of the peers that something has changed about, and forget those without a path."""
        outputs: list[Output] = []
        left = SETTLED_AT_ONCE
        for peer in list(islice(self._unsettled, SETTLED_AT_ONCE)):
            known = self.table.peers.get(peer)
            left -= 1 + len(self._told) + (0 if known is None else len(known.filter) + len(known.leaves))
            outputs += self._settle(peer)
            if left <= 0:
                break
        self.table.tidy(TIDIED_AT_ONCE)
        return joined(outputs)

    def _lost(self, peers: list[bytes]) -> list[Output]:
        """Paths to these peers are gone."""
        self.changes += 1
        for peer in peers:
            known = self.table.peers.get(peer)
            if known is not None and not (known.paths or known.is_lost):  # its room is free at once
                known.is_lost = True
                self._filter_octets -= known.octets
                self._lost_leaves += self.leaves.listed_by(peer)
        self._unsettled.update(dict.fromkeys(peers))
        if len(peers) > 1:
            return self.go_on()
        self.table.tidy(TIDIED_AT_ONCE)
        return [output for peer in peers for output in self._settle(peer)]

    def _settle(self, peer: bytes) -> list[Output]:
        self._unsettled.pop(peer, None)
        if peer == self.me:
            return [told for neighbour in self._told for told in self._tell_own(neighbour)]
        known = self.table.peers.get(peer)
        if known is None:
            return []
        if known.paths:
            return self._tell(peer)
        outputs: list[Output] = []
        told = [one for one, words in self._told.items() if words.pop(peer, None) is not None]
        if told:
            withdrawal = encode_routed(Withdrawal(peer))
            outputs += [Tell(neighbour, withdrawal) for neighbour in told]
        del self.table.peers[peer]
        self._lost_leaves -= self.leaves.listed_by(peer)
        self.demand.replace(known.filter, ())
        if known.leaves:
            outputs += self.leaves.put(peer, ())
            self.changes += 1  # others may speak for them now
        outputs.append(Unreachable(peer))
        return outputs

    def _tell(self, peer: bytes) -> list[Output]:
        """Tell all neighbours of a peer that has changed, as far as it is news for them."""
        known = self.table.peers[peer]
        best = known.best()
        if known.told == (best, known.time):
            # The others know. Looking at all of them at each word would make large meshes slow.
            return self._tell_some(peer, [] if best is None else filter(self.is_neighbour, best.hops))
        known.told = best, known.time
        return self._tell_some(peer, self._told)

    def _tell_some(self, peer: bytes, neighbours: Iterable[bytes]) -> list[Output]:
        known = self.table.peers[peer]
        best = known.best()
        outputs: list[Output] = []
        for neighbour in neighbours:
            if neighbour == peer:
                continue
            told = self._told[neighbour]
            path = best if best is None or neighbour not in best.hops else known.best(avoiding=neighbour)
            if path is None or len(path.hops) >= MOST_HOPS:
                if told.pop(peer, None) is not None:
                    outputs.append(Tell(neighbour, encode_routed(Withdrawal(peer))))
                continue
            was = told.get(peer)
            if was is None or not was.is_of(path, known.time) or was.told_time < self._contradicted:
                word = self._word(path, known)
                told[peer] = word.said
                outputs.append(Tell(neighbour, word.octets))
        return outputs

    def _word(self, path: Path, known: KnownPeer) -> Word:
        """The word of a peer for neighbours: the same octets for all of them, as long as nothing changes.

        The time of this node in them must be later than the end of any of its links.
        """
        word = known.word
        if word is None or not word.said.is_of(path, known.time) or word.said.told_time < self._ended:
            word = Word(Said(path, known.time, self.clock), self._encode(path, known))
            known.word = word
        return word

    def _tell_anew(self) -> list[Output]:
        self.clock += 1
        self._time = self.clock
        return [output for neighbour in self._told for output in self._tell_own(neighbour)]

    def _tell_own(self, neighbour: bytes) -> list[Output]:
        told = self._told[neighbour]
        if (was := told.get(self.me)) is not None and was.filter_time == self._time:
            return []
        told[self.me] = Said(None, self._time, self.clock)
        word = Subscription((self.me,), (self.clock,), self._time, self._filter, self._listed)
        return [Tell(neighbour, encode_routed(word))]

    def _encode(self, path: Path, known: KnownPeer) -> bytes:
        hops, times = (*path.hops[::-1], self.me), (*path.times[::-1], self.clock)
        return encode_routed(Subscription(hops, times, known.time, known.filter, known.leaves))


def _inquiry(peer: bytes) -> bytes:
    return encode_routed(Inquiry(peer))
