"""The folder of a Java ZPER server: ``base_dir/TOPIC/00000000000000000000.dat``.

The files of a topic are its segments, named by the position of their first octet. A segment has frames in RAW
form one behind the other; a message may begin in one segment and end in the next. The last segment may end
within a message, if the server was killed, and zeros may follow, if its file was made longer in advance. So:

- The last segment ends before octets that are not a frame, as it does for the Java server when it starts.
- Zeros at the end of the last segment are messages of one empty frame. PADDING of them or more are padding.
- Anything else that does not fit is an error that names the file: without the octets in the middle all
  positions behind them would change.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from dafka.protocol.errors import DafkaError
from dafka.protocol.raw import LONG, MORE, RawError, split_messages
from dafka.zper.identity import InvalidIdentityError, build

PADDING = 512  # octets
LARGEST = 32 * 1024 * 1024  # octets of a message

_CHUNK = 1024 * 1024
_SEGMENT = re.compile(r"([0-9]{20})\.dat")
_SHORT_HEAD, _LONG_HEAD = 2, 9
_EMPTY = bytes(_SHORT_HEAD)


class FolderError(DafkaError, ValueError):
    """A folder that cannot be taken over as it is."""


class Segment(NamedTuple):
    """A file of a topic."""

    path: Path
    first: int
    size: int
    modified: int
    """Milliseconds since 1970."""


class Piece(NamedTuple):
    """Messages in RAW form, and when the file that they end in was last modified."""

    messages: list[bytes]
    modified: int


class JavaTopic:
    """A topic in a folder. Raises :class:`FolderError` if octets between two segments are missing."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        try:
            build(self.name)
        except InvalidIdentityError as error:
            raise FolderError(f"{path}: {error}") from error
        self.segments = sorted(map(_segment, filter(_is_segment, path.iterdir())), key=lambda one: one.first)
        for segment, follower in zip(self.segments, self.segments[1:], strict=False):
            end = segment.first + segment.size
            if end < follower.first:
                raise FolderError(f"{path}: positions {end} to {follower.first - 1} are in no file")
        self.left_out = 0
        """Octets at the end that are not a whole message; known when all are read."""

    @property
    def first(self) -> int:
        """The position of the first octet."""
        return self.segments[0].first if self.segments else 0

    def read(self, *, allow_empty: bool = True) -> Iterator[Piece]:
        """All messages from the first position on, some at a time.

        ``allow_empty``: whether a message may be one empty frame; if not, one ends the last segment. Raises
        :class:`FolderError` and OSError.
        """
        scan = _Scan()
        for segment, follower in zip(self.segments, [*self.segments[1:], None], strict=True):
            with segment.path.open("rb") as file:
                if follower is None:
                    yield from self._read_last(segment, file, scan, allow_empty)
                    return
                for messages in scan.whole(file, follower.first - segment.first):
                    yield Piece(messages, segment.modified)
                scan.check(segment.path, follower.first)

    def _read_last(self, segment: Segment, file: BinaryIO, scan: _Scan, allow_empty: bool) -> Iterator[Piece]:
        left = segment.size + len(scan.rest)
        end = _end_of_data(file, segment.size)
        for messages in scan.whole(file, end):
            kept = messages if allow_empty else _before_empty(messages)
            left -= sum(map(len, kept))
            yield Piece(kept, segment.modified)
            if len(kept) < len(messages):
                break
        else:
            last = _completed(scan.rest, file) if end < segment.size else None
            if last is not None:
                left -= len(last)
                yield Piece([last], segment.modified)
        self.left_out = left


def topics_of(folder: Path) -> list[JavaTopic]:
    """The topics in a folder that have segments, by name. Raises :class:`FolderError` and OSError."""
    found = [JavaTopic(path) for path in sorted(folder.iterdir()) if path.is_dir() and _has_segments(path)]
    if not found:
        raise FolderError(f"{folder} has no folder TOPIC with a file of 20 digits and .dat in it")
    return found


def _has_segments(path: Path) -> bool:
    return any(map(_is_segment, path.iterdir()))


def _is_segment(path: Path) -> bool:
    return _SEGMENT.fullmatch(path.name) is not None and path.is_file()


def _segment(path: Path) -> Segment:
    state = path.stat()
    return Segment(path, int(path.name[:20]), state.st_size, state.st_mtime_ns // 1_000_000)


class _Scan:
    """Cuts files into messages; ``rest`` is the beginning of a message whose end is not there yet."""

    def __init__(self) -> None:
        self.rest = b""

    def whole(self, file: BinaryIO, size: int) -> Iterator[list[bytes]]:
        """The whole messages in the next ``size`` octets of a file; stops before octets that are not
        frames."""
        while size and len(self.rest) <= LARGEST:
            chunk = file.read(min(_CHUNK, size))
            if not chunk:
                raise FolderError(f"{file.name} has become shorter while it was read: stop its server first")
            size -= len(chunk)
            self.rest += chunk
            while True:
                try:
                    messages, end = split_messages(self.rest)
                except RawError:
                    return
                if not messages:
                    break
                self.rest = self.rest[end:]
                yield messages

    def check(self, path: Path, end: int) -> None:
        """Where a segment ends there may be the beginning of a message, and nothing else."""
        place = f"{path} is damaged at position {end - len(self.rest)}"
        try:
            split_messages(self.rest)
        except RawError as error:
            raise FolderError(f"{place}: {error}") from error
        if len(self.rest) > LARGEST:
            raise FolderError(f"{place}: a message of more than {LARGEST} octets")


def _before_empty(messages: list[bytes]) -> list[bytes]:
    return messages[: messages.index(_EMPTY)] if _EMPTY in messages else messages


def _end_of_data(file: BinaryIO, size: int) -> int:
    """Where the zeros at the end of a file begin; the end of the file, if there are fewer than PADDING."""
    end = size
    while end:
        begin = max(0, end - _CHUNK)
        file.seek(begin)
        block = file.read(end - begin).rstrip(b"\0")
        if block:
            end = begin + len(block)
            break
        end = begin
    file.seek(0)
    return end if size - end >= PADDING else size


def _completed(rest: bytes, file: BinaryIO) -> bytes | None:
    """The message that ``rest`` begins, if its payload ends with zeros; None if a frame begins there."""
    octets = rest + file.read(LARGEST)
    start = 0
    while start < len(rest):
        flags = octets[start]
        head = _LONG_HEAD if flags & LONG else _SHORT_HEAD
        if flags > MORE | LONG or start + head > len(rest):
            return None
        length = int.from_bytes(octets[start + 1 : start + head], "big")
        start += head + length
        if start > len(octets):
            return None
        if not flags & MORE:
            return octets[:start]
    return None


def is_same_folder(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Whether two paths name one folder."""
    return os.path.realpath(one) == os.path.realpath(other)
