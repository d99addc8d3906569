"""Writing to a topic."""

from __future__ import annotations

from collections import deque
from types import TracebackType

from dafka.hub.waits import wait_of
from dafka.zper import identity
from dafka.zper.clients.connection import Addresses, Connection, Context, Deadline
from dafka.zper.clients.errors import ConnectionLostError, NoResponseError
from dafka.zper.identity import Mode

ADDRESS = "tcp://127.0.0.1:5555"
QUEUE = 10_000  # messages
QUEUE_OCTETS = 64 * 1024 * 1024
MAX_MESSAGE = 8_388_608  # octets; the server's default
LOOK = 64  # messages between two looks for responses


class Writer:
    """Writes messages to a topic, through a ZPWriter.

    ``mode`` says what is known about a message when :meth:`close` returns:

    * ``Mode.EVERY_WRITE`` (2): it is committed. Up to ``queue`` messages, of QUEUE_OCTETS together, are on
      their way without a response; those of a connection that ends are sent again, so that a message can be
      stored twice, and once behind later ones that ZeroMQ has sent meanwhile.
    * ``Mode.AT_FLUSH`` (1): the same as of 0; :meth:`response` waits for the server's next flush.
    * ``Mode.NO_RESPONSE`` (0): it was handed to the network.

    ``max_message`` is the one of the server's configuration: a larger message would end the connection each
    time that it is sent. Several addresses share the messages, in modes 0 and 1. ``timeout`` is how many
    seconds a call waits at most. A writer is used by one thread at a time.
    """

    def __init__(
        self,
        topic: str,
        address: Addresses = ADDRESS,
        *,
        mode: int = Mode.EVERY_WRITE,
        queue: int = QUEUE,
        max_message: int = MAX_MESSAGE,
        timeout: float | None = 30.0,
        context: Context | None = None,
    ) -> None:
        self.topic = topic
        self.mode = Mode(mode)
        if queue < 1:
            raise ValueError(f"queue is {queue}: at least one message is on its way")
        self._timeout = wait_of(timeout)
        self._queue = queue
        self._max_message = max_message
        self._waiting: deque[tuple[bytes, ...]] = deque()  # not yet with the socket; in mode 2 only
        self._unanswered: deque[tuple[bytes, ...]] = deque()
        self._octets = 0  # of both
        self._unsettled = False  # whether it is not known what the socket was given, or has given
        self._responses: deque[bytes] = deque(maxlen=queue)  # in mode 1 only
        self._until_look = LOOK
        self._connection = Connection(
            address,
            lambda: identity.build(topic, self.mode),
            context=context,
            high_water_mark=queue,
            notice=self.mode == Mode.EVERY_WRITE,
        )
        if self.mode == Mode.EVERY_WRITE and len(self._connection.addresses) > 1:
            self._connection.close(0)
            raise ValueError("in mode 2 responses come in the order of the messages: it takes one address")

    def send(self, *frames: bytes, timeout: float | None = None) -> None:
        """Send a message of one or more frames.

        Waits while the queue is full; raises :class:`NoResponseError` if it still is after ``timeout``, and
        the message is then not sent. Raises TypeError for frames that are not octets, ValueError for a
        message that the server would not take.
        """
        if not frames:
            raise ValueError("a message has at least one frame")
        for frame in frames:
            if type(frame) is not bytes:
                frames = _octets(frames)  # before it stands in the queue, where others wait behind it
                break
        size = sum(map(len, frames))
        if size > self._max_message:
            raise ValueError(
                f"a message of {size} octets; the server takes {self._max_message} (max_message)"
            )
        if not frames[0] and len(frames) > 1:
            frames = (b"", *frames)  # the server takes one empty frame off
        deadline = Deadline(self._timeout if timeout is None else timeout)
        self._until_look -= 1
        if self._until_look <= 0:
            self._take_responses()
        if self.mode == Mode.EVERY_WRITE:
            self._make_room(deadline)
            # Both or neither, as Ctrl-C comes behind a call.
            self._octets += size
            self._waiting += (frames,)
            self._hand_over()
        else:
            while not self._connection.try_send(frames):
                self._wait(deadline, "room in the queue", to_send=True)
                self._take_responses()

    @property
    def unanswered(self) -> int:
        """Messages that the server has not answered yet; in modes 0 and 1 always 0."""
        return len(self._waiting) + len(self._unanswered)

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all messages are committed, in mode 2.

        Raises :class:`NoResponseError` with the number of those that are not after ``timeout``; they are
        still sent and waited for by the next call. In the other modes a writer does not know: ValueError.
        """
        if self.mode != Mode.EVERY_WRITE:
            raise ValueError(f"in mode {self.mode} there is not a response for each message; mode 2 has one")
        deadline = Deadline(self._timeout if timeout is None else timeout)
        while self.unanswered:
            self._hand_over()
            if self.unanswered:
                self._wait(deadline, f"responses to {self.unanswered} messages", to_send=bool(self._waiting))
                self._take_responses()

    def response(self, timeout: float | None = None) -> bytes | None:
        """In mode 1: the frame that the server answers the next flush with; None after ``timeout``
        seconds."""
        if self.mode != Mode.AT_FLUSH:
            raise ValueError(f"in mode {self.mode} no flush is answered; in mode 1 each is")
        deadline = Deadline(self._timeout if timeout is None else timeout)
        self._take_responses()
        if not self._responses and self._connection.wait(deadline, to_send=False):
            self._take_responses()
        return self._responses.popleft() if self._responses else None

    def close(self, timeout: float | None = None) -> None:
        """Wait as :meth:`flush` does, in mode 2; in the others give what is queued ``timeout`` to be sent."""
        if self._connection.closed:
            return
        linger: float | None = 0.0
        try:
            if self.mode == Mode.EVERY_WRITE:
                self.flush(timeout)
            else:
                linger = self._timeout if timeout is None else timeout
        finally:
            self._connection.close(linger)

    @property
    def closed(self) -> bool:
        return self._connection.closed

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._connection.close(0)

    # -- mode 2 -----------------------------------------------------------------------------------

    def _make_room(self, deadline: Deadline) -> None:
        while self.unanswered >= self._queue or self._octets >= QUEUE_OCTETS:
            self._hand_over()
            self._wait(deadline, f"responses to {self.unanswered} messages", to_send=bool(self._waiting))
            self._take_responses()

    # Ctrl-C may come wherever a call ends. Where it came between a call of the socket and what is known about
    # its messages, all that are not known to be committed are sent again, as where a connection has ended.

    def _hand_over(self) -> None:
        """Give the socket as much as it takes."""
        self._settle()
        waiting = self._waiting
        while waiting:
            frames = waiting[0]
            self._unsettled = True
            sent = self._connection.try_send(frames)
            if sent:
                self._unanswered += (frames,)
                del waiting[0]
            self._unsettled = False
            if not sent:
                return

    def _take_responses(self) -> None:
        self._until_look = LOOK
        self._settle()
        self._unsettled = self.mode == Mode.EVERY_WRITE
        responses = []
        while (frames := self._connection.try_receive()) is not None:
            responses.append(frames)
        if self.mode == Mode.AT_FLUSH:
            self._responses.extend(frames[-1] for frames in responses)
        elif responses and not self._connection.ended:
            for _ in range(min(len(responses), len(self._unanswered))):
                size = sum(map(len, self._unanswered[0]))
                self._octets -= size
                del self._unanswered[0]
        # Else ZeroMQ may have connected again, and they may be to later messages than those that wait first.
        # The next wait sends all of them again.
        self._unsettled = False

    def _settle(self) -> None:
        if self._unsettled:
            self._begin_anew(Deadline(self._timeout))

    def _begin_anew(self, deadline: Deadline) -> None:
        """Connect anew, and send again what is not answered."""
        self._unsettled = True
        waiting: deque[tuple[bytes, ...]] = deque((*self._unanswered, *self._waiting))
        none: deque[tuple[bytes, ...]] = deque()
        self._waiting, self._unanswered = waiting, none
        self._connection.reopen(deadline)
        self._unsettled = False

    def _wait(self, deadline: Deadline, what: str, *, to_send: bool) -> None:
        try:
            if self._connection.wait(deadline, to_send=to_send):
                return
        except ConnectionLostError:
            self._begin_anew(deadline)
            return
        raise NoResponseError(f"{self._where()}: waited in vain for {what}")

    def _where(self) -> str:
        return f"ZPWriter at {', '.join(self._connection.addresses)}, topic {self.topic}"


def _octets(frames: tuple[object, ...]) -> tuple[bytes, ...]:
    octets = []
    for frame in frames:
        if not isinstance(frame, (bytes, bytearray, memoryview)):
            raise TypeError(f"a frame is bytes, not {type(frame).__name__}: {frame!r:.100}")
        octets.append(bytes(frame))
    return tuple(octets)
