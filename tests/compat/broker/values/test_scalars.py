from __future__ import annotations

import ipaddress
from itertools import pairwise

import pytest

from compat.broker import Address, Count, Enum, Port, Subnet
from dafka.overlay.errors import InvalidValue


def address(text: str) -> Address:
    ip = ipaddress.ip_address(text)
    return Address(ip.packed, ip.version)


class TestAddress:
    @pytest.mark.parametrize(
        "text", ["0.0.0.0", "1.2.3.4", "::", "::1", "2001:db8::1:0:0:1", "1:2:3:4:5:6:7:8"]
    )
    def test_it_is_printed_as_usual(self, text: str):
        assert repr(address(text)) == str(address(text)) == text

    def test_it_has_16_octets(self):
        assert address("1.2.3.4").bytes() == bytes(10) + b"\xff\xff\x01\x02\x03\x04"
        assert type(address("::1").bytes()) is bytes

    def test_its_family(self):
        assert address("1.2.3.4").is_v4()
        assert not address("1.2.3.4").is_v6()
        assert address("::1").is_v6()
        assert Address() == address("::")

    def test_a_mask_clears_what_is_behind_it(self):
        masked = address("2001:db8::ffff")
        assert masked.mask(32)
        assert masked == address("2001:db8::")
        masked = address("10.1.2.3")
        assert masked.mask(96 + 9)
        assert masked == address("10.0.0.0")

    def test_a_mask_that_is_too_long_changes_nothing(self):
        masked = address("10.1.2.3")
        assert not masked.mask(129)
        assert masked == address("10.1.2.3")

    @pytest.mark.parametrize(
        ("octets", "family"), [(bytes(3), 4), (bytes(4), 6), (bytes(17), 6), (bytes(4), 5)]
    )
    def test_another_number_of_octets_is_refused(self, octets: bytes, family: int):
        with pytest.raises(ValueError, match="no IP address"):
            Address(octets, family)

    def test_text_is_refused(self):
        with pytest.raises(TypeError):
            Address("1.2.3.4", 4)


class TestCount:
    def test_it_is_not_a_number(self):
        assert Count(5) != 5
        assert Count(5).value == 5
        with pytest.raises(TypeError):
            Count(5) + 1

    def test_text(self):
        assert str(Count(5)) == "5"
        assert repr(Count(5)) == "Count(5)"

    def test_its_value_can_be_changed(self):
        count = Count(5)
        count.value = 2**64 - 1
        assert count == Count(2**64 - 1)

    @pytest.mark.parametrize("number", [-1, 2**64])
    def test_others_are_refused(self, number: int):
        with pytest.raises(OverflowError, match=str(number)):
            Count(number)

    @pytest.mark.parametrize("wrong", [5.0, "5", None])
    def test_anything_but_an_int_is_refused(self, wrong: object):
        with pytest.raises(TypeError, match="a Count is made of an int"):
            Count(wrong)


class TestEnum:
    def test_it_is_its_name(self):
        enum = Enum("Log::WRITER_ASCII")
        assert enum.name == repr(enum) == "Log::WRITER_ASCII"
        assert enum != "Log::WRITER_ASCII"
        assert enum == Enum(b"Log::WRITER_ASCII")
        enum.name = "other"
        assert enum == Enum("other")

    def test_anything_but_text_is_refused(self):
        with pytest.raises(TypeError, match="an Enum is made of a str"):
            Enum(5)
        with pytest.raises(InvalidValue):
            Enum("\ud800")


class TestPort:
    def test_number_and_protocol(self):
        port = Port(53, Port.UDP)
        assert port.number() == 53
        assert port.get_type() == Port.UDP == Port.Protocol.UDP
        assert [str(Port(9, kind)) for kind in Port.Protocol] == ["9/?", "9/tcp", "9/udp", "9/icmp"]
        assert Port() == Port(0, Port.Unknown)

    @pytest.mark.parametrize(
        ("number", "protocol"), [(-1, Port.TCP), (65536, Port.TCP), (80, 1), ("80", Port.TCP)]
    )
    def test_others_are_refused(self, number: object, protocol: object):
        with pytest.raises(TypeError):
            Port(number, protocol)


class TestSubnet:
    def test_bits_behind_its_length_are_cleared(self):
        assert str(Subnet(address("10.1.2.3"), 8)) == "10.0.0.0/8"
        assert str(Subnet(address("2001:db8::1"), 32)) == "2001:db8::/32"
        assert str(Subnet()) == "::/0"

    def test_network_and_length(self):
        subnet = Subnet(address("10.1.2.3"), 8)
        assert subnet.network() == address("10.0.0.0")
        assert subnet.length() == 8
        assert Subnet(address("::1"), 128).length() == 128

    def test_it_contains_its_addresses(self):
        subnet = Subnet(address("10.0.0.0"), 8)
        assert subnet.contains(address("10.255.0.1"))
        assert not subnet.contains(address("11.0.0.1"))
        assert not subnet.contains(address("::10.0.0.1"))

    @pytest.mark.parametrize(("text", "length"), [("10.0.0.0", 33), ("::", 129), ("::", -1)])
    def test_too_many_bits_are_refused(self, text: str, length: int):
        with pytest.raises(ValueError, match="no subnet"):
            Subnet(address(text), length)


@pytest.mark.parametrize(
    "ascending",
    [
        [address("::1"), address("1.2.3.4"), address("1.2.3.5"), address("2001::")],
        [Count(0), Count(1), Count(2**64 - 1)],
        [Enum("A"), Enum("B"), Enum("a")],
        [Port(1, Port.ICMP), Port(2, Port.TCP), Port(2, Port.UDP)],
        [Subnet(address("10.0.0.0"), 8), Subnet(address("10.0.0.0"), 9), Subnet(address("11.0.0.0"), 8)],
    ],
    ids=lambda ascending: type(ascending[0]).__name__,
)
def test_values_have_an_order_and_a_hash(ascending: list):
    for lower, higher in pairwise(ascending):
        assert lower < higher and lower <= higher and higher > lower and higher >= lower and lower != higher
    assert len({*ascending, *ascending}) == len(ascending)


def test_values_of_different_types_have_no_order_and_are_not_equal():
    assert Count(1) != Enum("1")
    with pytest.raises(TypeError):
        assert Count(1) < Port(1, Port.TCP)
