"""Which hosts are this machine alone, how an address is written, and what the resolver is asked for."""

from __future__ import annotations

import pytest

from dafka.sockets.hosts import host_and_port, host_octets, is_loopback


@pytest.mark.parametrize("host", ["localhost", "LocalHost", "127.0.0.1", "127.9.9.9", "::1"])
def test_these_are(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host", ["", "*", "0.0.0.0", "::", "10.0.0.1", "kafka.example", "localhost.example", "127.1"]
)
def test_these_may_not_be(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("host", "written"),
    [("localhost", "localhost:9092"), ("10.0.0.1", "10.0.0.1:9092"), ("::1", "[::1]:9092")],
)
def test_the_port_is_behind_the_host_and_an_ipv6_address_is_in_brackets(host: str, written: str) -> None:
    assert host_and_port(host, 9092) == written


@pytest.mark.parametrize(
    ("host", "octets"),
    [
        ("", b""),
        ("::1", b"::1"),
        ("a_b.example", b"a_b.example"),
        ("bücher.example", b"xn--bcher-kva.example"),
    ],
)
def test_the_resolver_is_asked_in_octets(host: str, octets: bytes) -> None:
    assert host_octets(host) == octets


@pytest.mark.parametrize("host", ["\ud800", "ä" * 70, "ä..b", "localhost\0.example"])
def test_a_name_that_no_host_can_have_is_an_oserror_as_an_unknown_one_is(host: str) -> None:
    with pytest.raises(OSError, match="is not the name of a host"):
        host_octets(host)
