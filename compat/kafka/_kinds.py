"""Settings of clients that are no numbers: names, lists of classes, versions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.protocol.broker_version_data import BrokerVersionData

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


def version_of(api_version: Any) -> Any:
    """The version of a broker that a consumer's ``api_version`` stands for; None for None.

    Raises:
        ValueError: it is no tuple of numbers.
        UnrecognizedBrokerVersion: older than all that kafka-python knows.
    """
    try:
        return None if api_version is None else BrokerVersionData(api_version).broker_version
    except ValueError:
        raise ValueError(f"api_version is a tuple of numbers, not {api_version!r:.100}") from None
