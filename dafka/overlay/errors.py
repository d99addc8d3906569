"""Errors of the overlay, besides :class:`dafka.protocol.errors.MalformedMessage` for octets from others."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class InvalidValue(DafkaError, ValueError):
    """A value that Zeek Broker's data types cannot express."""


class TooManyPrefixes(DafkaError, ValueError):
    """More prefixes than the other nodes would take in the filter of one."""
