"""Reading the blocks of indexes: those that were wanted last stay in memory."""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from dafka.log.chunk import CHUNK_TAG
from dafka.log.errors import DamagedError
from dafka.log.index import ChunkIndex
from dafka.log.limits import BLOCKS_IN_MEMORY
from dafka.log.repeating import bounded_logger
from dafka.log.sealed import BlockKey, unpack_block
from dafka.log.storage import Storage

logger = bounded_logger(__name__)


class Blocks:
    """The blocks in ``storage``."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self.held: Mapping[bytes, array[int]] = {}
        """The blocks that the round under way deletes: they may be gone, and are in indexes until it ends."""
        self._rows: OrderedDict[bytes, array[int]] = OrderedDict()

    def load(self, row: bytes) -> array[int]:
        """The chunks of the block with that key, as rows of an index. Raises LogReadError, DamagedError."""
        rows = self.held.get(row)
        if rows is not None:
            return rows
        rows = self._rows.get(row)
        if rows is not None:
            self._rows.move_to_end(row)
            return rows
        rows = self._rows[row] = self._read(row)
        if len(self._rows) > BLOCKS_IN_MEMORY:
            self._rows.popitem(last=False)
        return rows

    def forget_held(self) -> None:
        """The round is over, and the blocks that it deletes are gone."""
        for row in self.held:
            self._rows.pop(row, None)
        self.held = {}

    def chunks(self, block: BlockKey) -> list[bytes]:
        """The keys of the chunks that are there of a block. Raises LogReadError, DamagedError."""
        begin, end = chunks_from(block.partition, block.first), chunks_from(block.partition, block.next)
        pages = self._storage.keys(CHUNK_TAG, begin, end)
        return [key for page in pages for key in page if type(key) is bytes]

    def _read(self, row: bytes) -> array[int]:
        known = BlockKey.unpack(row)
        place = f"the index of sequences {known.first} to {known.next - 1} of partition {known.partition}"
        try:
            return _fitting(known, unpack_block(row, self._storage.get(row, place)))
        except (ValueError, DamagedError) as error:
            # It says nothing that the keys of the chunks do not say.
            logger.warning("%s in the log %s is damaged: %s", place, self._storage.folder, error)
        try:
            return _fitting(known, self.chunks(known))
        except (ValueError, TypeError) as error:
            folder = self._storage.folder
            message = f"{place} in the log {folder} is damaged: {error}. Restore the folder from a copy"
            raise DamagedError(folder, message, place) from error


def chunks_from(partition: int, sequence: int) -> bytes:
    """Where the keys of the partition's chunks from that sequence on begin."""
    return CHUNK_TAG + partition.to_bytes(4, "big") + sequence.to_bytes(8, "big")


def _fitting(known: BlockKey, keys: Sequence[bytes]) -> array[int]:
    index = ChunkIndex(known.partition)
    if keys:
        index.extend_packed(keys)
    found = (index.first_sequence, index.next_sequence, len(index), index.bytes)
    if found != (known.first, known.next, known.chunks, known.size):
        raise ValueError(f"its chunks are not those that its key says: {found}")
    return index.rows()
