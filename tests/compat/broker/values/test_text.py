from __future__ import annotations

import ipaddress

import pytest

from compat.broker import Count, Data, Enum, Port, Timespan, Timestamp


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (None, "nil"),
        (True, "T"),
        (False, "F"),
        (-42, "-42"),
        (Count(2**64 - 1), "18446744073709551615"),
        (4.2, "4.200000"),
        (1e18, "1000000000000000000.000000"),
        (float("-inf"), "-inf"),
        ("\ttab", "\ttab"),
        (b"\x82", "\\x82"),
        (Enum("A::B"), "A::B"),
        (Port(80, Port.TCP), "80/tcp"),
        (ipaddress.ip_address("::1"), "::1"),
        (ipaddress.ip_network("10.0.0.0/8"), "10.0.0.0/8"),
        (Timespan(-7), "-7ns"),
        (Timestamp(Timespan(7)), "7ns"),
        ((), "()"),
        ((1, ("a",)), "(1, (a))"),
        ({3, 1, 2}, "{1, 2, 3}"),
        ({"b": 1, "a": ()}, "{a -> (), b -> 1}"),
        ({True: 1, Count(2): 2, "x": Port(1, Port.ICMP)}, "{T -> 1, 2 -> 2, x -> 1/icmp}"),
    ],
)
def test_values_are_printed_as_libbroker_prints_them(thing: object, text: str):
    assert str(Data(thing)) == text
