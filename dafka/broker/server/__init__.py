"""Kafka's wire protocol over the broker interface: the TCP listener, and the answers to Kafka's requests.

Kafka requests become calls of :class:`~dafka.broker.interface.broker.BrokerInterface` in one place only:

    answer(broker, request, context=IN_PROCESS) -> response

``request`` and the response are objects of kafka-python's protocol classes (``kafka.protocol.*``), of any
version; a request without a version is taken as the newest one. The response has no version yet: whoever
sends it gives it the request's. Runs in the hub, may wait as a green thread. Raises
``kafka.errors.UnsupportedVersionError`` for a class of request that is not answered here (Produce and Fetch
among them: their batches never become objects), and
:class:`dafka.broker.interface.errors.BrokerStoppedError`.

``context`` is who asks: :class:`~dafka.broker.server.context.Context` (client id, client host), which only
JoinGroup passes on.

Theory of operation. One green thread reads a connection. A request is decoded, answered and written before
the next one is read, as Kafka does it, so responses go out in the order of their requests and a request that
parks stops nobody else. The exception are Produce requests that come one behind the other: they are handed to
the broker as they come, share its commits, and are answered in their order. What a connection and all of
them together may hold in memory is bounded (:mod:`dafka.broker.server.limits`): a client that does not read
its responses is not read from.

What is no request is answered with the protocol's own error where it has one; otherwise the connection is
closed and the reason logged, once for each connection, and counted; of many in a minute the first ones are
logged and then their number.
"""

from __future__ import annotations

from dafka.broker.server.answering import answer
from dafka.broker.server.context import IN_PROCESS, Context

__all__ = ["IN_PROCESS", "Context", "answer"]
