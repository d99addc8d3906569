"""What a running broker holds, and that it lets go of all of it."""

from __future__ import annotations

import os
import socket
from contextlib import suppress

import pytest
from ports import free_port

from dafka import Broker


def test_a_broker_without_a_path_takes_its_temporary_folder_with_it():
    with Broker() as broker:
        folder = broker.path
        assert os.path.isdir(folder)
    assert not os.path.exists(folder)


def test_the_folder_goes_away_too_when_the_broker_fails_in_use():
    with pytest.raises(KeyError), Broker() as broker:
        folder = broker.path
        raise KeyError
    assert not os.path.exists(folder)


def test_the_address_belongs_to_the_broker_alone_and_is_on_loopback(broker):
    host, port = broker.bootstrap_servers.split(":")
    assert host == "127.0.0.1"
    with socket.socket() as other, pytest.raises(OSError):
        other.bind((host, int(port)))


def test_a_broker_that_starts_again_takes_another_port_when_its_own_is_taken(tmp_path):
    broker = Broker(tmp_path)
    with broker:
        host, port = broker.bootstrap_servers.split(":")
    with socket.socket() as other:
        with suppress(OSError):  # another process has it
            other.bind((host, int(port)))
        with broker:
            assert broker.bootstrap_servers.split(":") != [host, port]


def test_ports_of_all_listeners_are_free_again_when_one_of_them_is_taken():
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        free = free_port()
        with pytest.raises(OSError):
            Broker(listen=f"PLAINTEXT://127.0.0.1:{free},SASL_PLAINTEXT://127.0.0.1:{taken}").start()
        with socket.socket() as again:
            again.bind(("127.0.0.1", free))
