"""No table or buffer of a role grows past its limit, and what roles count agrees with what there is."""

from __future__ import annotations

from typing import Any

from dafka.roles.limits import Limits


def check_tables(node: Any, limits: Limits) -> None:
    """Look into the role of a node. Raises AssertionError."""
    role = node.role
    assert len(node.peers.peers) <= limits.peers, node
    if hasattr(role, "_stores"):
        assert len(role._stores) <= limits.stores, node
        retained = [content for chunk in role._chunks for content in chunk]
        assert len(retained) == role.next_sequence - role.first_retained, node
        assert sum(map(len, retained)) == role.retained_bytes, node
        assert not role.min_stores or role.first_retained == role.first_unacknowledged, node
        return
    assert len(role.positions) <= limits.partitions, node
    catchup = role._catchup
    followers = _followers(role)
    reserved = sum(follower.reserved_records for follower in followers)
    room = catchup.room
    assert reserved == room.reserved_records >= 0, (node, reserved, room.reserved_records)
    assert sum(follower.reserved_bytes for follower in followers) == room.reserved_bytes >= 0, node
    asked = sum(follower.state.value == "asked" for follower in followers)
    assert asked == catchup._under_way <= limits.fetches, node
    for follower in followers:
        kept = sum(map(len, follower.ahead))
        assert kept == follower.ahead_next - follower.ahead_first <= limits.ahead_records, (node, kept)
        size = sum(len(content) for contents in follower.ahead for content in contents)
        assert size == follower.ahead_bytes <= limits.ahead_bytes, (node, size)
    ahead = sum(follower.ahead_next - follower.ahead_first for follower in followers)
    assert ahead == catchup._ahead.records <= limits.all_ahead_records, (node, ahead)
    assert catchup._queue.length <= len(followers), node
    assert len(catchup._alarms) <= 50 + 8 * len(followers), (node, len(catchup._alarms))


def _followers(role: Any) -> list[Any]:
    if hasattr(role, "_partitions"):
        return list(role._partitions.values())
    return [follower for followers in role._topics.values() for follower in followers.values()]
