"""This project's broker in a process of its own, until the end of its input: ``broker.py DIR``."""

from __future__ import annotations

import logging
import sys

from dafka import Broker

if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    with Broker(sys.argv[1], listen="127.0.0.1:0") as broker:
        print(broker.bootstrap_servers, flush=True)
        sys.stdin.read()
