"""libdafka's own perf tool, with its tower and its store: the reference of ``dafka perf store``.

``DAFKA_TEST_LIBDAFKA`` is the folder with its programs, built from https://github.com/zeromq/dafka with a
czmq that has its drafts.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

from libzmq_loops import NotBuiltError
from processes import Figures

READY_SECONDS = 2.0  # the daemons say nothing when they are ready
SECONDS = 300


@lru_cache(maxsize=4)
def stored(turn: int, *, count: int, size: int) -> Figures:
    """Records published, stored and acknowledged in a second, as the tool says. Raises NotBuiltError."""
    programs = Path(os.environ.get("DAFKA_TEST_LIBDAFKA", ".")).absolute()
    if not (programs / "dafka_perf_store").exists():
        raise NotBuiltError("DAFKA_TEST_LIBDAFKA is not the folder with libdafka's programs")
    mesh = [f"--{side}=tcp://127.0.0.1:{_free_port()}".partition("=")[::2] for side in ("sub", "pub")]
    options = [word for option in mesh for word in option]
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        for daemon in ("dafka_towerd", "dafka_stored"):
            process = subprocess.Popen([programs / daemon, *options], cwd=folder, stdout=subprocess.DEVNULL)
            stack.callback(process.wait)
            stack.callback(process.kill)
        time.sleep(READY_SECONDS)
        tool = [programs / "dafka_perf_store", *options, str(count), str(size)]
        done = subprocess.run(tool, cwd=folder, capture_output=True, text=True, check=True, timeout=SECONDS)
    found = re.search(r"mean throughput: (\d+) \[msg", done.stdout)
    assert found is not None, done.stdout
    return (float(found[1]),)


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
