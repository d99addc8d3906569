"""A node's beacons, and the peers that it connects to and lets go of."""

from __future__ import annotations

from dafka.protocol.beacons import NodeBeacon, TowerBeacon
from dafka.roles.limits import Limits
from dafka.roles.outputs import Connect, Disconnect
from dafka.roles.peers import PeersRole

OWN = NodeBeacon(b"A" * 32, b"127.0.0.1", 5000)
OWN_ECHO = TowerBeacon(OWN.address, b"tcp://127.0.0.1:5000")
PEER = TowerBeacon(b"B" * 32, b"tcp://127.0.0.1:6000")


def peers(**options) -> PeersRole:
    role = PeersRole(*OWN, **options)
    role.start(0.0)
    return role


def test_a_node_beacons_at_the_start_and_at_every_interval():
    role = PeersRole(*OWN, interval=1.0)
    assert role.start(0.0) == [OWN]
    assert role.tick(0.9) == []
    assert role.tick(1.0) == [OWN]
    assert role.tick(1.5) == []
    assert role.tick(2.0) == [OWN]


def test_a_new_peer_is_connected_and_answered_at_once():
    role = peers()
    assert role.beacon(0.5, PEER) == [Connect(PEER.endpoint), OWN]
    assert role.beacon(0.6, PEER) == []
    assert role.peers == {PEER.address: PEER.endpoint}


def test_many_new_peers_at_once_are_answered_by_one_beacon_soon():
    role = peers()
    assert role.beacon(0.5, PEER)[-1] == OWN
    for number in range(100):
        endpoint = b"tcp://127.0.0.1:%d" % (7000 + number)
        assert role.beacon(0.51, TowerBeacon(b"C%d" % number, endpoint)) == [Connect(endpoint)]
    assert role.tick(0.55) == []
    assert role.tick(0.6) == [OWN]
    assert role.tick(0.7) == []


def test_a_flood_of_new_peers_is_connected_to_a_few_at_a_time():
    role = peers(limits=Limits(newcomers=10))
    crowd = [TowerBeacon(b"C%d" % number, b"tcp://127.0.0.1:%d" % (7000 + number)) for number in range(25)]
    for round_, connected in enumerate((10, 20, 25)):
        for beacon in crowd:
            role.beacon(0.5 + round_, beacon)
        assert len(role.peers) == connected
    assert role.refused == 15 + 5


def numbered(number: int) -> TowerBeacon:
    return TowerBeacon(b"%032d" % number, b"tcp://127.0.0.1:%d" % (7000 + number))


def test_few_endpoints_are_tried_at_a_time_at_which_nobody_answers():
    role = peers(limits=Limits(unreached=3, unreached_least=2.0))
    for number in range(5):
        role.beacon(0.5, numbered(number))
    assert len(role.peers) == 3
    assert role.refused == 2
    role.reached(numbered(0).endpoint)
    role.reached(numbered(4).endpoint)  # which is not tried
    assert Connect(numbered(4).endpoint) in role.beacon(0.6, numbered(4))
    assert role.beacon(0.6, numbered(3)) == []


def test_those_that_were_tried_for_a_while_make_room_and_those_that_were_reached_stay():
    role = peers(limits=Limits(unreached=3, unreached_least=2.0))
    for number in range(4):
        role.beacon(0.5, numbered(number))
        if number == 0:
            role.reached(numbered(0).endpoint)
    assert role.beacon(2.4, numbered(4)) == []
    assert role.beacon(2.5, numbered(4))[:2] == [
        Disconnect(numbered(1).endpoint),
        Connect(numbered(4).endpoint),
    ]
    assert role.beacon(2.5, numbered(5))[0] == Disconnect(numbered(2).endpoint)
    assert list(role.peers) == [numbered(number).address for number in (0, 3, 4, 5)]


def test_a_peer_that_was_reached_comes_back_among_very_many_others():
    role = peers(timeout=4.0, limits=Limits(newcomers=3, unreached=2, unreached_least=5.0, peers=100))
    role.beacon(0.5, PEER)
    role.reached(PEER.endpoint)
    for second in range(1, 7):
        for number in range(10):
            role.beacon(second, numbered(number))
    assert Disconnect(PEER.endpoint) in role.tick(6.0)
    assert Connect(numbered(9).endpoint) not in role.beacon(6.0, numbered(9))
    assert Connect(PEER.endpoint) in role.beacon(6.0, PEER)
    moved = PEER._replace(endpoint=b"tcp://127.0.0.1:6001")
    assert role.beacon(6.0, moved) == []


def test_so_many_as_were_reached_come_back_at_once_and_no_more():
    role = peers(timeout=1.0, limits=Limits(newcomers=0, peers=3))
    for number in range(5):
        role._join(0.0, numbered(number).endpoint)
        role.reached(numbered(number).endpoint)
        role._leave(numbered(number).endpoint)
    back = [number for number in range(5) if role.beacon(1.0, numbered(number))]
    assert back == [2, 3, 4]


def test_a_transport_that_does_not_tell_whom_it_reaches_lets_none_come_back_first():
    role = peers(timeout=1.0, tells_reached=False, limits=Limits(newcomers=3, peers=100, unreached=2))
    for number in range(10):
        role.beacon(0.1 * number, numbered(number))
    assert len(role.peers) == 10
    role.beacon(3.0, OWN_ECHO)
    role.tick(3.0)
    role.beacon(4.5, OWN_ECHO)
    role.tick(4.5)
    assert role.peers == {}
    for number in range(10):
        role.beacon(5.0, numbered(number))
    assert len(role.peers) == 3


def test_an_endpoint_under_several_addresses_makes_room_as_one():
    role = peers(limits=Limits(unreached=1, unreached_least=0.0))
    role.beacon(0.5, PEER)
    role.beacon(0.5, PEER._replace(address=b"D" * 32))
    assert role.beacon(0.6, numbered(1))[:2] == [Disconnect(PEER.endpoint), Connect(numbered(1).endpoint)]
    assert list(role.peers) == [numbered(1).address]


def test_a_peer_that_moves_again_and_again_is_followed_as_far_as_there_is_room():
    role = peers(limits=Limits(newcomers=3))
    moves = [PEER._replace(endpoint=b"tcp://127.0.0.1:%d" % port) for port in range(7000, 7010)]
    outputs = [output for move in moves for output in role.beacon(0.5, move)]
    assert len([output for output in outputs if isinstance(output, Connect)]) == 3
    assert role.refused == 7
    assert role.endpoint_of(PEER.address) == moves[2].endpoint
    assert role.beacon(1.0, moves[9]) == [Disconnect(moves[2].endpoint), Connect(moves[9].endpoint)]


def test_a_node_does_not_connect_to_itself():
    assert peers().beacon(0.5, OWN_ECHO) == []


def test_a_peer_whose_endpoint_changes_is_connected_anew():
    role = peers()
    role.beacon(0.5, PEER)
    assert role.beacon(1.5, PEER._replace(endpoint=b"tcp://127.0.0.1:6001")) == [
        Disconnect(PEER.endpoint),
        Connect(b"tcp://127.0.0.1:6001"),
    ]


def test_a_silent_peer_is_let_go_and_welcome_again():
    role = peers(interval=1.0, timeout=4.0)
    role.beacon(0.5, PEER)
    for second in range(1, 5):
        role.beacon(second, OWN_ECHO)
        assert Disconnect(PEER.endpoint) not in role.tick(second)
    role.beacon(5.0, OWN_ECHO)
    assert role.tick(5.0) == [Disconnect(PEER.endpoint), OWN]
    assert role.peers == {}
    assert Connect(PEER.endpoint) in role.beacon(6.0, PEER)


def test_peers_are_kept_while_the_tower_is_silent_and_get_time_when_it_returns():
    role = peers(interval=1.0, timeout=4.0)
    role.beacon(0.5, PEER)
    role.beacon(1.0, OWN_ECHO)
    assert role.tick(60.0) == [OWN]
    role.beacon(61.0, OWN_ECHO)
    assert Disconnect(PEER.endpoint) not in role.tick(61.0)
    for second in range(62, 66):
        role.beacon(second, OWN_ECHO)
    assert Disconnect(PEER.endpoint) not in role.tick(65.0)
    role.beacon(66.0, OWN_ECHO)
    assert Disconnect(PEER.endpoint) in role.tick(66.0)


def test_a_silent_peer_is_let_go_also_where_beacons_are_rare():
    role = peers(interval=3.0, timeout=4.0)
    role.beacon(0.5, PEER)
    for second in (3, 6):
        role.beacon(second, OWN_ECHO)
    assert Disconnect(PEER.endpoint) in role.tick(6.0)


def test_a_successor_on_the_same_endpoint_is_not_cut_off_with_its_predecessor():
    role = peers(interval=1.0, timeout=4.0)
    role.beacon(0.5, PEER)
    successor = PEER._replace(address=b"C" * 32)
    assert Connect(PEER.endpoint) not in role.beacon(1.0, successor)
    for second in range(2, 8):
        role.beacon(second, successor)
        assert Disconnect(PEER.endpoint) not in role.tick(second)
    assert list(role.peers) == [successor.address]


def test_a_lost_peer_is_expected_once_a_tower_has_told_of_it_again():
    role = peers()
    role.beacon(0.5, PEER)
    assert role.expected(0.7, PEER.endpoint, began=0.6, lost=0.4)
    assert not role.expected(0.7, PEER.endpoint, began=0.6, lost=0.65)
    role.beacon(1.4, OWN_ECHO)
    assert not role.expected(1.5, PEER.endpoint, began=0.6, lost=0.65)
    role.beacon(1.5, PEER)
    assert role.expected(1.5, PEER.endpoint, began=0.6, lost=0.65)


def test_a_successor_on_the_endpoint_of_a_lost_peer_is_expected_even_if_it_is_heard_of_before_the_loss():
    role = peers()
    role.beacon(0.5, PEER)
    role.beacon(0.9, TowerBeacon(b"C" * 32, PEER.endpoint))
    assert role.expected(1.0, PEER.endpoint, began=0.6, lost=1.0)
    assert not role.expected(1.1, PEER.endpoint, began=1.0, lost=1.1)
    role.beacon(1.2, PEER)  # a last word that was on its way
    assert not role.expected(1.3, PEER.endpoint, began=1.0, lost=1.25)


def test_a_lost_peer_that_no_tower_tells_of_is_expected_while_no_tower_is_heard():
    role = peers(interval=1.0, timeout=4.0)
    role.beacon(0.5, PEER)
    assert not role.expected(2.5, PEER.endpoint, began=0.5, lost=0.6)
    assert role.expected(2.6, PEER.endpoint, began=0.5, lost=0.6)
    role.beacon(2.7, OWN_ECHO)
    assert not role.expected(2.7, PEER.endpoint, began=0.5, lost=0.6)


def test_a_peer_that_was_let_go_is_not_expected():
    role = peers(timeout=4.0)
    role.beacon(0.5, PEER)
    for second in range(1, 6):
        role.beacon(float(second), OWN_ECHO)
    assert Disconnect(PEER.endpoint) in role.tick(5.0)
    assert not role.expected(5.0, PEER.endpoint, began=0.1, lost=0.4)


def test_the_table_of_peers_is_bounded():
    role = peers(limits=Limits(peers=2))
    for number in range(5):
        role.beacon(0.5, TowerBeacon(b"C%d" % number, b"tcp://127.0.0.1:%d" % (7000 + number)))
    assert len(role.peers) == 2
