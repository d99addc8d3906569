"""A group member with one of the Python clients: ``member.py CLIENT ADDRESS GROUP TOPIC``.

It runs until the end of its input.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(TESTS.parent), str(TESTS)]


def main(client: str, servers: str, group: str, topic: str) -> None:
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    if client == "kafka-python":
        from clients.adapters.kafka_python import run_member
    elif client == "confluent-kafka":
        from clients.adapters.confluent import run_member
    else:
        from clients.adapters.aio import run_member
    run_member(servers, group, topic, over.is_set)


if __name__ == "__main__":
    main(*sys.argv[1:])
