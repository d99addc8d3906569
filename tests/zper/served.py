"""A broker with ZPER's servers as a program: it says its addresses, and runs until its input ends.

served.py FOLDER [OPTION=VALUE ...]
"""

from __future__ import annotations

import json
import sys
from typing import Any

from dafka import Broker
from dafka.zper import ZperOptions


def main() -> None:
    folder, *given = sys.argv[1:]
    options: dict[str, Any] = {}
    for name, _, value in (text.partition("=") for text in given):
        options[name] = value if value.startswith("tcp") else int(value)
    if "writer_replica" in options:
        options["writer_replica"] = tuple(options["writer_replica"].split(","))
    with Broker(folder, zper=ZperOptions(**options)) as broker:
        print(json.dumps(dict(broker.zper.addresses)), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
