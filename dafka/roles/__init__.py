"""The decisions of each kind of node: plain state machines without sockets, threads or a clock.

Inputs are method calls that carry the time (``now``, float seconds of any monotonic clock); outputs are
lists of small values that the caller carries out: commands and runs to publish, and those in
:mod:`dafka.roles.outputs`.
"""
