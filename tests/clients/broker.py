"""This project's broker in a process of its own, until the end of its input:
``broker.py DIR [NAME=VALUE...]``, with these settings of groups."""

from __future__ import annotations

import logging
import sys

from dafka import Broker

if __name__ == "__main__":
    logging.basicConfig(level=logging.ERROR)
    folder, *settings = sys.argv[1:]
    settings_of_groups = dict(one.split("=", 1) for one in settings)
    with Broker(folder, listen="127.0.0.1:0", group_settings=settings_of_groups) as broker:
        print(broker.bootstrap_servers, flush=True)
        sys.stdin.read()
