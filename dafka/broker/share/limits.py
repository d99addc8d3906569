"""The bounds of share groups, by Kafka's names where Kafka has one."""

from __future__ import annotations

RUNS = 10_000
"""Runs of offsets of one share partition that are in different states. Beyond, nothing further is acquired
until older records are acknowledged."""

GROUP_ID_LENGTH = 32_767
"""The longest text of most of Kafka's messages."""

SESSIONS = 2000
"""group.share.max.share.sessions, the default."""

MEMBER_ID_LENGTH = 36
"""The longest member id, which is a UUID."""

DELTAS = 100
"""Rows of changes behind the snapshot of a share partition; with the next one a snapshot is stored again."""

ROW_RUNS = 256
"""A snapshot of at most so many runs replaces the changes at once."""

ACQUIRED_OFFSETS = 10_000
"""Offsets that a member acquires of one run in one turn, and offsets in flight behind which a member gets a
part of a long batch, PART_OFFSETS at most. What can be acknowledged one by one is bounded by it as well.
librdkafka's batches have as many records (its setting batch.num.messages): a batch in parts is sent, and read
by the client, once for each part."""

PART_OFFSETS = 2000
"""Offsets that a member acquires of a batch at least, if there is room for one."""

RELEASED_AT_ONCE = 3000
"""Runs of offsets of a member that has gone which are given back in one turn."""

ACKNOWLEDGED_AT_ONCE = 25_000
"""Types and batches of acknowledgements of one partition in a request, which are carried out in one turn: all
records in flight, one by one."""

BATCHES_KNOWN = 10_000
"""Batches in flight of a partition that are told apart; of more, older ones count as one."""

BATCHES_AT_ONCE = 500
"""Record batches that a member's acquisition goes through in one turn."""

ALTERED_AT_ONCE = 100
"""Share partitions whose offsets tools set that are written in one round."""

OPENED_AT_ONCE = 32
"""Share partitions that a fetch is the first to read which are written in one round: opening them takes some
milliseconds of a turn."""

EXPIRED_AT_ONCE = 1000
"""Runs of offsets whose locks expire in one turn."""

ACQUIRED_AT_ONCE = 500
"""Runs of offsets that a member acquires of one partition in one turn."""

ASSIGNED_AT_ONCE = 500
"""Members, their subscriptions and partitions of a group whose target is computed in a turn of the hub, which
takes 2 ms then. That of a larger group is computed beside it."""

SESSION_PARTITIONS = 200_000
"""Partitions in all share sessions together; beyond, no further session begins."""

READ_BYTES = 256 * 1024
"""Bytes of batches that a share fetch reads of a partition at a time."""

FETCH_BYTES = 16 * 1024 * 1024
"""Bytes of batches in one answer, unless one batch alone is larger."""
