"""A network that loses packets: each process has an IP stack of its own, in a namespace of Linux.

Their packets come by here through TUN devices, and some are dropped, or overtaken by later ones. It takes the
rights of root, ``unshare`` and ``ip``: :func:`missing` says what is not there.
"""

from __future__ import annotations

import fcntl
import os
import random
import selectors
import shutil
import socket
import struct
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

TUN = "/dev/net/tun"
DEVICE = "wire"
_TUNSETIFF = 0x400454CA
_PLAIN_PACKETS = 0x1001  # IFF_TUN | IFF_NO_PI
_DESTINATION = slice(16, 20)  # of a packet of IPv4
_MTU = 1500


def missing() -> str:
    """Why there can be no such network here; empty if there can be one."""
    for command in ("unshare", "ip"):
        if shutil.which(command) is None:
            return f"there is no command {command}"
    try:
        os.close(os.open(TUN, os.O_RDWR))
    except OSError as error:
        return f"{TUN}: {error.strerror}"
    made = subprocess.run(["unshare", "--net", "true"], capture_output=True, text=True, check=False)
    return "" if made.returncode == 0 else f"no namespaces: {made.stderr.strip()}"


class Network:
    """``loss``: of all packets, how many are lost, 0 to 1; as many are overtaken by the next one."""

    def __init__(self, loss: float, seed: int) -> None:
        self.passed = self.lost = 0
        self._loss = loss
        self._chance = random.Random(seed)
        self._devices: dict[bytes, int] = {}  # by address
        self._late: list[bytes] = []
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def host(self, number: int) -> str:
        """The address of a process, which has a number from 1 to 254."""
        return f"10.77.0.{number}"

    def start(self, number: int, command: list[str], **more: Any) -> subprocess.Popen[str]:
        """Run a command in a namespace of its own; ``more`` is for Popen."""
        here, there = socket.socketpair()
        with here, there:
            enter = [sys.executable, __file__, str(there.fileno()), self.host(number)]
            process: subprocess.Popen[str] = subprocess.Popen(
                ["unshare", "--net", *enter, *command], pass_fds=[there.fileno()], **more
            )
            there.close()
            _, (device,), _, _ = socket.recv_fds(here, 1, 1)
        address = socket.inet_aton(self.host(number))
        with self._lock:
            self._forget(address)
            self._devices[address] = device
            self._selector.register(device, selectors.EVENT_READ, address)
        return process

    def close(self) -> None:
        self._is_closed = True
        self._thread.join()
        with self._lock:
            for address in list(self._devices):
                self._forget(address)
        self._selector.close()

    def _forget(self, address: bytes) -> None:
        device = self._devices.pop(address, None)
        if device is not None:
            with suppress(KeyError):
                self._selector.unregister(device)
            os.close(device)

    def _carry(self) -> None:
        while not self._is_closed:
            ready = self._selector.select(0.05)
            with self._lock:
                for key, _ in ready:
                    if self._devices.get(key.data) == key.fd:
                        self._read(key.data, key.fd)

    def _read(self, address: bytes, device: int) -> None:
        try:
            packet = os.read(device, _MTU)
        except OSError:  # its process has ended
            self._forget(address)
            return
        if self._chance.random() < self._loss:
            self.lost += 1
        elif self._chance.random() < self._loss:
            self._late.append(packet)
        else:
            late, self._late = self._late, []
            for one in (packet, *late):
                self._pass_on(one)

    def _pass_on(self, packet: bytes) -> None:
        device = self._devices.get(packet[_DESTINATION])
        if device is not None:
            with suppress(OSError):
                os.write(device, packet)
                self.passed += 1


def enter() -> None:
    """In the new namespace: make a device, hand it over, and become the command."""
    there, host, *command = sys.argv[1:]
    device = os.open(TUN, os.O_RDWR)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", DEVICE.encode(), _PLAIN_PACKETS))
    for words in (f"addr add {host}/24 dev {DEVICE}", f"link set {DEVICE} up", "link set lo up"):
        subprocess.run(["ip", *words.split()], check=True)
    with socket.socket(fileno=int(there)) as parent:
        socket.send_fds(parent, [b"."], [device])
    os.close(device)
    os.execv(command[0], command)


if __name__ == "__main__":
    enter()
