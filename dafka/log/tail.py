"""Chunks in memory, bounded by bytes: the least recently used one is dropped first."""

from __future__ import annotations

from collections import OrderedDict

from dafka.log.chunk import Chunk


class ChunkCache:
    """At most ``limit`` bytes of chunks by their keys; a chunk larger than that is not kept."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self._chunks: OrderedDict[bytes, Chunk] = OrderedDict()

    def __contains__(self, key: object) -> bool:
        return key in self._chunks

    def get(self, key: bytes) -> Chunk | None:
        chunk = self._chunks.get(key)
        if chunk is not None:
            self._chunks.move_to_end(key)
        return chunk

    def put(self, key: bytes, chunk: Chunk) -> None:
        self.drop(key)
        if chunk.memory > self.limit:
            return
        self._chunks[key] = chunk
        self.bytes += chunk.memory
        while self.bytes > self.limit:
            _, oldest = self._chunks.popitem(last=False)
            self.bytes -= oldest.memory

    def drop(self, key: bytes) -> None:
        chunk = self._chunks.pop(key, None)
        if chunk is not None:
            self.bytes -= chunk.memory

    def clear(self) -> None:
        self._chunks.clear()
        self.bytes = 0
