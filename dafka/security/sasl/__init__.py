"""SASL: the messages by which a client authenticates. The broker's side, without I/O.

Theory of operation. An exchange is made for the mechanism that a client has chosen. Each message of the
client goes to :meth:`~dafka.security.sasl.steps.Exchange.respond`, which returns the :class:`~.steps.Step` to
answer with; the last one tells the client's :class:`~.steps.Identity`. Every failure (an unknown user, a
wrong password, a malformed message) is one :class:`~.steps.AuthenticationError`, with the same words for a
mechanism. An exchange calls functions that it was given for what it needs to know: the credential of a user,
whether a password is right, whether a token is valid. Those may wait.
"""

from __future__ import annotations
