"""The limits of the listener, with Kafka's name where Kafka has the same limit. Sizes are bytes."""

from __future__ import annotations

REQUEST_MAX_BYTES = 100 * 1024 * 1024
"""socket.request.max.bytes: the largest Produce request."""

SMALL_REQUEST_MAX_BYTES = 8 * 1024 * 1024
"""The largest request of any other API: such a request is decoded in one piece."""

CHANGES_PER_REQUEST = 10_000
"""Topics, partitions and settings of theirs that a request creates, as in Kafka, whose controller writes no
more of them at once."""

INLINE_BYTES = 16 * 1024
"""Larger requests are decoded and answered in a thread outside of the hub, except record batches."""

RESPONSE_MAX_BYTES = 16 * 1024 * 1024
"""Batches in one Fetch response, whatever its ``max_bytes``; the first batch may exceed it."""

CONNECTION_BYTES = 16 * 1024 * 1024
"""Produce requests of one connection that wait for their responses; a single one may exceed it."""

CONNECTION_REQUESTS = 1000
"""The number of such requests."""

TOTAL_BYTES = 256 * 1024 * 1024
"""Requests and responses of all connections. At the limit a large request waits, and a Fetch gets less."""

CONNECTIONS = 10_000
"""max.connections: open connections. A further one is closed at once."""

IDLE_SECONDS = 600.0
"""connections.max.idle.ms: a connection without requests for this long is closed."""

ABANDONED_SECONDS = 60.0
"""A throttled client that has disconnected keeps its place for so long at most, if it has sent records."""

HANDSHAKES = 1000
"""Connections in the handshakes of TLS and SASL, at some 65 KB each. A further one waits for one of them, and
ends the oldest (cause ``handshakes``) if that has had HANDSHAKE_LEAST_SECONDS."""

HANDSHAKE_LEAST_SECONDS = 3.0

HANDSHAKE_SECONDS = 10.0
"""A client must finish the TLS handshake within this time, and SASL within this time after it."""

SASL_REQUEST_MAX_BYTES = 64 * 1024
"""sasl.server.max.receive.size: the largest request before a client is known."""

SASL_REQUESTS = 20
"""Requests before a client is known; four are usual."""

REQUEST_SECONDS = 60.0
"""A request must arrive completely within this time of its first octet."""

WRITE_SECONDS = 60.0
"""A response must be sent completely within this time."""

GONE_SECONDS = 1.0
"""The interval at which waiting Fetch requests are checked for closed clients."""

FIRST_CHUNK = 64 * 1024
"""The first buffer of a large request; it grows as the bytes arrive, whatever length is announced."""

RECEIVED_AT_ONCE = 1024 * 1024
"""Of a large request that comes as fast as it is read: in one turn of the hub, besides the last read."""

NEAR_SEND_BUFFER = 200_000
"""socket.send.buffer.bytes (Kafka: 102400), of connections from this machine: the kernel's, for what is sent.
Left to itself it grows to megabytes, which have left the processor's cache when they are read: a GB consumed
took a third more of the broker's time. Farther connections need what it grows to."""

SPARE_BUFFERS = 16
"""Buffers of large requests that a listener keeps for the next ones."""

SPARE_BYTES = 16 * 1024 * 1024
"""Their octets. Clients send requests of a megabyte at most unless told otherwise, and some at a time."""

SPARE_GREENS = 100
"""Green threads of a listener that wait for the next Produce, at some 20 KB each."""

FETCH_SESSIONS = 1000
"""max.incremental.fetch.session.cache.slots: the number of fetch sessions."""

FETCH_SESSION_PARTITIONS = 200_000
"""Partitions of all fetch sessions together, at about 500 bytes each."""

FETCH_SESSION_SECONDS = 120.0
"""A fetch session is evicted for any other if unused for this long, for a larger one if this old."""

# -- repeated fetches ------------------------------------------------------------------------------

REPEATED_OCTETS = 32 * 1024
"""A Fetch up to this long, of some thousand partitions, is compared with the one before it."""
REPEATED_SECONDS = 60.0
"""How long an answer without records is given again to the same Fetch before it is made anew."""

REFUSED_SOCKETS = 1000
"""Connections of addresses that connect too often, which are closed after their wait; beyond, at once."""
