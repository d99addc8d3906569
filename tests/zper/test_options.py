"""ZperOptions: the keys of the configuration file as options of a program."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest
from timing import until
from zper.clients import LATEST, offset, write

from dafka.testing import TestBroker
from dafka.zper.options import ZperOptions
from dafka.zper.properties import KEYS, defaults, read_properties
from dafka.zper.settings import ANY_PORT, MESSAGE_LIMIT


def test_there_is_an_option_for_each_key_with_an_effect_and_with_its_default():
    with_effect = {name.replace(".", "_"): key.default for name, key in KEYS.items() if key.effect}
    del with_effect["base_dir"]  # the broker's path
    options = {field.name: field.default for field in fields(ZperOptions)}
    assert {name: value for name, value in options.items() if not name.endswith("_bind")} == {
        **{name: value for name, value in with_effect.items() if not name.endswith("_bind")},
        **{"writer_replica": (), "controller_quorum": ()},
    }
    assert {name for name in options if name.endswith("_bind")} < set(with_effect)


def test_in_a_program_everything_listens_on_loopback_and_on_free_ports():
    assert all(
        getattr(ZperOptions(), name) == ANY_PORT
        for name in ("writer_bind", "reader_bind", "ack_bind", "relay_bind", "controller_bind")
    )


def test_a_file_gives_the_options_with_its_own_defaults():
    options = ZperOptions.of_properties(defaults())
    assert options.writer_bind == "tcp://127.0.0.1:5555"
    text = "writer.replica.2 = tcp://b:1\nwriter.replica.1 = tcp://a:1\nflush_interval = 5\nack.bind =\n"
    options = ZperOptions.of_properties(read_properties(text).values)
    assert options == ZperOptions(
        writer_bind="tcp://127.0.0.1:5555",
        reader_bind="tcp://127.0.0.1:5556",
        ack_bind=None,
        relay_bind="tcp://127.0.0.1:5558",
        controller_bind="tcp://127.0.0.1:5559",
        flush_interval=5,
        writer_replica=("tcp://a:1", "tcp://b:1"),
    )


@pytest.mark.parametrize("nowhere", [None, ""])
def test_an_address_that_is_none_or_empty_as_in_a_file_means_no_such_server(nowhere: str | None):
    options = ZperOptions(reader_bind=nowhere, ack_bind=nowhere, relay_bind=nowhere, controller_bind=nowhere)
    with TestBroker(zper=options) as broker:
        assert broker.zper.addresses == {"writer": broker.zper.writer_address}
        with pytest.raises(LookupError, match="ack_bind"):
            broker.zper.ack_address  # noqa: B018


def test_they_do_not_change():
    with pytest.raises(FrozenInstanceError):
        ZperOptions().flush_messages = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    "option, value",
    [
        ("flush_messages", 0),
        ("flush_messages", "10"),
        ("flush_messages", True),
        ("flush_interval", -1),
        ("flush_interval", 0.5),
        ("segment_size", 0),
        ("retain_hours", 0),
        ("allow_empty_message", 1),
        ("writer_bind", "5555"),
        ("writer_bind", 5555),
        ("reader_bind", "tcp://*:70000"),
        ("writer_replica", "tcp://a:1"),
        ("writer_replica", ("tcp://*:1",)),
        ("controller_quorum", ("udp://a:1",)),
        ("max_message", MESSAGE_LIMIT + 1),
        ("writer_replica_sync", 1),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_option(option, value):
    with pytest.raises(ValueError, match=option):
        ZperOptions(**{option: value})


def test_a_server_can_be_left_out():
    assert ZperOptions(relay_bind=None).relay_bind is None


def test_the_largest_numbers_that_a_key_takes_can_be_served(clients):
    names = ["segment_size", "flush_messages", "flush_interval", "retain_hours", "relay_poll"]
    names += ["send_buffer", "receive_buffer"]
    options = ZperOptions(**dict.fromkeys(names, 2**63 - 1), max_message=MESSAGE_LIMIT)
    with TestBroker(zper=options) as broker:
        slow = clients.dealer(broker.zper.writer_address, "events", 1)
        slow.send(b"slow")
        until(lambda: broker.metrics()["zper_unflushed_messages"] == 1)
        write(clients, broker, "events", [b"fast"])
        assert slow.recv() == b"slow"
        reader = clients.dealer(broker.zper.reader_address, "events")
        assert offset(reader, LATEST) == (100, [0, 12])
