"""Brokers that are not in this process: the broker interface as a client over TCP.

:class:`Remote` is what clients of this process share; the parts of the interface are in the modules named
for them. :mod:`~dafka.broker.remote.connection` carries requests and answers,
:mod:`~dafka.broker.remote.nodes` keeps connections, :mod:`~dafka.broker.remote.cluster` knows who leads and
who coordinates.
"""

from __future__ import annotations

from dafka.broker.remote.remote import Remote

__all__ = ["Remote"]
