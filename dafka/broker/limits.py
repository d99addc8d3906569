"""The bounds of a broker, in one place, by Kafka's names where Kafka has one."""

from __future__ import annotations

MESSAGE_MAX_BYTES = 1048588
"""message.max.bytes: the largest record batch, header included."""

OFFSET_METADATA_MAX_BYTES = 4096
"""offset.metadata.max.bytes: the longest text that goes with a committed offset."""

PARTITIONS_PER_TOPIC = 100_000
"""Numbered partitions of one topic."""

PENDING_BYTES = 64 * 1024 * 1024
"""Batches of all leaders together that wait for their commit; produce waits when there are more."""

YIELD_BYTES = 1024 * 1024
"""Bytes a fetch reads before other green threads have their turn."""

HEAD_INTERVAL = 1.0
"""Seconds between two HEADs of one leader (46/DAFKA: "at a regular interval")."""
