"""Commands and the metadata in them."""

from __future__ import annotations

import pytest
from zmtp.vectors import READY_DEALER, READY_ROUTER, command

from dafka.zmtp import limits
from dafka.zmtp.commands import (
    decode_command,
    decode_properties,
    decode_reason,
    encode_command,
    encode_properties,
)
from dafka.zmtp.errors import ProtocolError


def test_the_worked_example_of_the_specification():
    ready = encode_command(b"READY", encode_properties({b"Socket-Type": b"DEALER", b"Identity": b""}))
    assert ready == READY_DEALER
    assert encode_command(b"READY", encode_properties({b"Socket-Type": b"ROUTER"})) == READY_ROUTER
    name, data = decode_command(READY_DEALER[2:])
    assert name == b"READY"
    assert decode_properties(data) == {b"socket-type": b"DEALER", b"identity": b""}


def test_a_long_command_has_a_long_frame():
    assert encode_command(b"READY", bytes(250)) == command(b"\x05READY" + bytes(250))
    assert encode_command(b"READY", bytes(249))[:2] == b"\x04\xff"


def test_names_of_properties_have_no_case():
    data = encode_properties({b"SOCKET-type": b"PUSH", b"X-mine": b""})
    assert decode_properties(data) == {b"socket-type": b"PUSH", b"x-mine": b""}


@pytest.mark.parametrize("body", [b"", b"\x00", b"\x05REA", b"\x00READY", b"\xff"])
def test_a_command_without_a_name_is_refused(body: bytes):
    with pytest.raises(ProtocolError, match="command"):
        decode_command(body)


def test_metadata_cut_short_anywhere_is_refused():
    data = encode_properties({b"Socket-Type": b"DEALER"})
    for end in range(1, len(data)):
        with pytest.raises(ProtocolError, match="properties"):
            decode_properties(data[:end])
    with pytest.raises(ProtocolError, match="properties"):
        decode_properties(b"\x00" + bytes(4))  # a name has at least one octet
    with pytest.raises(ProtocolError, match="properties"):
        decode_properties(b"\x01a\xff\xff\xff\xff")


def test_many_properties_are_refused():
    data = encode_properties({b"%d" % number: b"" for number in range(limits.HANDSHAKE_PROPERTIES + 1)})
    with pytest.raises(ProtocolError, match="handshake-size"):
        decode_properties(data)


def test_a_reason_is_printable():
    assert decode_reason(b"\x05wrong") == "wrong"
    assert decode_reason(b"\x01\xff") == "\\xff"
    assert decode_reason(b"") == ""
    assert decode_reason(b"\xffcut") == "cut"
