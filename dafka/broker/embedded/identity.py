"""The names of a broker that stay the same each time its folder is opened."""

from __future__ import annotations

import base64
import uuid
from typing import NamedTuple

from dafka.commit.writer import Writer
from dafka.log import Log, shapes
from dafka.log.kinds import BROKER, check_kind
from dafka.log.limits import NAME_BYTES
from dafka.mesh.address import new_address

NODE_ID = 0
IDENTITY = BROKER.table  # of these names


class Identity(NamedTuple):
    """The id of the cluster, and the address of the broker's store on the mesh."""

    cluster_id: str
    address: bytes


def _name(value: object) -> bool:
    return shapes.text(value) and 0 < len(str(value)) <= NAME_BYTES and str(value).isascii()


def identity(log: Log, writer: Writer) -> Identity:
    """The names in the log, made and written if it is new; waits as a green thread for the commit.

    Raises NotALogError for the log of a store.
    """
    check_kind(log, BROKER)
    table = log.table(IDENTITY, shapes.named_rows(cluster_id=_name, address=_name))
    if "cluster_id" not in table or "address" not in table:
        cluster_id = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        address = new_address().decode()
        writer.put_and_wait({(IDENTITY, "cluster_id"): cluster_id, (IDENTITY, "address"): address})
    return Identity(str(table.get("cluster_id")), str(table.get("address")).encode())
