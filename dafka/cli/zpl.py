"""ZPL, the configuration format of the C daemons (ZeroMQ RFC 4/ZPL), read into paths and values.

    beacon
        interval = 1000
    store
        db = "storedb"      #  a comment

is ``{"beacon/interval": "1000", "store/db": "storedb"}``. Four blanks of indentation are one level. A name
with neither a value nor names below it has the value None.
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
    """A line of a configuration file is not ZPL."""


def parse_zpl(text: str) -> dict[str, str | None]:
    """The values of a ZPL text by their paths. Raises :class:`ZplError` with the line's number."""
    values: dict[str, str | None] = {}
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
        key, value = "/".join(path), match["value"]
        if value is not None:
            if values.get(key) is not None:
                raise ZplError(f"line {number} gives {key} a second value: {line!r}")
            quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
            values[key] = value[1:-1] if quoted else value.strip()
        else:
            values.setdefault(key, None)
    sections = {key[:place] for key in values for place, sign in enumerate(key) if sign == "/"}
    return {key: value for key, value in values.items() if value is not None or key not in sections}
