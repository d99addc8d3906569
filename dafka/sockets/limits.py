"""The bounds of ZeroMQ's sockets, and of every socket that listens. Sizes are octets.

A peer that exceeds one is disconnected, and counted in ``discarded`` by the cause named here; or it is not
read for a while; or the sender waits. The bounds of a single connection are in :mod:`dafka.zmtp.limits`.
Modules read these as ``limits.NAME`` when they need them, so that a test can lower one.
"""

from __future__ import annotations

# -- connections --------------------------------------------------------------------------------

BACKLOG = 1024
"""Connections that the kernel keeps until they are accepted."""
FULL_SECONDS = 0.1
"""Between attempts to accept while the process has no free descriptor."""
CONNECTIONS = 10_000
"""Open connections of one socket. A further one is closed at once (cause ``connections``)."""
HANDSHAKES = 2000
"""Connections of one socket that have not completed their handshake. A further one waits for one of them, and
ends the oldest (cause ``handshakes``) if that has had HANDSHAKE_LEAST_SECONDS."""
HANDSHAKE_LEAST_SECONDS = 3.0
HANDSHAKE_SECONDS = 10.0
"""A handshake must be complete within this time (cause ``handshake-slow``)."""
KEEPALIVE_SECONDS = 30
"""Silence after which a peer's system is asked whether it still has the connection ..."""
KEEPALIVE_INTERVAL = 10
"""... once in as many seconds ..."""
KEEPALIVE_PROBES = 3
"""... and as many times, before the connection ends."""
TEND_SECONDS = 0.5
"""The interval at which connections are looked at for what takes too long."""
TURN_SECONDS = 0.005
"""How long peers are read and sent to in one turn of the hub; the others follow in the next."""
REASON_LINES = 10
"""Log lines about closed connections for each cause within REASON_SECONDS; the others are only counted."""
REASON_SECONDS = 60.0
"""The interval after which the number of further closed connections is logged."""

# -- receiving ----------------------------------------------------------------------------------

READ_OCTETS = 64 * 1024
"""Read at once from a peer of which much comes ..."""
READ_FIRST_OCTETS = 16 * 1024
"""... and from one of which little comes: the system makes room for all that is asked for."""
READ_LEAST_OCTETS = 4 * 1024
"""The same where many peers are read."""
LITTLE_OCTETS = 2 * 1024
"""A peer of which less has come has sent no more, as a rule, and is waited for at once."""
RECEIVED_OCTETS = 256 * 1024 * 1024
"""Received and not yet handled, of all peers of a socket. At the limit, peers with a large message in
progress are not read, except for the one that began first; it may exceed the limit."""
RECEIVED_FAIR_OCTETS = RECEIVED_OCTETS // CONNECTIONS
"""A peer of which less is held is always read."""
MESSAGE_SECONDS = 30.0
"""A message that takes longer to arrive loses its connection if others wait for room (cause ``slow``)."""
HANDLED_MESSAGES = 1000
"""Messages handed over at once."""
HANDLED_LEAST_MESSAGES = 100
"""The same while more than half of RECEIVED_OCTETS is held."""
HANDLED_EVENTS = 32
"""Subscriptions handled before a look at the clock: a node may answer each."""
MESSAGE_OVERHEAD_OCTETS = 128
"""Memory of a message that was handed over, besides its octets."""

# -- sending ------------------------------------------------------------------------------------

QUEUED_OCTETS = 1024 * 1024
"""Waiting to be sent to one peer before the sender waits, or the message is dropped; one message may exceed
it."""
QUEUED_LEAST_OCTETS = 16 * 1024
"""The same where much waits for many peers."""
ALL_QUEUED_OCTETS = 256 * 1024 * 1024
"""Waiting to be sent to all peers of a socket. At the limit a message larger than QUEUED_LEAST_OCTETS
waits."""
BUFFER_OCTETS = 64
"""Memory of a buffer besides its octets."""
BUFFERS_AT_ONCE = 256
"""Buffers for one sendmsg; systems allow 1024."""
LEASED_PEERS = 4
"""Peers to which another thread than the hub's may send a message, one after the other."""
SENT_AT_ONCE = 256 * 1024
"""Given to the kernel for one peer before others have their turn."""
SEALED_AT_ONCE = 32 * 1024
"""Encrypted at once for a peer under CURVE: a record takes some microseconds for each of its frames."""
SEALED_READ_OCTETS = 64 * 1024
"""Read, and opened, at once from a peer under CURVE."""
SEALED_INLINE_OCTETS = 1024 * 1024
"""Encrypted frames that are longer are sealed and opened in threads."""
UNREAD_SECONDS = 30.0
"""A peer that reads nothing for this long loses its connection if others wait for room (cause ``unread``)."""
LINGER_SECONDS = 1.0
"""How long a socket that closes goes on sending."""
SENT_MESSAGES = 1000
"""Messages encoded before others have their turn ..."""
SENT_OCTETS = 128 * 1024
"""... and their octets. One message may exceed it."""

TOLD_OCTETS = 1024 * 1024
"""Changes of subscriptions that a publisher has not read, before a subscriber connects to it anew (cause
``unread``) and tells it all of them."""

TOLD_AT_ONCE = 500
"""Subscriptions that a new publisher is told of at once."""

# -- connecting ---------------------------------------------------------------------------------

CONNECT_SECONDS = 10.0
"""An attempt to connect to one address; its handshake has HANDSHAKE_SECONDS."""
RECONNECT_SECONDS = 0.1
"""The first pause between attempts; it doubles, and each is shortened by a random part."""
RECONNECT_MOST_SECONDS = 5.0
HEARTBEAT_SECONDS = 5.0
"""Silence after which a Dealer or a Subscriber sends a PING."""
HEARTBEAT_TIMEOUT = 15.0
"""Silence after which it takes its peer for gone (cause ``silent``)."""
