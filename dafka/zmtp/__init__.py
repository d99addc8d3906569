"""ZMTP, the protocol of ZeroMQ's sockets, as state machines without I/O: 2.0, 3.0 and 3.1.

:class:`dafka.zmtp.connection.Connection` is one connection. Octets go in, events and octets come out; sockets
and time are elsewhere (:mod:`dafka.sockets`).
"""
