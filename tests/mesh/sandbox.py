"""A process that may not look through the interfaces of its machine, as under a strict systemd unit.

python -m mesh.sandbox
"""

from __future__ import annotations

import ctypes
import platform
import socket
import struct

CALLS = {"x86_64": 41, "aarch64": 198}  # the number of the system call "socket", by machine
_NO_NEW_PRIVILEGES, _SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_UNSUPPORTED = 97  # EAFNOSUPPORT


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


def forbid_netlink() -> None:
    """No socket of AF_NETLINK from now on. Raises OSError where the system has no such filters."""
    instructions = [
        (_LOAD, 0, 0, 0),  # the number of the call
        (_JUMP_IF_EQUAL, 0, 3, CALLS[platform.machine()]),
        (_LOAD, 0, 0, 16),  # its first argument
        (_JUMP_IF_EQUAL, 0, 1, socket.AF_NETLINK),
        (_RETURN, 0, 0, _FAIL | _UNSUPPORTED),
        (_RETURN, 0, 0, _ALLOW),
    ]
    octets = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *one) for one in instructions))
    program = _Program(len(instructions), ctypes.addressof(octets))
    system = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_NO_NEW_PRIVILEGES, 1, 0, 0, 0), (_SECCOMP, _FILTER, ctypes.byref(program), 0, 0)):
        if system.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "prctl")


def main() -> None:
    try:
        forbid_netlink()
    except OSError as error:
        print(f"no filters: {error}")
        return
    from dafka import Tower

    with Tower() as tower:
        print(*tower.addresses)
    try:
        socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)
    except OSError:
        print("no interfaces")


if __name__ == "__main__":
    main()
