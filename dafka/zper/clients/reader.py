"""Reading a topic: positions, super frames, streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType

from dafka.hub.waits import wait_of
from dafka.zper import commands, frames, identity
from dafka.zper.clients.asking import ask
from dafka.zper.clients.connection import Connection, Context, Deadline
from dafka.zper.clients.errors import ConnectionLostError
from dafka.zper.commands import EARLIEST, LATEST, RefusedError, Status
from dafka.zper.frames import Message

ADDRESS = "tcp://127.0.0.1:5556"
FETCH_SIZE = 1 << 20  # octets


class Reader:
    """Reads messages of a topic, through a ZPReader.

        with Reader("flights") as reader:
            for message in reader:           # all that is there, then it ends
                print(message.frames)
            for message in reader.stream():  # what comes, as it comes
                print(message.position, message.frames)

    ``position`` is where it begins: ``EARLIEST``, ``LATEST``, or a position from before, such as the
    ``position`` of another reader, which is behind the last message that it gave out. A connection that ends
    is opened again, and reading goes on where it was. ``timeout`` is how many seconds a response may take. A
    reader is used by one thread at a time.
    """

    def __init__(
        self,
        topic: str,
        address: str = ADDRESS,
        *,
        position: int = EARLIEST,
        fetch_size: int = FETCH_SIZE,
        timeout: float | None = 30.0,
        context: Context | None = None,
    ) -> None:
        if not isinstance(address, str):
            raise ValueError(f"address is {address!r}: positions are those of one server")
        if fetch_size < 1:
            raise ValueError(f"fetch_size is {fetch_size}: at least one octet is fetched")
        self.topic = topic
        self._start = position
        self._position: int | None = None if position in (EARLIEST, LATEST) else position
        self._fetch_size = fetch_size
        self._timeout = wait_of(timeout)
        self._streaming = False
        self._taking = False  # a message of the stream
        self._fetched = iter(self)  # for receive(), which fetches before it streams
        self._connection = Connection(address, lambda: identity.build(topic), context=context)

    # -- positions --------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """Behind the last message that was given out: where to begin after a restart of the program."""
        if self._position is None:
            self._position = self.earliest() if self._start == EARLIEST else self.latest()
        return self._position

    def seek(self, position: int) -> None:
        """Go on from ``position``, which may be EARLIEST or LATEST."""
        self._end_stream()
        self._start = position
        self._position = None if position in (EARLIEST, LATEST) else position

    def earliest(self) -> int:
        """Position of the first message that exists."""
        return self.offsets(EARLIEST)[0]

    def latest(self) -> int:
        """Position behind the last message that is flushed."""
        return self.offsets(LATEST)[-1]

    def offsets(self, time: int = LATEST, entries: int | None = None) -> list[int]:
        """The positions that OFFSET answers. For milliseconds since 1970: the starts of segments last
        modified before them, at most so many, and the flushed end if the last segment is one of those; none:
        an empty list.

        For EARLIEST and LATEST there always is a position: without one RefusedError is raised.
        """
        response = self._ask(commands.offset_request(time, entries))
        positions = commands.read_offsets(response)
        if not positions and time in (EARLIEST, LATEST):
            raise RefusedError(Status.INVALID_OFFSET, f"OFFSET: the server has no position of {self.topic}")
        return positions

    # -- messages ---------------------------------------------------------------------------------

    def fetch(self, position: int, size: int | None = None) -> bytes:
        """The super frame from ``position`` on, ``size`` octets at most; empty at the end of the topic.

        Raises :class:`~dafka.zper.commands.RefusedError` for a position that does not exist.
        """
        size = self._fetch_size if size is None else size
        return commands.read_super_frame(self._ask(commands.fetch_request(position, size)))

    def __iter__(self) -> Iterator[Message]:
        """The messages from :attr:`position` on, until no more are flushed."""
        kept = b""  # of a message that a super frame cut
        while True:
            start = self.position
            fetched = self.fetch(start + len(kept))
            if not fetched:
                return
            kept += fetched
            for message in frames.iterate(kept, start):
                self._position = message.end
                yield message
                if self._position != message.end:  # somebody has called seek()
                    kept = b""
                    break
            else:
                kept = kept[self.position - start :]

    def receive(self, timeout: float | None = None) -> Message | None:
        """The next message from :attr:`position` on, which is waited for; None after ``timeout`` seconds.

        Messages that are there already are fetched. Then the server sends each message as it comes; how far
        it is ahead of the reader is bounded by what sockets hold.
        """
        deadline = Deadline(timeout)
        while True:
            if self._taking:  # Ctrl-C came, maybe behind a message that nobody was given
                self._end_stream()
            if not self._streaming:
                for message in self._fetched:
                    return message
                self._fetched = iter(self)
                request = commands.fetch_request(self.position)
                self._taking = True
                commands.read_stream_start(self._answer(request))
                self._streaming = True
            self._taking = True
            try:
                received = self._connection.receive(deadline)
            except ConnectionLostError:
                self._end_stream()
                continue
            if received is None:
                self._taking = False
                return None
            # Streamed messages are newer than all that were imported from a Java server, which may have
            # stored them in another form, with other sizes.
            message = Message(self.position, received, self.position + frames.size(received))
            # Ctrl-C comes behind a call: the message is given out, and counts as that, or neither.
            self._position = message.end
            self._taking = False
            return message

    def stream(self, idle: float | None = None) -> Iterator[Message]:
        """The messages that :meth:`receive` gives; ends when none came for ``idle`` seconds."""
        while (message := self.receive(idle)) is not None:
            yield message

    def _end_stream(self) -> None:
        """Drop the rest of what the server sends in a stream."""
        if self._streaming or self._taking:
            self._connection.reopen(Deadline(self._timeout))
            self._streaming = self._taking = False

    # -- requests ---------------------------------------------------------------------------------

    def _ask(self, request: Sequence[bytes]) -> list[bytes]:
        self._end_stream()
        return self._answer(request)

    def _answer(self, request: Sequence[bytes]) -> list[bytes]:
        return ask(self._connection, request, self._timeout, "ZPReader", f", topic {self.topic}")

    def close(self) -> None:
        self._connection.close(0)

    @property
    def closed(self) -> bool:
        return self._connection.closed

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
