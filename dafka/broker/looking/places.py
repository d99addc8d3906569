"""Places in partitions as people write them: ``earliest``, ``latest``, an offset, ``-10``, a time, ``2h``."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, tzinfo
from typing import NamedTuple

from dafka.broker.interface.records import EARLIEST, LATEST
from dafka.broker.looking.outcomes import Asked, check

TopicPartition = tuple[str, int]

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_AGO = re.compile(r"(\d{1,9})([smhd])", re.ASCII)
_LARGEST = 2**63 - 1


class Place(NamedTuple):
    """A place in any partition.

    ``kind``: "earliest", "latest", "offset", "before end" (so many offsets) or "time" (milliseconds).
    """

    kind: str
    number: int = 0


def parse_place(text: str, zone: tzinfo | None = None) -> Place:
    """The place that is meant. Raises ValueError for anything else, with the forms that there are.

    ``zone``: of times that do not name theirs; None is the local one.
    """
    if text in ("earliest", "latest"):
        return Place(text)
    if re.fullmatch(r"-?\d{1,19}", text, re.ASCII) and abs(int(text)) <= _LARGEST:
        return Place("before end", -int(text)) if text[0] == "-" else Place("offset", int(text))
    if found := _AGO.fullmatch(text):
        return Place("time", max(int((time.time() - int(found[1]) * _SECONDS[found[2]]) * 1000), 0))
    try:
        moment = datetime.fromisoformat(_as_python_3_10_has_it(text))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        # Negative ones mean something else to a broker: -1 is the end, -2 the beginning.
        return Place("time", max(round(moment.timestamp() * 1000), 0))
    except (ValueError, OverflowError, OSError):
        raise ValueError(
            f"{text!r} is not one of earliest, latest, an offset (7), offsets before the end (-7), a time "
            f"(2026-01-31T12:00, {zone or 'local'} unless it says Z or +01:00) "
            "or a time ago (30s, 15m, 2h, 7d)"
        ) from None


def _as_python_3_10_has_it(text: str) -> str:
    """A time without Z, and with six digits behind its seconds if there are any."""
    text = re.sub("[zZ]$", "+00:00", text)
    return re.sub(r"(?<=:\d\d)[.,](\d+)", lambda found: "." + found[1][:6].ljust(6, "0"), text)


def offsets_of(
    broker: Asked, place: Place, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, int]:
    """The offsets that ``place`` means: a time is the first record at or after it, or else the end.

    An offset that a partition does not have becomes the nearest one that it has.
    """
    wanted = list(partitions)
    first, end = bounds(broker, wanted)
    if place.kind == "earliest":
        return first
    if place.kind == "latest":
        return end
    if place.kind == "time":
        found = list_offsets(broker, wanted, place.number)
        return {key: end[key] if found[key] < 0 else found[key] for key in wanted}
    numbers = {key: place.number if place.kind == "offset" else end[key] - place.number for key in wanted}
    return {key: min(max(number, first[key]), end[key]) for key, number in numbers.items()}


def bounds(
    broker: Asked, partitions: list[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """The first offset of each partition, and the one behind its last record."""
    return list_offsets(broker, partitions, EARLIEST), list_offsets(broker, partitions, LATEST)


def readable_ends(
    broker: Asked, partitions: list[TopicPartition], committed: bool = True
) -> dict[TopicPartition, int]:
    """How far a consumer gets now: one of ``committed`` records not beyond an open transaction."""
    return list_offsets(broker, partitions, LATEST, committed)


def list_offsets(
    broker: Asked, partitions: list[TopicPartition], timestamp: int, committed: bool = False
) -> dict[TopicPartition, int]:
    """The offset of each partition at a time. Raises RefusedError."""
    found = broker.call("list_offsets", dict.fromkeys(partitions, timestamp), read_committed=committed)
    check(found)
    return {key: found[key].offset for key in partitions}


def partitions_of(broker: Asked, topics: Iterable[str]) -> dict[str, list[int]]:
    """The numbers of the partitions of topics. Raises RefusedError for one that does not exist."""
    wanted = list(topics)
    found = broker.call("metadata", wanted).topics
    check({f"topic {name}": found[name] for name in wanted})
    return {name: sorted(one.number for one in found[name].partitions) for name in wanted}


def within(broker: Asked, offsets: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Offsets that partitions do not have become the nearest ones that they have."""
    first, end = bounds(broker, list(offsets))
    return {key: min(max(offset, first[key]), end[key]) for key, offset in offsets.items()}
