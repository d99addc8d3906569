"""Parsing the text of an option: numbers, times, topics, offsets. Errors are ValueErrors that say what was
expected; the caller adds the option's name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from kafka.cluster import collect_hosts

from dafka.protocol.json_text import read_json

TopicPartition = tuple[str, int]

_DURATION = re.compile(
    r"\s*(\d+(?:\.\d+)?)\s*(ms|millis|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hours?|d|days?)\s*"
)
_UNIT_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def by_partition(text: str) -> dict[TopicPartition, int]:
    shape = '{"topic": {"0": 23, "1": -2}}'
    values: dict[TopicPartition, int] = {}
    for topic, partitions in json_object(text, shape).items():
        if not isinstance(partitions, dict):
            raise ValueError(f"expected {shape}, not {text!r}")
        for number, value in partitions.items():
            if not re.fullmatch(r"\d{1,9}", number) or type(value) is not int:
                raise ValueError(f"expected {shape}, not {text!r}")
            values[topic, int(number)] = value
    return values


def assignment(text: str) -> tuple[TopicPartition, ...]:
    shape = '{"topic": [0, 1]}'
    assigned: list[TopicPartition] = []
    for topic, numbers in json_object(text, shape).items():
        if not isinstance(numbers, list) or not all(
            type(number) is int and number >= 0 for number in numbers
        ):
            raise ValueError(f"expected {shape}, not {text!r}")
        assigned += ((topic, number) for number in numbers)
    if not assigned:
        raise ValueError("no partition is named")
    return tuple(dict.fromkeys(assigned))


def json_object(text: str, shape: str) -> dict[str, Any]:
    try:
        value = read_json(text)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise ValueError(f"expected {shape}, not {text!r}")
    return value


def servers(text: str) -> str:
    hosts = [part.strip() for part in text.split(",") if part.strip()]
    try:
        if not hosts:
            raise ValueError
        for _, port, _ in collect_hosts(hosts, randomize=False):
            if not 0 < port < 65536:
                raise ValueError
    except ValueError:
        raise ValueError(f"expected HOST:PORT, several with commas, not {text!r}") from None
    return ",".join(hosts)


def names(text: str) -> tuple[str, ...]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise ValueError(f"expected topics with commas between them, not {text!r}")
    return tuple(dict.fromkeys(names))


def name(text: str) -> str:
    if not text.strip():
        raise ValueError("the name of a topic is not empty")
    return text.strip()


def pattern(text: str) -> str:
    text = text.strip()
    try:
        re.compile(text)
    except (re.error, RecursionError) as error:  # of parentheses within each other
        raise ValueError(f"{text!r} is not a valid regular expression: {error}") from None
    if not text:
        raise ValueError("the pattern is empty")
    return text


def boolean(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError(f"expected true or false, not {text!r}")
    return word == "true"


def not_negative(text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text.strip()):
        raise ValueError(f"expected a number, not {text!r}")
    return int(text)


def positive(text: str) -> int:
    number = not_negative(text)
    if not number:
        raise ValueError("expected a number above 0")
    return number


def duration(text: str) -> float:
    found = _DURATION.fullmatch(text.lower())
    if not found:
        raise ValueError(f"expected a time such as 15m or 30s, not {text!r}")
    unit = found[2]
    scale = 0.001 if unit.startswith(("ms", "milli")) else _UNIT_SECONDS[unit[0]]
    return float(found[1]) * scale


def one_of(*words: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        word = text.strip().lower()
        if word not in words:
            raise ValueError(f"expected {', '.join(words[:-1])} or {words[-1]}, not {text!r}")
        return word

    return convert
