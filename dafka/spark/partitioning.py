"""Choosing a record's partition by its key, as Kafka's own clients do (murmur2)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]

_SEED = 0x9747B28C
_MULTIPLIER = np.uint32(0x5BD1E995)


def by_key(keys: pa.BinaryArray, partitions: int) -> Numbers:
    """The number of each key's partition of so many; -1 for null."""
    encoded = keys.dictionary_encode()
    chosen = (murmur2(encoded.dictionary) & 0x7FFFFFFF).astype(np.int64) % partitions
    indices = encoded.indices
    places = np.asarray(indices.fill_null(0)).astype(np.int64)
    result = chosen[places] if len(chosen) else np.zeros(len(keys), np.int64)
    if keys.null_count:
        result[np.asarray(keys.is_null().to_numpy(zero_copy_only=False))] = -1
    return result


def murmur2(keys: pa.BinaryArray) -> npt.NDArray[np.uint32]:
    """The 32-bit murmur2 hash of each key with Kafka's seed; keys of one length are hashed together."""
    _, offset_buffer, data = keys.buffers()
    offsets = np.frombuffer(offset_buffer, np.int32)[keys.offset : keys.offset + len(keys) + 1].astype(
        np.int64
    )
    octets = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    lengths = np.diff(offsets)
    hashes = np.zeros(len(keys), np.uint32)
    for length in np.unique(lengths).tolist():
        which = np.flatnonzero(lengths == length)
        hashes[which] = _murmur2(octets[offsets[which][:, None] + np.arange(length)], length)
    return hashes


def _murmur2(keys: npt.NDArray[np.uint8], length: int) -> npt.NDArray[np.uint32]:
    """The hashes of keys of one length, a row each."""
    hashes = np.full(len(keys), _SEED ^ length, np.uint32)
    whole = length & ~3
    if whole:
        words = np.ascontiguousarray(keys[:, :whole]).view("<u4")
        for column in range(words.shape[1]):
            word = words[:, column] * _MULTIPLIER
            word ^= word >> np.uint32(24)
            word *= _MULTIPLIER
            hashes *= _MULTIPLIER
            hashes ^= word
    rest = length - whole
    if rest:
        for place in range(rest - 1, -1, -1):
            hashes ^= keys[:, whole + place].astype(np.uint32) << np.uint32(8 * place)
        hashes *= _MULTIPLIER
    hashes ^= hashes >> np.uint32(13)
    hashes *= _MULTIPLIER
    hashes ^= hashes >> np.uint32(15)
    return hashes


def in_turn(first: int) -> Iterator[int]:
    """Numbers from ``first`` on: records without a key go to the partitions in turn, many at a time."""
    while True:
        yield first
        first += 1
