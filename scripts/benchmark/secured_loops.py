"""What encryption costs without anything of this project: loops of Python's ssl, and of libsodium."""

from __future__ import annotations

import socket
import ssl
import tempfile
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time

from processes import Figures

OCTETS = 400_000_000
PIECE = bytes(1024 * 1024)
ROOM_OCTETS = 256 * 1024
BOXES = 50_000


def received(link: Connection, *, secured: bool) -> Figures:
    """Gigabytes that a loop receives in a second of its processor time, with or without TLS."""
    import trustme

    with tempfile.TemporaryDirectory() as folder, socket.create_server(("127.0.0.1", 0)) as server:
        authority, ca = trustme.CA(), Path(folder, "ca.pem")
        authority.cert_pem.write_to_path(str(ca))
        link.send((server.getsockname(), str(ca)))
        connection, _ = server.accept()
        if secured:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            authority.issue_cert("127.0.0.1").configure_cert(context)
            connection = context.wrap_socket(connection, server_side=True)
        with connection:
            room, count = bytearray(ROOM_OCTETS), 0
            began = process_time()
            while count < OCTETS:
                count += connection.recv_into(room)
            spent = process_time() - began
    return (count / 1e9 / spent,)


def sent(link: Connection, *, secured: bool) -> Figures:
    """The client of :func:`received`."""
    address, ca = link.recv()
    with socket.create_connection(address) as plain:
        connection: socket.socket = plain
        if secured:
            context = ssl.create_default_context(cafile=ca)
            connection = context.wrap_socket(plain, server_hostname=address[0])
        with connection:
            for _ in range(-(-OCTETS // len(PIECE))):
                connection.sendall(PIECE)
            with suppress(OSError):
                connection.recv(1)  # the other side closes when it has all of it
    return ()


def sealed(*, size: int) -> Figures:
    """Frames of ``size`` octets that this project seals and opens in a second of processor time, and boxes of
    libsodium alone."""
    from nacl._sodium import ffi, lib
    from nacl.bindings import crypto_box_keypair

    from dafka.zmtp.sealing import sealing_of

    (public, secret), (other_public, other_secret) = crypto_box_keypair(), crypto_box_keypair()
    sealer = sealing_of(other_public, secret, b"C", b"S", 0, 0).sealer
    opener = sealing_of(public, other_secret, b"S", b"C", 0, 0).opener
    opener.max_octets = size
    header = bytes([0, size]) if size < 256 else b"\x02" + size.to_bytes(8, "big")
    frames = (header + bytes(size)) * max(1, ROOM_OCTETS // size)
    rounds = max(1, BOXES * size // len(frames))
    began = process_time()
    for _ in range(rounds):
        assert len(opener.open(sealer.seal(frames))) == len(frames)
    ours = process_time() - began
    content, room, nonce, key = bytes(size), bytearray(size + 16), bytes(24), bytes(32)
    box, plain = ffi.from_buffer(room), ffi.from_buffer(bytearray(size))
    boxes = rounds * (len(frames) // (len(header) + size))
    began = process_time()
    for _ in range(boxes):
        lib.crypto_secretbox_easy(box, content, size, nonce, key)
        assert not lib.crypto_secretbox_open_easy(plain, box, size + 16, nonce, key)
    return boxes / ours, boxes / (process_time() - began)
