"""The address that a broker listens on, and the one that clients are told."""

from __future__ import annotations

import logging

import pytest
from logs import logged

from dafka.broker.listening import Listen, client_host, parse_listen, parse_listeners, warn_if_open


@pytest.mark.parametrize(
    ("listen", "advertised", "expected"),
    [
        ("localhost:0", None, Listen("localhost", 0)),
        ("[::1]:9092", None, Listen("::1", 9092)),
        ("0.0.0.0:9092", "kafka.example", Listen("0.0.0.0", 9092, "kafka.example", 0)),
        ("*:9092", "kafka.example:19092", Listen("*", 9092, "kafka.example", 19092)),
        ("127.0.0.1:1", "fe80::1", Listen("127.0.0.1", 1, "fe80::1", 0)),
    ],
)
def test_an_address_is_a_host_and_a_port(listen, advertised, expected):
    assert parse_listen(listen, advertised) == expected


@pytest.mark.parametrize(
    "listen", ["", "host", "host:", "host:x", "host:65536", ":9092", "a b:1", "::1:9092x", None]
)
def test_an_address_without_a_host_or_a_port_is_refused_by_name(listen):
    with pytest.raises(ValueError, match=r"listen is 'HOST:PORT'"):
        parse_listen(listen, None)


@pytest.mark.parametrize(("listen", "advertised"), [("0.0.0.0:1", None), ("*:1", None), ("[::]:1", None)])
def test_every_interface_needs_an_advertised_host(listen, advertised):
    with pytest.raises(ValueError, match="advertised='HOST'"):
        parse_listen(listen, advertised)


def test_every_interface_cannot_be_advertised():
    with pytest.raises(ValueError, match=r"advertised='0\.0\.0\.0'"):
        parse_listen("127.0.0.1:0", "0.0.0.0")


@pytest.mark.parametrize(
    ("listen", "expected"),
    [
        (Listen("*", 1, "kafka.example"), "kafka.example"),
        (Listen("localhost", 1), "127.0.0.1"),
        (Listen("127.0.0.2", 1), "127.0.0.1"),
        (Listen("my-host", 1), "my-host"),
    ],
)
def test_clients_are_told_the_advertised_host_or_a_name_or_the_bound_address(listen, expected):
    assert client_host(listen, "127.0.0.1") == expected


@pytest.mark.parametrize(
    ("listen", "advertised", "expected"),
    [
        ("127.0.0.1:1", None, [Listen("127.0.0.1", 1)]),
        ("ssl://127.0.0.1:1", None, [Listen("127.0.0.1", 1, protocol="SSL")]),
        (
            "PLAINTEXT://127.0.0.1:1, SSL://0.0.0.0:2",
            "SSL://kafka.example:3",
            [Listen("127.0.0.1", 1), Listen("0.0.0.0", 2, "kafka.example", 3, "SSL")],
        ),
        (
            "PLAINTEXT://*:1,SSL://*:2",
            "kafka.example",
            [Listen("*", 1, "kafka.example"), Listen("*", 2, "kafka.example", 0, "SSL")],
        ),
    ],
)
def test_several_listeners_have_a_protocol_each(listen, advertised, expected):
    assert parse_listeners(listen, advertised) == tuple(expected)


@pytest.mark.parametrize(
    ("listen", "advertised", "message"),
    [
        ("SASL://127.0.0.1:1", None, "'SASL' is not one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("SSL://127.0.0.1:1,SSL://127.0.0.1:2", None, "has SSL more than once"),
        ("127.0.0.1:1,127.0.0.1:2", None, "'HOST:PORT'"),
        ("SSL://127.0.0.1:1,127.0.0.1:2", None, "each of several has a protocol"),
        ("127.0.0.1:1", "SSL://host:1", "there is no SSL listener"),
        ("PLAINTEXT://127.0.0.1:1,SSL://127.0.0.1:2", "host:9", "one port for 2 listeners"),
        ("PLAINTEXT://*:1,SSL://*:2", "SSL://host:9", "is every interface"),
        (None, None, "'HOST:PORT'"),
    ],
)
def test_listeners_that_cannot_be_are_refused_by_name(listen, advertised, message):
    with pytest.raises(ValueError, match=message):
        parse_listeners(listen, advertised)


@pytest.mark.parametrize(
    ("listen", "words"),
    [
        ("PLAINTEXT://127.0.0.1:0", None),
        ("PLAINTEXT://localhost:0", None),
        ("PLAINTEXT://[::1]:0", None),
        ("SSL://192.0.2.1:0", None),
        ("SASL_SSL://192.0.2.1:0", None),
        ("192.0.2.1:0", "may read, write and delete"),
        ("SASL_PLAINTEXT://192.0.2.1:0", "takes passwords and tokens"),
    ],
)
def test_one_warning_names_everything_an_open_listener_exposes(listen, words, caplog):
    (one,) = parse_listeners(listen, None)
    with caplog.at_level(logging.WARNING):
        warn_if_open(one, "192.0.2.1", 9092)
    said = logged(caplog, "dafka.broker.listening")
    assert (len(said), words is None) in ((0, True), (1, False))
    assert words is None or words in said[0]


def test_an_open_listener_with_access_control_lists_has_everybody_anonymous(caplog):
    (one,) = parse_listeners("192.0.2.1:0", None)
    with caplog.at_level(logging.WARNING):
        warn_if_open(one, "192.0.2.1", 9092, has_acls=True)
    (said,) = logged(caplog, "dafka.broker.listening")
    assert "may do what User:ANONYMOUS may" in said and "delete" not in said
