"""A broker's table of members without a broker, for histories in which groups are ended and go on."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from dafka.broker.groups.kept_members import KeptMembers
from dafka.broker.groups.kept_rows import Format
from dafka.broker.interface.groups import GroupType

HOST = "/192.0.2.1"


class Disk:
    """What :class:`KeptMembers` writes, and reads when it begins again."""

    def __init__(self, formats: dict[GroupType, Format]) -> None:
        self.formats = formats
        self.rows: dict[str, str] = {}
        self.shape: Any = None
        self.begin()

    def begin(self) -> None:
        """A new process begins."""
        nothing: Any = None
        self.members = KeptMembers(nothing, self, self)  # type: ignore[arg-type]
        self.members.formats.update(self.formats)

    # -- as a log, as its table, and as what writes it

    path = "disk"

    def table(self, name: str, shape: Any) -> Disk:
        self.shape = shape
        return self

    def leave_on_disk(self) -> None:
        pass

    def keys(self) -> list[str]:
        return sorted(self.rows)

    def unordered(self) -> list[str]:
        return list(self.rows)

    def items(self, prefix: str) -> Iterable[tuple[str, Any]]:
        for key in self.keys():
            row = json.loads(self.rows[key])
            assert self.shape.key(key) and self.shape.value(key, row), (key, row)
            if key.startswith(prefix):
                yield key, row

    def put(self, rows: Any, done: Any = lambda error: None, check: Any = None) -> None:
        for (_, key), row in rows.items():
            if row is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = json.dumps(row)
        done(None)

    def put_and_wait(self, rows: Any, check: Any = None) -> None:
        self.put(rows)

    def again(self, make: Any) -> Any:
        """The group as a new process has it, None if no members of one were kept.

        ``make(type, whole, members)`` makes it of what was kept.
        """
        self.begin()
        for name, kind, whole, members in self.members.stored():
            group = make(kind, whole, members)
            if group.occupied:
                self.members.begin_with(name, group)
                self.members.forget_others()
                return group
        self.members.forget_others()
        return None
