"""Folders as the Java server makes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def segments(path: Path, octets: bytes, cuts: Sequence[int], base: int = 0) -> list[Path]:
    """The files of a topic, cut at these places, the first position being ``base``."""
    path.mkdir()
    paths = []
    for start, end in zip([0, *cuts], [*cuts, len(octets)], strict=True):
        paths.append(path / f"{base + start:020d}.dat")
        paths[-1].write_bytes(octets[start:end])
    return paths
