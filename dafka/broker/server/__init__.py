"""Kafka's wire protocol over the broker interface: the TCP listener, and the answers to Kafka's requests.

Kafka requests become calls of :class:`~dafka.broker.interface.broker.BrokerInterface` in one place only:

    answer(broker, request, context=IN_PROCESS) -> response

``request`` and the response are objects of kafka-python's protocol classes (``kafka.protocol.*``), of any
version; a request without a version is treated as one of the newest version. The response has no version yet;
the sender sets the version of the request. ``answer`` runs in the hub and may wait as a green thread. It
raises ``kafka.errors.UnsupportedVersionError`` for classes that are not answered here (among them Produce and
Fetch, whose batches never become objects), and :class:`dafka.broker.interface.errors.BrokerStoppedError`.

``context`` describes the client: :class:`~dafka.broker.server.context.Context` (client id, client host).
Only JoinGroup uses it.

Theory of operation. One green thread reads a connection. As in Kafka, a request is decoded, answered and
written before the next one is read, so responses go out in the order of their requests, and a waiting request
blocks only its own connection. Consecutive Produce requests are the exception: each is handed to the broker
when it arrives, so they share commits, and their responses go out in order. The memory of one connection and
of all connections together is bounded (:mod:`dafka.broker.server.limits`): the listener stops reading from a
client that does not read its responses.

Invalid requests are answered with an error of the protocol where it has one. Malformed or oversized requests
close the connection. The reason is counted and logged once for each connection; if there are many in a
minute, the first ones are logged, and then their number.
"""

from __future__ import annotations

from dafka.broker.server.context import IN_PROCESS, Context
from dafka.broker.server.table import answer

__all__ = ["IN_PROCESS", "Context", "answer"]
