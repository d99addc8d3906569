"""Settings of clients that are no numbers: names, and lists of classes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor

_NAMES = {
    "client_id": (str, type(None)),
    "metric_group_prefix": (str,),
}
_LISTS = {"metric_reporters": "classes", "partition_assignment_strategy": "assignors"}


def check_kinds(config: dict[str, Any]) -> None:
    """Refuse a setting of the wrong kind, before it is an error of what uses it.

    Raises:
        TypeError: as from kafka-python; it is no name, or no list of what can be called.
    """
    for name, kinds in _NAMES.items():
        value = config.get(name, "")
        if not isinstance(value, kinds):
            raise TypeError(f"{name} is a str, not {value!r:.100}")
    for name, what in _LISTS.items():
        value = config.get(name, ())
        if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
            raise TypeError(f"{name} is a list of {what}, not {value!r:.100}")
        for one in value:
            if not callable(one) and not isinstance(one, AbstractPartitionAssignor):
                raise TypeError(f"{name} is a list of {what}, which {one!r:.100} is not")
