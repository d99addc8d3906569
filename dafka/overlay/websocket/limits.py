"""The bounds of WebSocket connections. Sizes are octets.

A client that exceeds one is told so in its close frame where it has got that far, and disconnected. Modules
read these as ``limits.NAME`` when they need them, so that a test can lower one.
"""

from __future__ import annotations

MESSAGE_OCTETS = 1024 * 1024
"""Of a message from a client, with all its fragments (close code 1009)."""

FROM_SERVER_OCTETS = 256 * 1024 * 1024
"""Of a message to a client: a value of 16 megabytes between nodes is more in JSON."""

DIRECT_OCTETS = 8 * 1024
"""Larger messages are read beside the hub."""

DIRECT_PIECES = 2000
"""Values with more pieces of text than these are written beside the hub."""

ESCAPED_AT_ONCE = 64 * 1024
"""Characters of one string that are escaped without a pause."""

REQUEST_OCTETS = 16 * 1024
"""Of the HTTP request that opens a connection."""

FED_OCTETS = 1024
"""Given to the protocol at once: the smallest frames have two octets, a client's six."""

SPAN_CHARACTERS = 60
"""Of a timespan's text."""

READ_OCTETS = 64 * 1024
"""Read at once from a connection by who closes it."""

CONNECTIONS = 4096
"""Open connections of one server. A further one is closed at once (cause ``connections``)."""

HANDSHAKES = 512
"""Connections that have not sent their first message yet. A further one waits for one of them, and ends the
oldest (cause ``handshakes``) if that has had HANDSHAKE_LEAST_SECONDS."""

HANDSHAKE_LEAST_SECONDS = 2.0

HANDSHAKE_SECONDS = 10.0
"""From the beginning of a connection to its first message (cause ``handshake-slow``)."""

UNREAD_SECONDS = 30.0
"""A client that reads nothing of what is queued for it for this long loses its connection (``unread``)."""

TEND_SECONDS = 0.5
"""The interval at which connections are looked at for what takes too long."""

LINGER_SECONDS = 2.0
"""How long a connection that is to be closed still sends what was queued, and waits for the other end."""

TURN_SECONDS = 0.005
"""How long one client is served in one turn of the hub."""

BLOCKED_SECONDS = 0.001
"""The first pause before a client's message is tried again while one of its receivers is full; it doubles.
The client is not read meanwhile."""

BLOCKED_MOST_SECONDS = 0.05

CAPACITY = 16_384
"""Messages that wait for one client, if the user says nothing else."""

AT_ONCE = 64
"""Messages for one client that are written before others have their turn."""

AT_ONCE_OCTETS = 256 * 1024
"""Their octets. One message may exceed it."""

FRAMES = 4096
"""Frames that are kept for further clients."""

FRAMES_OCTETS = 4 * 1024 * 1024
"""Octets of those."""

RECONNECT_SECONDS = 0.1
"""A client's first pause before it connects again; it doubles, and each is shortened by a random part."""

RECONNECT_MOST_SECONDS = 5.0

FAILURES = 100
"""Errors of its server that a client keeps."""

CLOSE_SECONDS = 10.0
"""For which a client that is closed sends what was published, if its user says nothing else."""

REFUSED_SECONDS = 0.1
"""A client without a valid token is answered after this time."""
