"""The bounds of the ZPER servers, in one place; those of connections are in :mod:`dafka.sockets.limits`.

Modules read these as ``limits.NAME`` when they need them, so that a test can lower one.
"""

from __future__ import annotations

FLUSH_OCTETS = 4 * 1024 * 1024
"""What the messages of one partition take in memory when a flush is due, however few they are."""

UNFLUSHED_OCTETS = 32 * 1024 * 1024
"""Messages of one partition that wait for their flush, or are in it; beyond, its writers are not read."""

UNFLUSHED_MESSAGES = 30_000
"""The same in messages: with very many objects Python's own collections of garbage take long."""

ALL_UNFLUSHED_OCTETS = 256 * 1024 * 1024
"""The same for all partitions together."""

BATCH_OCTETS = 1_000_000
"""Messages of one flush in one record batch, unless one alone is larger. Topics that Kafka's clients have
created take batches of 1 048 588 octets."""

ANSWER_OCTETS = 1024 * 1024
"""Answers that wait for a client that does not read them; beyond, nothing is read from it."""

ANSWER_BESIDE = 64
"""Memory of an answer beside its payload."""

SHORTEST_RETRY = 0.1
"""Seconds until a flush that failed is tried again; doubled by each failure."""
LONGEST_RETRY = 5.0

CLOSE_SECONDS = 5.0
"""Seconds that closing waits for flushes that fail."""

LINGER_SECONDS = 1.0
"""Seconds that closing waits for clients to take their last answers."""

REASON_SECONDS = 60.0
"""Seconds between two lines in the log about what was discarded for one cause."""

SUPER_FRAME_OCTETS = 16 * 1024 * 1024
"""The largest super frame of a FETCH; of a message that is longer, the client fetches the rest next."""

PARTITIONS_KNOWN = 1000
"""Partitions of which some segments are remembered."""

READS_AT_ONCE = 4
"""Super frames and long messages that are read from the log at the same time."""

CHUNK_OCTETS = 64 * 1024
"""Octets that a stream reads from the log at once, if the next message is not longer."""

CHUNK_BESIDE = 400
"""Memory of a kept chunk beside its octets."""

CHUNKS_OCTETS = 16 * 1024 * 1024
"""Chunks that are kept for other streams: those at the end of a partition all want the same."""

STREAM_SECONDS = 60.0
"""Seconds that a stream at the end of its partition waits until it looks by itself."""

POLL_SECONDS = 0.2
"""Seconds between two looks for a topic that does not exist yet, if ``relay.poll`` is not less."""

# -- controllers --------------------------------------------------------------------------------

CONTROLLER_REQUEST_OCTETS = 64 * 1024
"""A request to the ZPController, or what another one says; a larger one ends its connection."""

COPIES_IN_FLIGHT = 10_000
"""Messages of one partition that a replica was sent and has not answered for ..."""
COPY_OCTETS_IN_FLIGHT = 4 * 1024 * 1024
"""... and their octets; one message may exceed it."""

COPIES_AT_ONCE = 500
"""Partitions that are copied to one replica at the same time, each on a connection of its own."""

COPY_OCTETS = 1024 * 1024
"""Octets that are read from the log at once for a replica."""

COPY_IDLE_SECONDS = 10.0
"""A partition's connection to a replica is closed when nothing has come for so long ..."""
COPY_IDLE_LEAST_SECONDS = 0.05
"""... or for so long if other partitions wait."""

COPY_REFRESH_SECONDS = 600.0
"""Between two commits of how far all of them are, changed or not: committed offsets expire."""

COPY_NOTE_SECONDS = 1.0
"""Between two commits of how far replicas are. After a kill, they get what lies between once more."""
