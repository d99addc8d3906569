"""ZPL, the configuration format of the C daemons (ZeroMQ RFC 4/ZPL), read into paths and values.

    beacon
        interval = 1000
    store
        db = "storedb"      #  a comment

is ``{"beacon/interval": "1000", "store/db": "storedb"}``. Four blanks of indentation are one level.
"""

from __future__ import annotations

import re

from dafka.protocol.errors import DafkaError

_LINE = re.compile(
    r"""^(?P<indent>\ *)
        (?P<name>[A-Za-z0-9_$\-.@/&+]+)
        (\s*=\s*(?P<value>"[^"]*"|'[^']*'|[^#]*?))?
        \s*(\#.*)?$""",
    re.VERBOSE,
)


class ZplError(DafkaError, ValueError):
    """A line of a configuration file that is no ZPL."""


def parse_zpl(text: str) -> dict[str, str]:
    """The values of a ZPL text by their paths. Raises :class:`ZplError` with the line's number."""
    values: dict[str, str] = {}
    path: list[str] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _LINE.match(line.rstrip())
        if match is None:
            raise ZplError(f"line {number} is not 'name' or 'name = value': {line!r}")
        level, odd = divmod(len(match["indent"]), 4)
        if odd or level > len(path):
            raise ZplError(f"line {number} is indented by {len(match['indent'])} blanks: {line!r}")
        path[level:] = [match["name"]]
        value = match["value"]
        if value is not None:
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            values["/".join(path)] = value[1:-1] if quoted else value.strip()
    return values
