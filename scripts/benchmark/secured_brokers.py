"""Costs of TLS and accounts for a broker: its processor time for the same records, and its new
connections."""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time
from typing import Any

from kafka_clients import consume_all, fill, new_topic
from processes import Figures

LISTENERS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISM = "SCRAM-SHA-256"
USER, PASSWORD = "alice", "a password"
ITERATIONS = 4096
PARTITIONS = 6
API_VERSIONS = b"\0\0\0\x0d\0\x12\0\0\0\0\0\1\0\3abc"  # version 0, client "abc"


def broker(link: Connection) -> Figures:
    """A broker with a listener of each kind. It answers each message with its processor time, until None."""
    import trustme

    import dafka.broker
    from dafka import Broker
    from dafka.broker.interface.access import CredentialUpsertion, ScramMechanism
    from dafka.security import ServerSasl, ServerTls
    from dafka.security.credentials import salted_password

    with tempfile.TemporaryDirectory() as folder:
        authority, home = trustme.CA(), Path(folder)
        signed = authority.issue_cert("127.0.0.1")
        certificate, key, ca = home / "server.pem", home / "server.key", home / "ca.pem"
        signed.cert_chain_pems[0].write_to_path(str(certificate))
        signed.private_key_pem.write_to_path(str(key))
        authority.cert_pem.write_to_path(str(ca))
        with Broker(
            home / "data",
            listen=",".join(f"{listener}://127.0.0.1:0" for listener in LISTENERS),
            tls=ServerTls(certfile=str(certificate), keyfile=str(key)),
            sasl=ServerSasl(mechanisms=(MECHANISM,)),
        ) as running:
            salt = os.urandom(16)
            salted = salted_password(MECHANISM, PASSWORD, salt, ITERATIONS)
            account = CredentialUpsertion(USER, ScramMechanism.SCRAM_SHA_256, ITERATIONS, salt, salted)
            owner = dafka.broker.connect(running.listeners["PLAINTEXT"], 60)
            (made,) = owner.call("alter_accounts", [], [account]).values()
            assert not made.error
            owner.close()
            link.send((running.listeners, str(ca)))
            while link.recv() is not None:
                link.send(process_time())
    return ()


def records(link: Connection, *, listener: str, size: int, count: int) -> Figures:
    """Gigabytes of values for each second of the broker's processor time: written, and read."""
    servers, door = _door(link, listener)
    topic = new_topic(servers["PLAINTEXT"], PARTITIONS)
    fill(servers[listener], topic, size, PARTITIONS, **door)  # connected before
    times = [_processor_time(link)]
    fill(servers[listener], topic, size, count, **door)
    times.append(_processor_time(link))
    consume_all(servers[listener], topic, PARTITIONS, count, **door)
    times.append(_processor_time(link))
    link.send(None)
    gigabytes = size * count / 1e9
    return gigabytes / (times[1] - times[0]), gigabytes / (times[2] - times[1])


def connections(link: Connection, *, listener: str, count: int) -> Figures:
    """New connections with one request each for each second of the broker's processor time."""
    servers, door = _door(link, listener)
    host, port = servers[listener].rsplit(":", 1)
    context = ssl.create_default_context(cafile=door["ssl.ca.location"]) if "SSL" in listener else None
    before = _processor_time(link)
    for _ in range(count):
        with socket.create_connection((host, int(port))) as plain:
            connection = context.wrap_socket(plain, server_hostname=host) if context else plain
            connection.sendall(API_VERSIONS)
            connection.recv(65536)
            connection.close()
    spent = _processor_time(link) - before
    link.send(None)
    return (count / spent,)


def _door(link: Connection, listener: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The broker's addresses by listener, and librdkafka's settings for this one."""
    servers, ca = link.recv()
    door = {"security.protocol": listener}
    if "SSL" in listener:
        door["ssl.ca.location"] = ca
    if "SASL" in listener:
        door |= {"sasl.mechanism": MECHANISM, "sasl.username": USER, "sasl.password": PASSWORD}
    return servers, door


def _processor_time(link: Connection) -> float:
    link.send("?")
    return float(link.recv())
