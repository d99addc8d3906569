"""What can go wrong with a migration, in words for who runs it."""

from __future__ import annotations


class MigrationError(Exception):
    """The migration cannot go on; the message says why and what to do."""
