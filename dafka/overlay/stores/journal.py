"""The messages of a master wait until its backend has the changes that they are about.

Nothing was ever seen outside that a crash can take back: the events for clones and subscribers, the
acknowledgements to writers and the answers to questions are held back while changes are on their way to the
backend. Changes that come meanwhile are one commit, the next one. A commit that fails is tried again as it
is; until it works nothing is taken from writers, and nothing said.
"""

from __future__ import annotations

from collections import deque

from dafka.overlay.limits import COMMIT_OCTETS, COMMIT_ROWS, MOST_WRITERS
from dafka.overlay.stores.content import Changes, Content
from dafka.overlay.stores.outputs import Commit, Output
from dafka.overlay.wire.primitives import EntityId


class Journal:
    """``writers`` are those of an earlier life, with their last actions that are in the content."""

    def __init__(self, writers: dict[EntityId, int] | None = None) -> None:
        self.writers = dict(writers or {})
        self.failure: str | None = None
        """Why the last commit has failed, as long as none has worked since."""
        self._content: Content
        self._noted: dict[EntityId, int | None] = {}
        self._committing: Commit | None = None
        self._next = 0  # the number of the next commit
        self._held: deque[tuple[int, list[Output]]] = deque()  # and which commit they wait for

    def attach(self, content: Content) -> None:
        """This is what it keeps."""
        self._content = content
        content.changes = Changes()

    @property
    def is_idle(self) -> bool:
        """Whether the backend has everything."""
        return self._committing is None and not self._is_due

    @property
    def is_full(self) -> bool:
        """Whether no more is to be written before the backend has what there is."""
        changes = self._content.changes
        assert changes is not None
        too_much = len(changes.rows) >= COMMIT_ROWS or changes.size >= COMMIT_OCTETS
        return self.failure is not None or (too_much and self._committing is not None)

    def note_writer(self, writer: EntityId, sequence: int | None) -> None:
        """The content has the actions of a writer up to this one, or the writer is forgotten."""
        self._noted[writer] = sequence
        self.writers.pop(writer, None)
        if sequence is not None:
            self.writers[writer] = sequence
        while len(self.writers) > MOST_WRITERS:
            oldest = next(iter(self.writers))
            del self.writers[oldest]
            self._noted[oldest] = None

    def pass_on(self, outputs: list[Output]) -> list[Output]:
        """The outputs that can be sent now, and the changes to commit."""
        due = self._is_due
        if self._committing is None and not due:
            return outputs
        if outputs:
            self._held.append((self._next if due else self._next - 1, outputs))
        return self._commit()

    def committed(self) -> list[Output]:
        """The backend has what it was given."""
        self._committing = None
        self.failure = None
        outputs: list[Output] = []
        while self._held and self._held[0][0] < self._next:
            outputs += self._held.popleft()[1]
        return outputs + self._commit()

    def failed(self, cause: str) -> None:
        """The backend could not write what it was given; nothing of it is there."""
        self.failure = cause

    def retry(self) -> list[Output]:
        """The commit that has failed, again."""
        return [] if self._committing is None or self.failure is None else [self._committing]

    @property
    def _is_due(self) -> bool:
        return bool(self._content.changes) or bool(self._noted)

    def _commit(self) -> list[Output]:
        if self._committing is not None or not self._is_due:
            return []
        assert self._content.changes is not None
        self._committing = Commit(self._content.changes, self._noted)
        self._content.changes, self._noted = Changes(), {}
        self._next += 1
        return [self._committing]
