"""The settings of the ZPER servers: the keys of ZPER's configuration file, with ``_`` for ``.``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TypeVar

from dafka.zper.properties import FAMILIES, KEYS, Value, read_target

_Self = TypeVar("_Self", bound="Settings")  # typing.Self came with Python 3.11

ANY_PORT = "tcp://127.0.0.1:*"
MESSAGE_LIMIT = 24 * 1024 * 1024
"""The largest ``max_message``. A message is a record of one batch, which may have its first frame twice."""

_KEYS = {name.replace(".", "_"): key for name, key in KEYS.items()}
_FAMILIES = {family.replace(".", "_") for family in FAMILIES}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of the servers. :data:`dafka.zper.properties.KEYS` explains each key.

    An address of None, or an empty one: this server is not there. Raises ValueError for a value that a key
    does not take; it names the option and the value.
    """

    writer_bind: str | None = ANY_PORT
    reader_bind: str | None = ANY_PORT
    ack_bind: str | None = ANY_PORT
    relay_bind: str | None = ANY_PORT
    controller_bind: str | None = ANY_PORT
    segment_size: int = 536_870_912
    flush_messages: int = 10_000
    flush_interval: int = 1000
    """Milliseconds."""
    retain_hours: int = 168
    """Of topics that a ZPER client creates; -1: for ever."""
    max_message: int = 8_388_608
    """Octets of all frames together."""
    allow_empty_message: bool = True
    send_buffer: int = 1_048_576
    receive_buffer: int = 1_048_576
    relay_poll: int = 1000
    """Milliseconds."""
    writer_replica: tuple[str, ...] = ()
    writer_replica_sync: int = 0
    controller_quorum: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            try:
                if field.name in _FAMILIES:
                    _check_targets(value)
                else:
                    _check(field.name, value)
            except ValueError as error:
                raise ValueError(f"{field.name}={value!r}: {error}") from None
        if self.max_message > MESSAGE_LIMIT:
            raise ValueError(f"max_message={self.max_message}: at most {MESSAGE_LIMIT} octets are possible")
        if self.writer_replica_sync > len(self.writer_replica):
            raise ValueError(
                f"writer_replica_sync={self.writer_replica_sync}, and writer_replica names "
                f"{len(self.writer_replica)}"
            )

    @classmethod
    def of_properties(cls: type[_Self], values: Mapping[str, Value]) -> _Self:
        """The settings that a file gives (``values`` of :class:`dafka.zper.properties.Properties`)."""
        known = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in values.items() if name in known})  # type: ignore[arg-type]


def _check(name: str, value: object) -> None:
    key = _KEYS[name]
    if value is None and name.endswith("_bind"):
        return
    if type(value) is not type(key.default):
        raise ValueError(f"a value like {key.default!r} is wanted")
    key.read(str(value).lower() if isinstance(value, bool) else str(value))


def _check_targets(value: object) -> None:
    if not isinstance(value, tuple):
        raise ValueError("a tuple of addresses is wanted, as ('tcp://host:5555',)")
    for address in value:
        read_target(str(address))
