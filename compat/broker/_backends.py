"""Where masters keep their content: the bindings' backends and options, and what stands for them here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compat.broker._enums import Backend
from compat.broker._values.scalars import Enum
from dafka.log import Durability
from dafka.overlay import BackendFailure, Disk, ErrorCode, Memory

# The effect of an option in SQLite, in the words of our logs. Its own default is FULL.
_SYNCHRONOUS: dict[str, Durability] = {
    "OFF": "process",
    "NORMAL": "process",
    "FULL": "power",
    "EXTRA": "power",
}
_CHOICES = {
    "synchronous": ("SQLITE_SYNCHRONOUS_", tuple(_SYNCHRONOUS)),
    "journal_mode": ("SQLITE_JOURNAL_MODE_", ("DELETE", "WAL")),
    "failure_mode": ("SQLITE_FAILURE_MODE_", ("DELETE", "FAIL")),
}


def backend_of(type: Backend | None, options: Mapping[str, Any]) -> Memory | Disk:
    """The backend of a master. SQLite's ``path`` is a folder here.

    ``synchronous`` decides whether a write survives the machine's end; the other options are looked at, and
    change nothing. Raises TypeError for anything but a backend, and
    :class:`~dafka.overlay.stores.errors.BackendFailure` for options that libbroker refuses.
    """
    if not isinstance(type, Backend):
        raise TypeError(f"a backend is Backend.Memory or Backend.SQLite, not {type!r:.100}")
    if type == Backend.Memory:
        return Memory()
    path = options.get("path")
    if not isinstance(path, str):
        raise _refused(f"a store of Backend.SQLite has a 'path', which is a str, not {path!r:.100}")
    if not isinstance(options.get("integrity_check", False), bool):
        raise _refused("the option 'integrity_check' is a bool")
    chosen = {name: _chosen(options, name) for name in _CHOICES}
    return Disk(path, _SYNCHRONOUS[chosen["synchronous"] or "FULL"])


def _chosen(options: Mapping[str, Any], name: str) -> str | None:
    """The text behind the prefix of an option, if it is there."""
    if name not in options:
        return None
    prefix, choices = _CHOICES[name]
    given = options[name]
    for choice in choices:
        if given == Enum(f"Broker::{prefix}{choice}"):
            return choice
    raise _refused(
        f"the option {name!r} is an Enum of Broker::{prefix}{'|'.join(choices)}, not {given!r:.100}"
    )


def _refused(text: str) -> BackendFailure:
    return BackendFailure(ErrorCode.BACKEND_FAILURE, text)
