"""The results of a look, as text for people and as JSON for programs."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from dafka.broker.looking.outcomes import printable
from dafka.broker.looking.watching import Answers, GroupRow, Look, TopicRow

TOPICS = ("TOPIC", "PARTITIONS", "RECORDS", "WRITTEN/S", "BYTES/S")
GROUPS = ("GROUP", "TYPE", "STATE", "LAG", "READ/S", "DELAY")


def as_object(look: Look) -> dict[str, Any]:
    """A look for ``--json``."""
    return {
        "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
        "cluster": look.cluster,
        "brokers": look.brokers,
        "topics": [
            {**one._asdict(), "written": _rounded(one.written), "growth": _rounded(one.growth)}
            for one in look.topics
        ],
        "groups": [
            {**one._asdict(), "read": _rounded(one.read), "delay": _rounded(one.delay)} for one in look.groups
        ],
        "answers": [{"request": one.request, **_milliseconds(one)} for one in look.answers],
        "left_out": look.left_out,
    }


def headline(look: Look) -> str:
    """The cluster in one line."""
    written = [one.written for one in look.topics if one.written is not None]
    read = [one.read for one in look.groups if one.read is not None]
    lag = sum(one.lag or 0 for one in look.groups)
    rates = f"{rate(sum(written))} written/s, {rate(sum(read))} read/s, " if written else ""
    return printable(
        f"cluster {look.cluster}: {_counted(look.brokers, 'broker')}, {_counted(len(look.topics), 'topic')}, "
        f"{_counted(len(look.groups), 'group')}; {rates}lag {lag:,}"
    )


def answered(look: Look) -> str:
    """How long the broker took to answer."""
    parts = [f"{one.request} {one.p50:.1f} / {one.p99:.1f}" for one in look.answers]
    return "answers, p50 / p99 in ms: " + ", ".join(parts)


def left_out(look: Look) -> str:
    """A note on what was left out, or nothing."""
    parts = []
    if look.left_out["partitions"]:
        parts.append(f"{look.left_out['partitions']:,} partitions are not watched: --topic PATTERN chooses")
    if look.left_out["groups"]:
        parts.append(f"{look.left_out['groups']:,} groups are looked at in turns: --group PATTERN chooses")
    return "; ".join(parts)


def topic_cells(row: TopicRow) -> tuple[str, ...]:
    """The cells below TOPICS."""
    return (
        printable(row.topic),
        f"{row.partitions:,}",
        f"{row.records:,}",
        rate(row.written),
        size(row.growth),
    )


def group_cells(row: GroupRow) -> tuple[str, ...]:
    """The cells below GROUPS."""
    lag = "-" if row.lag is None else f"{row.lag:,}"
    return printable(row.group), row.type, row.state, lag, rate(row.read), seconds(row.delay)


def rate(value: float | None) -> str:
    """A number a second."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 10 or value == 0 else f"{value:.1f}"


def size(value: float | None) -> str:
    """Octets: 17, 2.5 k, 31.0 M."""
    if value is None:
        return "-"
    for unit in ("", " k", " M"):
        if value < 999.95:
            return f"{value:.1f}{unit}" if unit else f"{value:.0f}"
        value /= 1000
    return f"{value:,.1f} G"


def seconds(value: float | None) -> str:
    """A length of time: 250 ms, 12.3 s, 5 min, 2.5 h."""
    if value is None:
        return "-"
    if value < 0.9995:
        return f"{1000 * value:.0f} ms"
    for size, unit in ((3600, "h"), (60, "min")):
        if value >= 2 * size:
            return f"{value / size:.1f} {unit}"
    return f"{value:.1f} s"


def _milliseconds(answers: Answers) -> dict[str, float]:
    return {name: round(getattr(answers, name), 3) for name in ("last", "p50", "p99")}


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
