"""The bounds of the listener, in one place, by Kafka's names where Kafka has one. Sizes are bytes."""

from __future__ import annotations

REQUEST_MAX_BYTES = 100 * 1024 * 1024
"""socket.request.max.bytes: the largest Produce request."""

SMALL_REQUEST_MAX_BYTES = 8 * 1024 * 1024
"""The largest request of any other kind: they are decoded in one go, and nothing else runs meanwhile."""

INLINE_BYTES = 16 * 1024
"""Requests above this are decoded and answered beside the hub, unless their octets are record batches."""

BATCHES_PER_PARTITION = 1000
"""Record batches for one partition in a Produce request. Kafka takes one."""

RESPONSE_MAX_BYTES = 16 * 1024 * 1024
"""Batches in one Fetch response, whatever the client asks for; one batch comes whatever its size."""

CONNECTION_BYTES = 16 * 1024 * 1024
"""Produce requests of one connection that wait for their answers; one is taken whatever its size."""

CONNECTION_REQUESTS = 1000
"""... and their number."""

TOTAL_BYTES = 256 * 1024 * 1024
"""Requests and responses of all connections. A large request waits for room, a Fetch gets less."""

CONNECTIONS = 10_000
"""max.connections: connections at a time. One more is closed at once."""

IDLE_SECONDS = 600.0
"""connections.max.idle.ms: a connection without a request for so long is closed."""

REQUEST_SECONDS = 60.0
"""A request that has begun must be there within this time."""

WRITE_SECONDS = 60.0
"""A response must have gone out within this time."""

REASON_LINES = 10
"""Lines in the log about connections that were closed, for each cause ..."""

REASON_SECONDS = 60.0
"""... in this time; then follows how many more there were."""

GONE_SECONDS = 1.0
"""Within about this time a Fetch that waits for records learns that its client has gone."""

FIRST_CHUNK = 64 * 1024
"""What a request that is only announced takes of memory; it grows as the bytes arrive."""

FETCH_SESSIONS = 1000
"""max.incremental.fetch.session.cache.slots: fetch sessions that are remembered at a time."""

FETCH_SESSION_PARTITIONS = 200_000
"""Partitions of all fetch sessions together, some 500 bytes each."""

FETCH_SESSION_SECONDS = 120.0
"""A fetch session that was not used for so long makes room for any other, one so old for a larger one."""
