"""The bounds of share groups, by Kafka's names where Kafka has one."""

from __future__ import annotations

RUNS = 10_000
"""Runs of offsets of one share partition that are in different states. Beyond, nothing further is acquired
until older records are acknowledged."""

SESSIONS = 2000
"""group.share.max.share.sessions, the default."""

MEMBER_ID_LENGTH = 36
"""The longest member id, which is a UUID."""

DELTAS = 100
"""Rows of changes behind the snapshot of a share partition; with the next one a snapshot is stored again."""

ROW_RUNS = 256
"""A snapshot of at most so many runs replaces the changes at once."""

EXPIRED_AT_ONCE = 1000
"""Runs of offsets whose locks expire in one turn."""

ACQUIRED_AT_ONCE = 500
"""Runs of offsets that a member acquires of one partition in one turn."""
