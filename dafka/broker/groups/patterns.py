"""Regular expressions that clients send, in the syntax of RE2 as in Apache Kafka (RE2/J).

RE2 matches in linear time. With Python's ``re`` a client could send an expression that blocks the hub for
ever. The package google-re2 is needed only for requests with such a filter (``pip install 'dafka[re2]'``).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from kafka.errors import BrokerResponseError, UnsupportedVersionError

from dafka.hub.turns import next_turn

PATTERN_OCTETS = 1000  # the largest expression; the time of compiling grows with it
PATTERN_MEMORY = 1 << 20  # octets that RE2 may take for one expression
MATCHES_A_TURN = 200


class InvalidRegularExpressionError(BrokerResponseError):
    """Kafka's INVALID_REGULAR_EXPRESSION, which kafka-python has no class for."""

    errno = 128
    message = "INVALID_REGULAR_EXPRESSION"
    description = "The regular expression is not valid."


def check_pattern(pattern: str) -> None:
    """Raise InvalidRegularExpressionError for an invalid or too large expression, and UnsupportedVersionError
    if google-re2 is not installed."""
    _compiled(pattern)


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The ``names`` that match ``pattern`` completely. Lets other green threads run between batches of names.

    Raises InvalidRegularExpressionError for an invalid or too large expression, and UnsupportedVersionError
    if google-re2 is not installed.
    """
    expression = _compiled(pattern)
    left = iter(names)
    found: list[str] = []
    while some := list(islice(left, MATCHES_A_TURN)):
        found += [name for name in some if expression.fullmatch(name)]
        next_turn()
    return found


def _compiled(pattern: str) -> Any:
    try:
        import re2
    except ImportError:
        raise UnsupportedVersionError(
            "a filter by regular expression needs google-re2: pip install 'dafka[re2]'"
        ) from None
    if len(pattern.encode(errors="replace")) > PATTERN_OCTETS:
        raise InvalidRegularExpressionError(f"an expression of more than {PATTERN_OCTETS} octets")
    options = re2.Options()
    options.max_mem = PATTERN_MEMORY
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise InvalidRegularExpressionError(f"{pattern!r}: {error}") from None
