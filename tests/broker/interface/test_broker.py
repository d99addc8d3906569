"""What callers may ask any broker, wherever it is."""

from __future__ import annotations

import pytest
from broker.clients import Client
from kafka.protocol.metadata import MetadataRequest

from dafka import Broker
from dafka.broker.remote.remote import Remote
from dafka.hub.hub import get_hub

HERE = "127.0.0.1"


def test_a_broker_of_this_process_is_reached_and_runs_until_it_is_closed():
    with Broker() as broker:
        core = Client(broker).core
        host, port = broker.bootstrap_servers.split(":")
        assert core.addresses == ((host, int(port)),)
        assert (core.is_remote, core.reached, core.running) == (False, True, True)
        with pytest.raises(NotImplementedError):
            core.send(MetadataRequest(topics=[]))
    assert not core.running


def test_a_remote_broker_runs_and_is_reached_with_its_first_answer():
    with Broker(listen=f"{HERE}:0") as broker:
        address = HERE, int(broker.bootstrap_servers.split(":")[1])
        hub = get_hub()
        remote = Remote(hub, [address])
        try:
            assert remote.addresses == (address,)
            assert (remote.is_remote, remote.reached, remote.running) == (True, False, True)
            hub.run(remote.metadata, ())
            assert hub.run(remote.send, MetadataRequest(topics=[])).topics == []
            assert (remote.reached, remote.running) == (True, True)
            with pytest.raises(NotImplementedError):
                remote.watch()
        finally:
            hub.run(remote.close)
