"""What storing costs without a broker: a loop of Python that receives a megabyte at a time and writes it."""

from __future__ import annotations

import socket
import tempfile
from pathlib import Path
from threading import Thread
from time import thread_time

from crc32c import crc32c
from processes import Figures

MEGABYTE = 1_000_000


def stored(*, count: int, apart: bool) -> Figures:
    """Seconds of processor time for each GB that is received, gets a checksum, and is written: each megabyte
    to a file of its own, or behind the others."""
    room = memoryview(bytearray(MEGABYTE))
    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        sender = Thread(target=_send, args=(server.getsockname(), count))
        sender.start()
        connection, _ = server.accept()
        with connection, open(Path(folder, "all"), "xb", buffering=0) as behind:
            began = thread_time()
            for number in range(count):
                filled = 0
                while filled < MEGABYTE:
                    filled += connection.recv_into(room[filled:])
                crc32c(room)
                if apart:
                    with open(Path(folder, str(number)), "xb", buffering=0) as file:
                        file.write(room)
                else:
                    behind.write(room)
            spent = thread_time() - began
        sender.join()
    return (spent * 1e9 / (count * MEGABYTE),)


def _send(address: tuple[str, int], count: int) -> None:
    piece = bytes(MEGABYTE)
    with socket.create_connection(address) as connection:
        for _ in range(count):
            connection.sendall(piece)
