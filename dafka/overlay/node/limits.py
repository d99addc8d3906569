"""The bounds of an endpoint that runs: its queues, its sockets, its waiting. Sizes are octets.

Modules read these as ``limits.NAME`` when they need them, so that a test can lower one.
"""

from __future__ import annotations

SUBSCRIBER_MESSAGES = 1024
"""Messages that wait at a subscriber, if its user says nothing else."""
SUBSCRIBER_OCTETS = 16 * 1024 * 1024
"""Octets that wait at a subscriber, with ITEM_OCTETS for each message. One message may exceed it."""
TAKEN_MESSAGES = 128
"""Read at once by a thread that gets messages from a subscriber one by one."""
TAKEN_OCTETS = 32 * 1024
"""Their octets. One message may exceed it."""
ITEM_OCTETS = 128
"""Memory of a waiting message besides its payload."""
PENDING_MESSAGES = 4096
"""Messages published by the threads of a program, which the hub has not taken yet."""
PENDING_OCTETS = 4 * 1024 * 1024
"""Their octets. One message may exceed it."""
PUBLISHED_MESSAGES = 200
"""Published at once, divided by the neighbours that get them; with TURN_SECONDS for all in one turn of the
hub."""
CARRIED_AT_ONCE = 200
"""Peers that get a published message before others have their turn, if it has been long enough."""
READ_OCTETS = 128 * 1024
"""Read at once from a peer."""
UNCHARGED_OCTETS = 16 * 1024
"""Read at once and handled at once, these do not count among what all connections hold."""
HEARD_MESSAGES = 200
"""Handled at once, if they are quick to handle."""
HEARD_SECONDS = 0.003
"""Of processor time. If those that were handled at once took longer, it is half as many the next time."""
TURN_SECONDS = 0.005
"""How long a peer is read in one turn of the hub; the others follow in the next."""
CONNECT_SECONDS = 10.0
"""An attempt to connect to one address; the handshake has limits.HANDSHAKE_SECONDS of its own."""
HANDSHAKES = 256
"""Accepted connections in the handshake of TLS. A further one waits for one of them, and ends the oldest if
that has had HANDSHAKE_LEAST_SECONDS. The handshake of peers, which follows, has the overlay's own bounds."""
HANDSHAKE_LEAST_SECONDS = 2.0
HANDSHAKE_SECONDS = 10.0
"""The handshake of TLS must be complete within this time."""
ENCRYPTED_OCTETS = 64 * 1024
"""Encrypted at once."""
LINK_OCTETS = 64 * 1024 * 1024
"""Queued for one connection: subscriptions, commands of stores and what there was credit for. Beyond, the
connection is closed: its other end reads nothing."""
ALL_LINKS_OCTETS = 256 * 1024 * 1024
"""The same for all connections of an endpoint together. Beyond, the one with the longest queue is closed."""
MESSAGE_SECONDS = 30.0
"""A message that takes longer to arrive loses its connection, if others wait for its memory. How much may be
received and not handled of all connections together is in :mod:`dafka.sockets.limits`."""
EXPIRY_SECONDS = 0.002
"""How precisely keys of stores expire."""
LINGER_SECONDS = 2.0
"""How long a connection that is to be closed still sends what was queued, and waits for the other end."""
FLUSH_SECONDS = 5.0
"""How long an endpoint that is closed waits for receivers that are too slow for what it has published."""
UNPEER_SECONDS = 4.0
"""How long unpeer waits for the end of a connection: a goodbye and its answer."""
TOPICS = 4096
"""Topics whose subscribers are kept ready."""
STATUSES = 1024
"""Statuses that wait at their subscriber; older ones are dropped."""
RETRY_SECONDS = 10.0
"""The interval between attempts to connect to an address, if its user says nothing else."""
RETRY_MOST_SECONDS = 1_000_000_000
"""The longest one: some thirty years."""
STORE_WRITES = 1000
"""Writes to a store that its role was not given yet; further writes wait."""
STORE_EVENTS = 65_536
"""Events of a store that wait at their subscriber, if its user says nothing else."""
STORE_PAUSE_SECONDS = 0.01
"""Between two looks at a store that takes no writes at the moment, or is not idle."""
STORE_RETRY_SECONDS = 1.0
"""After which a backend that could not write is tried again."""
STORE_CLOSE_SECONDS = 10.0
"""How long closing a store waits for its backend."""
READ_SECONDS = 5.0
"""How long a question to a store waits, if its user says nothing else."""
WRITE_SECONDS = 10.0
"""The same for put_unique, and for a place among the writes."""
IDLE_SECONDS = 15.0
"""The same for await_idle, as with libbroker."""
