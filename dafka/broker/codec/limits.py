"""The bounds of what is decoded and encoded at once.

Modules read these as ``limits.NAME`` when they need them, so that a test can lower one.
"""

from __future__ import annotations

REQUEST_ITEMS = 200_000
"""Topics, partitions, record batches and all else that a request lists: each costs more than its octets."""

INLINE_ITEMS = 500
"""What a request lists, or a response, that is decoded or encoded in the hub."""

MAX_WAIT_SECONDS = 300.0
"""A Fetch waits no longer than this, whatever the client asks for."""
