"""The bounds of one connection, whatever its peer sends. Sizes are octets.

A connection that exceeds one of them ends with the cause named here. Modules read these as ``limits.NAME``
when they need them, so that a test can lower one.
"""

from __future__ import annotations

HANDSHAKE_OCTETS = 4096
"""Longest command of a handshake (cause ``handshake-size``): a READY of ZeroMQ's has up to 330 octets."""
HANDSHAKE_PROPERTIES = 64
"""Properties in one READY (cause ``handshake-size``)."""
IDENTITY_OCTETS = 255
"""Longest identity, by the specification (cause ``identity``)."""
COMMAND_OCTETS = 4096
"""Longest command after the handshake (cause ``command-size``): a subscription, a PING."""
PING_CONTEXT_OCTETS = 16
"""Longest context of a PING, by the specification (cause ``command``)."""

MESSAGE_OCTETS = 64 * 1024 * 1024
"""Largest message, over all of its frames, unless the user says otherwise (cause ``message-size``)."""
MESSAGE_FRAMES = 65_536
"""Frames of one message (cause ``message-frames``)."""
FRAME_OCTETS = 64
"""Memory of a frame besides its contents, for a message in progress."""

SUBSCRIPTIONS = 10_000
"""Subscriptions of one peer (cause ``subscriptions``)."""
SUBSCRIPTIONS_OCTETS = 4 * 1024 * 1024
"""Their octets together, with SUBSCRIPTION_OCTETS for each (cause ``subscriptions``)."""
SUBSCRIPTION_OCTETS = 200
"""Memory of a subscription besides its prefix."""
PREFIX_OCTETS = 1024
"""Longest subscription (cause ``subscriptions``)."""
ALL_SUBSCRIPTIONS_OCTETS = 64 * 1024 * 1024
"""The subscriptions of all peers of a publisher (cause ``subscriptions``)."""

CUT_MESSAGES = 1000
"""Messages cut out of the received octets at once; the others follow in the next turns."""
RUN_FRAMES = 4
"""Longest messages, in frames, that are cut by columns where many alike follow each other."""
UNLIKE_MESSAGES = 16
"""Messages cut one by one after the headers of one were unlike those before it."""
GROWING_OCTETS = 8192
"""A frame above this that arrives in parts is collected in a buffer of its own."""
