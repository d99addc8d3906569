"""What a client refuses, to be compared with what kafka-python's refuses."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

NOWHERE = {"bootstrap_servers": "127.0.0.1:1", "api_version": (2, 6)}


def outcome(action: Callable[[], Any]) -> BaseException | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            action()
        except Exception as error:
            return error
    return None
