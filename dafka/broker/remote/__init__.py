"""Brokers that are not in this process: the broker interface as a client over TCP.

:class:`~dafka.broker.remote.remote.Remote` is what clients of this process share; the parts of the interface
are in the modules named for them. :mod:`~dafka.broker.remote.connection` carries requests and answers,
:mod:`~dafka.broker.remote.nodes` keeps connections, :mod:`~dafka.broker.remote.cluster` knows who leads and
who coordinates.
"""
