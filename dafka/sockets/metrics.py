"""The figures of a socket, as ``metrics()`` of a Router, a Publisher and a Dealer returns them.

Names in :data:`COUNTERS` only ever grow; all others are gauges.
"""

from __future__ import annotations

DESCRIPTIONS = {
    "connections": "Connections that are open, with those that are not established yet",
    "peers": "Peers that have completed their handshake",
    "accepted": "Connections accepted (by a Dealer: made)",
    "messages_in": "Messages received",
    "octets_in": "Octets received",
    "messages_out": "Messages sent",
    "octets_out": "Octets sent",
    "dropped": "Messages that a publisher has not sent to a subscriber that did not read",
    "received_octets": "Octets received and not yet handled",
    "queued_octets": "Octets waiting to be sent, with what their buffers take",
    "subscriptions": "Subscriptions of all peers of a publisher",
    "discarded": "Connections ended because of a limit or an error, by cause",
}

COUNTERS = frozenset(
    {"accepted", "messages_in", "octets_in", "messages_out", "octets_out", "dropped", "discarded"}
)
