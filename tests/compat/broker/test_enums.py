"""The bindings' enumerations: names, numbers, and what they equal."""

from __future__ import annotations

import operator
import pickle

import pytest

from compat.broker import EC, SC, APIFlags, Backend, Data, Frontend, PeerFlags, PeerStatus, Port

MEMBERS = {
    APIFlags: {"Blocking": 1, "NonBlocking": 2},
    Backend: {"Memory": 0, "SQLite": 1},
    Frontend: {"Clone": 0, "Master": 1},
    EC: {
        "Unspecified": 1,
        "PeerIncompatible": 2,
        "PeerInvalid": 3,
        "PeerUnavailable": 4,
        "PeerTimeout": 6,
        "MasterExists": 7,
        "NoSuchMaster": 8,
        "NoSuchKey": 9,
        "RequestTimeOut": 10,
        "TypeClash": 11,
        "InvalidData": 12,
        "BackendFailure": 13,
        "StaleData": 14,
    },
    SC: {
        "Unspecified": 0,
        "PeerAdded": 1,
        "PeerRemoved": 2,
        "PeerLost": 3,
        "EndpointDiscovered": 4,
        "EndpointUnreachable": 5,
    },
    PeerStatus: {
        "Initialized": 0,
        "Connecting": 1,
        "Connected": 2,
        "Peered": 3,
        "Disconnected": 4,
        "Reconnecting": 5,
    },
    PeerFlags: {"Invalid": 0, "Local": 1, "Remote": 2, "Outbound": 4, "Inbound": 8},
    Port.Protocol: {"Unknown": 0, "TCP": 1, "UDP": 2, "ICMP": 3},
    Data.Type: {
        "Nil": 0,
        "None": 0,
        "Boolean": 1,
        "Count": 2,
        "Integer": 3,
        "Real": 4,
        "String": 5,
        "Address": 6,
        "Subnet": 7,
        "Port": 8,
        "Timestamp": 9,
        "Timespan": 10,
        "EnumValue": 11,
        "Set": 12,
        "Table": 13,
        "Vector": 14,
    },
}


@pytest.mark.parametrize("kind", MEMBERS, ids=lambda kind: kind.__qualname__)
def test_members_and_their_numbers(kind: type):
    assert {name: int(member) for name, member in kind.__members__.items()} == MEMBERS[kind]


def test_text():
    assert str(SC.PeerAdded) == "SC.PeerAdded"
    assert repr(SC.PeerAdded) == "<SC.PeerAdded: 1>"
    assert SC.PeerAdded.name == "PeerAdded"
    assert SC.PeerAdded.value == 1


def test_members_equal_themselves_alone():
    assert SC.PeerAdded == SC(1)
    assert SC.PeerAdded != SC.PeerLost
    assert SC.PeerAdded != 1
    assert SC.PeerAdded != PeerFlags.Local
    assert len({SC.PeerAdded, SC(1), SC.PeerLost}) == 2


def test_an_error_code_equals_its_number_from_both_sides():
    assert EC.PeerUnavailable == 4
    assert operator.eq(4, EC.PeerUnavailable)
    assert not operator.ne(EC.PeerUnavailable, 4)
    assert not operator.ne(4, EC.PeerUnavailable)
    assert EC.PeerUnavailable != 5
    assert hash(EC.PeerUnavailable) == hash(4)


def test_a_member_is_an_index():
    assert ["a", "b", "c"][PeerFlags.Remote] == "c"


def test_a_number_of_no_member_has_no_name():
    both = PeerFlags(6)
    assert int(both) == 6
    assert repr(both) == "<PeerFlags.???: 6>"
    assert both == PeerFlags(6)
    assert both not in list(PeerFlags)


def test_anything_but_a_number_makes_no_member():
    with pytest.raises(TypeError, match="of a number, not of str"):
        SC("PeerAdded")


def test_members_can_be_pickled():
    assert pickle.loads(pickle.dumps([SC.PeerAdded, Port.TCP])) == [SC.PeerAdded, Port.TCP]
