"""The two sides of a migration: the broker at an address, or one on a folder."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kafka.errors import KafkaError

from dafka import Broker
from dafka.broker import connect
from dafka.broker.connecting import EMBEDDED, Connection
from dafka.broker.interface.errors import LoginRefusedError
from dafka.broker.looking.silence import told_of_silence
from dafka.log import LogError
from dafka.migrating.errors import MigrationError
from dafka.security.client_properties import client_security, read_properties

ADDRESS = re.compile(r"[^/\s,]+:\d{1,5}(,[^/\s,]+:\d{1,5})*")
CONNECT_SECONDS = 15.0


class Side(NamedTuple):
    """A side with the text that named it, and the id of its cluster."""

    name: str
    connection: Connection
    cluster_id: str


@contextmanager
def opened(name: str, *, create: bool = False, config: str | None = None) -> Iterator[Side]:
    """The side that ``HOST:PORT``, several of them with commas, or DIR names.

    A folder is opened with a broker of its own in this process; ``create``: it may be a new one. ``config``
    is a file of Kafka's client properties, for an address with TLS or accounts. Raises MigrationError if
    there is nothing.
    """
    os.environ.pop(EMBEDDED, None)  # an address means that address here
    if ADDRESS.fullmatch(name):
        try:
            security = client_security({} if config is None else read_properties(config))
        except (ValueError, OSError) as error:
            raise MigrationError(str(error)) from error
        try:
            with told_of_silence(name, CONNECT_SECONDS, lambda text: print(text, file=sys.stderr)):
                connection = connect(name, CONNECT_SECONDS, retry_login=False, **security.arguments)
            cluster_id = connection.call("metadata", []).cluster_id
        except LoginRefusedError as error:
            raise MigrationError(str(error.args[0])) from error
        except (KafkaError, ValueError, OSError) as error:
            what = f"no broker answers within {CONNECT_SECONDS:g} s at {name}"
            raise MigrationError(what if config is None else f"{what}: {_words(error)}") from error
        try:
            yield Side(name, connection, cluster_id)
        finally:
            connection.close()
        return
    if not create and not os.path.isdir(name):
        raise MigrationError(f"{name} is neither HOST:PORT nor a folder")
    try:
        broker = Broker(name).start()
    except (LogError, OSError) as error:
        raise MigrationError(f"the folder {name} cannot be opened: {error}") from error
    with broker:
        connection = connect(broker.bootstrap_servers)
        yield Side(name, connection, connection.call("metadata", []).cluster_id)


def _words(error: Exception) -> str:
    """Why a connection failed, if that is known."""
    return str(error.__cause__ or error)
