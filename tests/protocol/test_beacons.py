"""Beacons of nodes and of the tower."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol.material import PRODUCER, addresses

from dafka.protocol.beacons import NodeBeacon, TowerBeacon, decode_beacon, encode_beacon
from dafka.protocol.errors import MalformedMessage

ports = st.integers(1, 65535)
hosts = st.sampled_from([b"", b"192.0.2.2", b"node-1.example", b"[2001:db8::1]"])


def test_a_nodes_beacon_is_four_frames() -> None:
    assert encode_beacon(NodeBeacon(PRODUCER, b"", 5000)) == [b"B", PRODUCER, b"", b"5000"]


def test_a_towers_beacon_is_three_frames() -> None:
    # As captured from a C tower (wire/live-session.txt).
    frames = [b"B", b"B0D5DFDB476543A6A8B2AB28BD646162", b"tcp://192.0.2.2:49152"]
    beacon = TowerBeacon(frames[1], frames[2])
    assert encode_beacon(beacon) == frames
    assert decode_beacon(frames) == beacon


@given(st.builds(NodeBeacon, addresses, hosts, ports))
def test_a_nodes_beacon_comes_back(beacon: NodeBeacon) -> None:
    assert decode_beacon(encode_beacon(beacon)) == beacon


@given(
    st.builds(
        lambda address, host, port: TowerBeacon(address, b"tcp://%s:%d" % (host or b"*", port)),
        addresses,
        hosts,
        ports,
    )
)
def test_a_towers_beacon_comes_back(beacon: TowerBeacon) -> None:
    assert decode_beacon(encode_beacon(beacon)) == beacon


@pytest.mark.parametrize(
    ("frames", "cause"),
    [
        ([], "beacon"),
        ([b"W"], "beacon"),
        ([b"B", PRODUCER], "beacon"),
        ([b"X", PRODUCER, b"", b"5000"], "beacon"),
        ([b"B", PRODUCER, b"", b"5000", b""], "beacon"),
        ([b"B", b"", b"", b"5000"], "beacon-address"),
        ([b"B", b"A" * 256, b"tcp://192.0.2.2:1"], "beacon-address"),
        ([b"B", PRODUCER, b"", b""], "beacon-port"),
        ([b"B", PRODUCER, b"", b"0"], "beacon-port"),
        ([b"B", PRODUCER, b"", b"65536"], "beacon-port"),
        ([b"B", PRODUCER, b"", b"000001"], "beacon-port"),
        ([b"B", PRODUCER, b"", b"-1"], "beacon-port"),
        ([b"B", PRODUCER, b"", b"\xd9\xa3"], "beacon-port"),
        ([b"B", PRODUCER, b"h" * 256, b"1"], "beacon-host"),
        ([b"B", PRODUCER, b"two words", b"1"], "beacon-host"),
        ([b"B", PRODUCER, b"line\n", b"1"], "beacon-host"),
        ([b"B", PRODUCER, b"192.0.2.2:1"], "beacon-endpoint"),
        ([b"B", PRODUCER, b"ipc:///tmp/socket:1"], "beacon-endpoint"),
        ([b"B", PRODUCER, b"tcp://192.0.2.2"], "beacon-endpoint"),
        ([b"B", PRODUCER, b"tcp://:1"], "beacon-endpoint"),
        ([b"B", PRODUCER, b"tcp://192.0.2.2:0"], "beacon-endpoint"),
        ([b"B", PRODUCER, b"tcp://192.0.2.2:65536"], "beacon-endpoint"),
        ([b"B", PRODUCER, b"tcp://192.0.2.2:1\n"], "beacon-endpoint"),
        ([b"B", PRODUCER, b"tcp://" + b"h" * 256 + b":1"], "beacon-endpoint"),
    ],
)
def test_an_invalid_beacon_is_named_by_its_cause(frames: list[bytes], cause: str) -> None:
    with pytest.raises(MalformedMessage) as caught:
        decode_beacon(frames)
    assert caught.value.cause == cause


@given(
    st.lists(st.binary(max_size=40), max_size=5)
    | st.lists(st.binary(max_size=9), max_size=3).map(lambda more: [b"B", *more])
)
def test_no_frames_raise_anything_but_malformed_message(frames: list[bytes]) -> None:
    try:
        decode_beacon(frames)
    except MalformedMessage as error:
        assert error.cause.startswith("beacon")
