"""Broker's developer guide, "mixin::connector" and "mixin::notifier"."""

from __future__ import annotations

from dafka.overlay.connector import Connector, Open
from dafka.overlay.peering.outputs import Close, PeerDown, PeerUp, Refused
from dafka.overlay.peering.statuses import EndpointInfo, Error, NetworkInfo, Status
from dafka.overlay.routing.outputs import Discovered, Unreachable
from dafka.overlay.wire.codes import ErrorCode, StatusCode
from dafka.overlay.wire.handshake import Announcement

THERE, OTHER = NetworkInfo("10.0.0.1", 9999, 5), NetworkInfo("10.0.0.2", 9999, 5)
ONCE = NetworkInfo("10.0.0.3", 9999, 0)
PEER = b"p" * 16


def up(connection: int, peer: bytes = PEER) -> PeerUp:
    return PeerUp(connection, peer, 2, Announcement(), Announcement())


def down(connection: int, removed: bool = False, said_goodbye: bool = False) -> PeerDown:
    return PeerDown(connection, PEER, removed, said_goodbye)


def refused(connection: int, code: int = 28, redundant: bool = False) -> Refused:
    return Refused(connection, PEER, code, "why", redundant)


def connected(*addresses: NetworkInfo) -> Connector:
    connector = Connector()
    for number, address in enumerate(addresses):
        assert connector.peer(address) == [Open(address)]
        connector.opened(address, number)
    return connector


def codes(outputs) -> list:
    return [output.code for output in outputs]


def test_an_address_that_cannot_be_reached_is_tried_again_after_its_interval():
    connector = Connector()
    connector.peer(THERE)
    (error,) = connector.failed(1.0, THERE)
    assert error == Error(ErrorCode.PEER_UNAVAILABLE, EndpointInfo(None, THERE), error.message)
    assert connector.tick(5.9) == []
    assert connector.tick(6.0) == [Open(THERE)]
    assert connector.tick(60.0) == []


def test_an_interval_of_0_means_one_attempt():
    connector = Connector()
    connector.peer(ONCE)
    connector.failed(1.0, ONCE)
    assert connector.tick(100.0) == [] and connector.addresses == []


def test_a_refused_handshake_is_tried_again_after_the_interval():
    connector = connected(THERE)
    (error,) = connector.hear(1.0, refused(0))
    assert error == Error(ErrorCode.SHUTTING_DOWN, EndpointInfo(PEER, THERE), "why")
    assert connector.tick(5.9) == [] and connector.tick(6.0) == [Open(THERE)]


def test_an_unknown_code_is_told_as_unspecified():
    assert codes(connected(THERE).hear(1.0, refused(0, code=200))) == [ErrorCode.UNSPECIFIED]


def test_a_lost_peering_is_tried_at_once_and_then_after_the_interval():
    connector = connected(THERE)
    (added,) = connector.hear(1.0, up(0))
    assert added == Status(StatusCode.PEER_ADDED, EndpointInfo(PEER, THERE), added.message)
    (lost,) = connector.hear(2.0, down(0))
    assert lost == Status(StatusCode.PEER_LOST, EndpointInfo(PEER, THERE), lost.message)
    assert connector.tick(2.0) == [Open(THERE)]
    connector.failed(2.0, THERE)
    assert connector.tick(6.9) == [] and connector.tick(7.0) == [Open(THERE)]


def test_a_peer_that_said_goodbye_is_tried_after_the_interval():
    connector = connected(THERE)
    connector.hear(1.0, up(0))
    assert codes(connector.hear(2.0, down(0, said_goodbye=True))) == [StatusCode.PEER_LOST]
    assert connector.tick(6.9) == [] and connector.tick(7.0) == [Open(THERE)]


def test_a_peer_that_was_left_is_not_tried_again():
    connector = connected(THERE)
    connector.hear(1.0, up(0))
    assert connector.unpeer(THERE.address, THERE.port) == (PEER, [])
    assert codes(connector.hear(2.0, down(0, removed=True))) == [StatusCode.PEER_REMOVED]
    assert connector.tick(100.0) == [] and connector.addresses == []


def test_a_peer_that_was_left_by_its_id_is_not_tried_at_any_of_its_addresses():
    connector = connected(THERE, OTHER)
    connector.hear(1.0, up(0))
    connector.hear(1.0, refused(1, code=39, redundant=True))
    connector.hear(2.0, down(0, removed=True))
    assert connector.tick(100.0) == []


def test_to_leave_an_unknown_address_is_an_error():
    peer, outputs = Connector().unpeer("10.9.9.9", 1)
    assert peer is None and codes(outputs) == [ErrorCode.PEER_INVALID]


def test_a_redundant_address_rests_until_the_peer_is_lost():
    connector = connected(THERE, OTHER)
    connector.hear(1.0, up(0))
    assert connector.hear(1.0, refused(1, code=39, redundant=True)) == []
    assert connector.tick(100.0) == []
    connector.hear(101.0, down(0))
    assert connector.tick(101.0) == [Open(THERE), Open(OTHER)]


def test_a_redundant_address_is_tried_again_if_the_other_connection_comes_to_nothing():
    connector = connected(THERE, OTHER)
    connector.hear(1.0, refused(1, code=39, redundant=True))
    assert connector.tick(6.0) == [Open(OTHER)]


def test_an_address_that_is_named_twice_is_connected_to_once():
    connector = connected(THERE)
    assert connector.peer(THERE._replace(retry=1)) == []
    connector.failed(0.0, connector.addresses[0])
    assert connector.tick(1.0) == [Open(THERE._replace(retry=1))]


def test_a_peer_that_has_connected_to_us_is_told_with_its_address_and_not_tried():
    connector = Connector()
    connector.accepted(7, "10.0.0.9", 50_000)
    (added,) = connector.hear(1.0, up(7))
    assert added.context == EndpointInfo(PEER, NetworkInfo("10.0.0.9", 50_000, 0))
    connector.hear(2.0, down(7))
    assert connector.tick(100.0) == []
    connector.accepted(8, "10.0.0.9", 50_001)
    assert connector.hear(3.0, refused(8)) == []


def test_reachable_endpoints_are_told_without_an_address():
    connector = Connector()
    assert connector.hear(0.0, Close(1)) == []
    assert codes(connector.hear(0.0, Discovered(PEER))) == [StatusCode.ENDPOINT_DISCOVERED]
    (status,) = connector.hear(0.0, Unreachable(PEER))
    assert status.context == EndpointInfo(PEER)


def test_a_peer_is_told_to_be_unreachable_when_its_connection_has_ended():
    connector = connected(THERE)
    connector.hear(1.0, up(0))
    assert connector.hear(1.0, Unreachable(PEER)) == []
    told = connector.hear(2.0, down(0, removed=True))
    assert codes(told) == [StatusCode.PEER_REMOVED, StatusCode.ENDPOINT_UNREACHABLE]
    assert codes(connector.hear(3.0, Unreachable(PEER))) == [StatusCode.ENDPOINT_UNREACHABLE]


def test_a_peer_that_is_reachable_again_before_its_connection_has_ended_is_not_told_of():
    connector = connected(THERE)
    connector.hear(1.0, up(0))
    assert connector.hear(1.0, Unreachable(PEER)) == connector.hear(1.0, Discovered(PEER)) == []
    assert codes(connector.hear(2.0, down(0))) == [StatusCode.PEER_LOST]
