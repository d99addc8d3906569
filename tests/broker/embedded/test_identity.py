"""The names of a broker that stay the same each time its folder is opened."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from broker.clients import Client

from dafka import Broker
from dafka.broker.embedded.identity import IDENTITY, Identity, identity
from dafka.commit.writer import Writer
from dafka.hub.hub import get_hub
from dafka.log import Log


def opened(folder: Path) -> Identity:
    def read(log: Log) -> Identity:
        writer = Writer(hub, log)
        try:
            return identity(log, writer)
        finally:
            writer.close()

    hub = get_hub()
    with Log(str(folder)) as log:
        found = hub.run(read, log)
        assert set(log.table(IDENTITY)) == {"cluster_id", "address"}
    return found


def test_the_names_are_made_once_and_kept_with_the_folder(tmp_path):
    first = opened(tmp_path / "a")
    assert opened(tmp_path / "a") == first
    other = opened(tmp_path / "b")
    assert other.cluster_id != first.cluster_id
    assert other.address != first.address


def test_the_id_of_a_cluster_has_kafkas_form_and_the_address_is_a_uuid(tmp_path):
    found = opened(tmp_path)
    assert len(found.cluster_id) == 22  # a UUID in Base64 for URLs, without padding
    UUID(found.address.decode())


def test_clients_are_told_the_id_of_the_cluster(tmp_path):
    with Broker(tmp_path) as broker:
        told = Client(broker).call("metadata", ()).cluster_id
    assert told == opened(tmp_path).cluster_id
