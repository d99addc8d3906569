"""Limits of decoding and encoding.

Modules read them as ``limits.NAME`` at each use, so that a test can lower one.
"""

from __future__ import annotations

REQUEST_ITEMS = 200_000
"""Items of a request, such as topics, partitions and record batches: each takes more than its octets."""

INLINE_ITEMS = 500
"""Items of a request or response that is decoded or encoded in the hub; larger ones take a thread."""

MAX_WAIT_SECONDS = 300.0
"""The longest wait of a Fetch, whatever its ``max_wait``."""
