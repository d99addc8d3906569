"""Errors of certificates, keys and accounts."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class TlsError(DafkaError, ValueError):
    """Certificates or keys that cannot be used; the message names the option and the file."""


class KeyFolderError(DafkaError, ValueError):
    """Keys of a mesh that cannot be used; the message names the file."""


class SaslError(DafkaError, ValueError):
    """Options of accounts that cannot be used; the message names the option and the value."""


class AclError(DafkaError, ValueError):
    """Options of access control lists that cannot be used; the message names the option and the value."""
