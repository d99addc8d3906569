"""Zeek Broker's peers and routing: state machines without I/O.

Inputs are method calls that carry the time (``now``, float seconds of any monotonic clock) where time
matters; outputs are lists of small values that the caller carries out. Ids of endpoints are 16 octets, topics
and prefixes are ``bytes``, because prefixes match by octets.
"""
