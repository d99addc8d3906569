"""The clients that are connected to ZPER's servers, for people who look at them."""

from __future__ import annotations

from typing import NamedTuple


class Connected(NamedTuple):
    """A client. ``position``: where its stream is, None without one."""

    server: str
    """``writer``, ``reader`` or ``relay``."""
    address: tuple[str, int]
    topic: str
    mode: int
    copies: bool = False
    """Whether it is another node, of which this one is a replica."""
    waiting: int = 0
    """Octets of answers that it has not read."""
    position: int | None = None
