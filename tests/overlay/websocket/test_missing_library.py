"""Where the package websockets is not installed, endpoints work all the same."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
sys.modules["websockets"] = None
from dafka.overlay import Endpoint
with Endpoint(listen="127.0.0.1:0") as endpoint:
    for use in (lambda: endpoint.listen_websocket(), lambda: __import__("dafka.overlay.websocket")):
        try:
            use()
        except ImportError as error:
            print(type(error).__name__, error)
"""


def test_an_error_says_what_to_install():
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    line = "MissingLibrary the WebSocket API needs websockets: pip install 'dafka[websocket]'"
    assert done.stdout.splitlines() == [line, line]
    assert done.stderr == ""
