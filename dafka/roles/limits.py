"""Every bound of the roles, in one place."""

from __future__ import annotations

PEERS = 4096  # peers remembered
PARTITIONS = 1_000_000  # partitions a consumer or a store follows
ANSWER_RECORDS = 1000  # records in one DIRECT-RECORD run of a producer
ANSWER_BYTES = 4 * 1024 * 1024
AHEAD_RECORDS = 10_000  # live records a consumer or store keeps while it fetches what came before them
AHEAD_BYTES = 8 * 1024 * 1024
WINDOW_MIN = 500  # records asked for in one FETCH
WINDOW_START = 10_000
WINDOW_MAX = 100_000
FETCH_TIMEOUT = 0.5  # seconds without a record after which a FETCH is sent again
FETCH_TIMEOUT_MAX = 4.0
HEADS_INTERVAL = 30.0  # seconds between a store's looks at what the other stores have
ACK_REPEAT = 0.5  # seconds between ACKs for records that are stored already
