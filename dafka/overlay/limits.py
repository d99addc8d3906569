"""The bounds of the overlay, in one place.

Anything beyond is refused, with an error that names the bound.
"""

from __future__ import annotations

MOST_NESTED = 100
"""Vectors, sets and tables inside one another. Zeek's own values stay below ten."""

MOST_PREFIXES = 5000
"""Of one filter, in a message from another node."""

FILTER_OCTETS = 1024 * 1024
"""Of the prefixes of one filter."""

ALL_FILTER_OCTETS = 64 * 1024 * 1024
"""Of the filters of all peers that a node knows."""

HANDSHAKE_OCTETS = 2 * 1024 * 1024
"""Of a message in the handshake, which comes from somebody who is not known yet. A filter is the largest."""

MESSAGE_OCTETS = 16 * 1024 * 1024
"""Of a message between peers."""

CHECKED_OCTETS = 16 * 1024  # larger values are checked beside the hub, before the core hears of them
CHECKED_WORK = 2500  # and those that are more work, see dafka.overlay.values.checking: a few ms
CHECKED_AT_ONCE = 5000  # such work of messages that are handled at once

HANDSHAKE_SECONDS = 10.0
"""From the beginning of a connection until both sides are peers."""

HANDSHAKE_LEAST_SECONDS = 2.0
"""For which a handshake may go on when there are MOST_CONNECTIONS and somebody else wants to begin one."""

SILENT_SECONDS = 5.0
"""A peer that nothing came from for this long is sent a ping."""

LOST_SECONDS = 15.0
"""A peer that nothing came from for this long is gone."""

STALLED_SECONDS = 2.0
"""Between two ticks: the process was stopped meanwhile, and nobody else's silence means anything."""

GOODBYE_SECONDS = 3.0
"""How long the answer to a goodbye is waited for, as libbroker does it."""

MOST_CONNECTIONS = 1000
"""Of one node, together with those in the handshake."""

MOST_HOPS = 64
"""Of a path. Peers that are further away are unreachable."""

MOST_PEERS = 4096
"""Peers that a node knows. Direct ones are known in any case; there are at most MOST_CONNECTIONS of them."""

MOST_REFUSED = 200_000
"""Words without room that are noted, 0.4 kB each. Neighbours that have told few are noted beyond that, so
there may be twice as many."""

ASKED_AT_ONCE = 250
"""Words without room that are looked at in a tick, and asked for again if there is some now."""

SETTLED_AT_ONCE = 1000
"""Words about peers that have lost paths, to all neighbours together, which are said in one turn, a few ms;
each prefix and each peer of version 1 that is forgotten counts as one."""

TIDIED_AT_ONCE = 2000
"""Links of paths that are gone, which are forgotten in one turn."""

MOST_LEAVES = 1000
"""Peers of version 1 behind one node."""

MOST_ALL_LEAVES = 4096
"""Peers of version 1 behind all nodes, each as often as it is listed."""

MOST_BESIDE = 100
"""Other peers of version 1 that one is known to be connected with."""

LEAVES_OCTETS = 128 * 1024
"""Of the ids and filters of the peers of version 1 behind one node, and 16 for each prefix."""

MOST_TOLD = 2000
"""Prefixes that a peer of version 1 is told. If the overlay wants more, it is asked for everything."""

TELLING = 4000
"""Prefixes that are looked at in one turn, to tell peers of version 1 what the overlay wants."""

TOLD_AT_LEAST = 10
"""What such a peer counts for, however few prefixes there are."""

SETTLE_SECONDS = 1.0
"""A node with neighbours waits so long before it speaks for a new peer of version 1: others may already."""

PROBE_SECONDS = 5.0
"""Between two probes of a way from one peer of version 1 to another that is known."""

BESIDE_SECONDS = 17.0
"""Two peers of version 1 that no probe got through between for this long are not connected any more."""

MOST_ALIASES = 10_000
"""Stores of the overlay that peers of version 1 know, each under a number of this node."""

MOST_REVOCATIONS = 16_384
"""Links that went, whose end is remembered. A forgotten one can only be believed in until the next word."""

WINDOW_OCTETS = 1024 * 1024
"""What a neighbour may send before it gets new credit, for each number of hops behind (see flow.py)."""

MESSAGE_COST = 128
"""Octets that a message costs besides its own."""

QUEUE_OCTETS = 1024 * 1024
"""Of what waits for a neighbour's credit, for each number of hops behind; then its senders wait."""

QUEUE_LEAST_OCTETS = 16 * 1024
"""The same, however much waits for others."""

QUEUES_OCTETS = 256 * 1024 * 1024
"""Of what waits for all neighbours' credit together."""

HELD_OCTETS = 256 * 1024 * 1024
"""Received from all neighbours together, and waiting for room with subscribers and other neighbours."""

BRANCH_OCTETS = 65_536
"""Of the way that a message still has to go, at most some 3600 peers."""

MOST_ROUTES = 4096
"""Topics whose routes are kept ready, and ways whose heights are."""

TICK_SECONDS = 0.1
"""Between two ticks of a channel."""

HEARTBEAT_TICKS = 5
"""A producer that has sent no event for so many ticks sends a heartbeat; consumers acknowledge as often."""

NACK_TICKS = 2
"""A consumer that misses events and gets no further for so many ticks asks for them, again and again."""

SILENT_TICKS = 500
"""A consumer, or a producer, that nothing is heard of for so many ticks is gone."""

MOST_CONSUMERS = 1000
"""Of one producer."""

MOST_KEPT = 100_000
"""Events that a producer keeps for consumers that have not acknowledged them."""

KEPT_OCTETS = 64 * 1024 * 1024
"""The same in octets, of a store; the event that goes beyond is among them. A clone that is so far behind is
given the whole content anew. One with so many writes that its master lacks takes no more for now."""

SNAPSHOT_ENTRIES = 2_000_000
"""Of contents that a master keeps for clones of version 1, which have not said that they have theirs."""

SNAPSHOT_AT_ONCE = 5000
"""Of such a content, encoded at once. Of a larger one it is so many in each tick, or a part in 64."""

MOST_AHEAD = 10_000
"""Events ahead of a missing one that a consumer keeps. Those beyond are asked for when they are next."""

MOST_NACKED = 1000
"""Events that are asked for at once. If it is more, the others are not looked at."""

MOST_RESENT = 250
"""Of these, that are answered at once."""

NEVER_SILENT = 2**62
"""Ticks; for ends of channels that wait as long as it takes."""

MASTER_SILENT_TICKS = 50
"""A clone that hears nothing of its master for so many ticks looks for one anew; it keeps its content."""

MOST_WRITERS = 1000
"""That a master remembers. The one that was silent longest makes room for a new one."""

MOST_ANSWERS = 10_000
"""Decisions about put_unique that a master remembers, for callers that ask again."""

MOST_KEYS = 2_000_000
"""Of one store. A write that would add one more changes nothing."""

STORE_OCTETS = 1024 * 1024 * 1024
"""Of the keys and values of one store, as they are encoded."""

KEY_OCTETS = 64 * 1024
"""Of an encoded key."""

VALUE_OCTETS = 8 * 1024 * 1024
"""Of an encoded value: it is to fit into a message, and into a row on the disk."""

PIECE_ENTRIES = 256
"""Of a store, that a master writes into one message for a clone: a millisecond's work."""

PIECE_OCTETS = 128 * 1024
"""The same in octets; the entry that goes beyond is in it."""

MOST_LOADING = 16
"""Clones and proxies that are given a large content at the same time. Others ask again."""

LOADING_TICKS = 50
"""A reader of a content that asks for no more of it for so many ticks has lost interest."""

ASK_TICKS = 5
"""Questions that are not answered are asked again after so many ticks."""

SWEPT_ENTRIES = 20_000
"""Entries that a clone looks at in a tick, to find those that its master does not have any more."""

ERASED_ENTRIES = 1000
"""Entries that it erases in a tick."""

MOST_REQUESTS = 10_000
"""Questions of one store object that wait for an answer."""

COMMIT_ROWS = 64
"""Keys that wait for the disk while it writes others: more writes are taken when it has those. What was held
back for them is said in one turn."""

COMMIT_OCTETS = 4 * 1024 * 1024
"""The same in octets."""

MOST_WAITING = 1000
"""Commands that wait at a master whose disk has enough to do."""

AT_ONCE = 200
"""Writes that a master is sent in one turn when it comes back. The others follow, or it asks for them."""
