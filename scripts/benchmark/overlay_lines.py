"""The lines about the overlay."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import overlay_bridges
import overlay_codec
import overlay_links
import overlay_peers
import overlay_routing
from line import Line, measurement, microseconds, pick, rate
from processes import Figures

_small = measurement(overlay_codec.small)
_connection = measurement(overlay_codec.connection)
_peers = measurement(overlay_peers.rates)
_link = measurement(overlay_links.subscribe, overlay_links.publish)
_plain = measurement(overlay_links.receive_plain, overlay_links.send_plain)
_chain = measurement(partial(overlay_links.subscribe, hops=1), overlay_links.publish)
_plain_chain = measurement(partial(overlay_links.receive_plain, hops=1), overlay_links.send_plain)
_fan = measurement(overlay_links.subscribe_many, overlay_links.publish_to_many)
_plain_fan = measurement(
    partial(overlay_links.receive_plain, count=overlay_links.FANNED, receivers=overlay_links.FAN),
    partial(overlay_links.send_plain, count=overlay_links.FANNED, receivers=overlay_links.FAN),
)
_latency = measurement(overlay_links.round_trips, overlay_links.echo)
_plain_latency = measurement(overlay_links.round_trips_plain, overlay_links.echo_plain)
_stores = measurement(overlay_links.put_with_clones, overlay_links.clone_three_times)
_disk_stores = measurement(overlay_links.put_to_disk_with_clones, overlay_links.clone_three_times)
_bridge = measurement(overlay_bridges.write_events, overlay_bridges.publish_events)
_sites = measurement(overlay_bridges.take_records, overlay_bridges.share_records)
_SOCKETS = "plain sockets, length-prefixed frames"
_SOCKET_CHAIN = "the same, passed on by a third process"
_BESIDE = "json, in the form of Broker's WebSocket API"


def _of_a_processor(measure: Callable[[int], Figures]) -> Callable[[int], float]:
    """Events in a second of processor time, of all processes together."""
    return lambda turn: overlay_links.MESSAGES / sum(measure(turn)[1:])


OVERLAY_LINES = [
    Line("overlay: small events encoded", rate, pick(_small), pick(_small, 1), _BESIDE, least_ratio=1),
    Line("overlay: small events decoded", rate, pick(_small, 2), pick(_small, 3), _BESIDE, least_ratio=0.8),
    Line(
        "overlay: conn events encoded", rate, pick(_connection), pick(_connection, 1), _BESIDE, least_ratio=1
    ),
    Line(
        "overlay: conn events decoded",
        rate,
        pick(_connection, 2),
        pick(_connection, 3),
        _BESIDE,
        least_ratio=0.5,
    ),
    Line("overlay: published to a peer, without sockets", rate, pick(_peers), pick(_peers, 1), "framed only"),
    Line("overlay: received of a peer, without sockets", rate, pick(_peers, 2), pick(_peers, 3), "cut only"),
    Line("overlay: events over a link", rate, pick(_link), pick(_plain), _SOCKETS, least_ratio=0.5),
    Line(
        "overlay: events over a chain of three",
        rate,
        pick(_chain),
        pick(_plain_chain),
        _SOCKET_CHAIN,
        least_ratio=0.5,
    ),
    Line("overlay: the same beside one link", rate, pick(_chain), pick(_plain), _SOCKETS),
    Line(
        "overlay: events over a link, of a processor",
        rate,
        _of_a_processor(_link),
        _of_a_processor(_plain),
        _SOCKETS,
        least_ratio=0.5,
    ),
    Line(
        "overlay: over a chain of three, of a processor",
        rate,
        _of_a_processor(_chain),
        _of_a_processor(_plain_chain),
        _SOCKET_CHAIN,
        least_ratio=0.5,
    ),
    Line("overlay: events to ten subscribers", rate, pick(_fan), pick(_plain_fan), _SOCKETS, least_ratio=0.5),
    Line("overlay: there and back, p50", microseconds, pick(_latency), pick(_plain_latency), _SOCKETS),
    Line("overlay: there and back, p99", microseconds, pick(_latency, 1), pick(_plain_latency, 1), _SOCKETS),
    Line("overlay: puts with three clones", rate, pick(_stores), None, ""),
    Line(
        "overlay: puts to disk with three clones",
        rate,
        pick(_disk_stores),
        pick(_stores),
        "the same in memory",
    ),
    Line("overlay: events into a topic, by a bridge", rate, pick(_bridge), pick(_link), "over a link"),
    Line("overlay: records to another site, by bridges", rate, pick(_sites), None, ""),
    *[
        Line(f"overlay: words about subscriptions, {count} peers", rate, pick(measurement(program)), None, "")
        for count, program in (
            (10, overlay_routing.TEN),
            (50, overlay_routing.FIFTY),
            (200, overlay_routing.TWO_HUNDRED),
        )
    ],
]
