"""The part of the broker interface about security: accounts and access control lists.

See :mod:`dafka.broker.interface.broker` for what all methods have in common.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from typing import NamedTuple

from dafka.broker.interface.groups import Error
from dafka.broker.interface.outcome import Outcome
from dafka.security.acls.terms import Acl, AclFilter


class ScramMechanism(IntEnum):
    """Mechanisms that keep a credential of a password; Kafka's numbers (ScramMechanism)."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def label(self) -> str:
        """The name that SASL has for it."""
        return self.name.replace("_", "-")


class DescribedAccount(NamedTuple):
    """The iterations of a user's credentials, by mechanism."""

    error: Error | None
    iterations: Mapping[int, int] = {}
    detail: str = ""


class CredentialDeletion(NamedTuple):
    """A credential to delete."""

    user: str
    mechanism: int


class CredentialUpsertion(NamedTuple):
    """A credential to set: the password as derived by PBKDF2, never the password itself."""

    user: str
    mechanism: int
    iterations: int
    salt: bytes
    salted_password: bytes

    def __repr__(self) -> str:
        return f"CredentialUpsertion({self.user!r}, {self.mechanism}, {self.iterations})"


class DeletedAcls(NamedTuple):
    """The entries that a filter has removed; ``left``: those that it finds and that are still there, because
    of the error."""

    error: Error | None
    acls: Sequence[Acl] = ()
    detail: str = ""
    left: Sequence[Acl] = ()


class AccountInterface(ABC):
    """Accounts."""

    @abstractmethod
    def describe_accounts(self, users: Iterable[str] | None = None) -> dict[str, DescribedAccount]:
        """The accounts of these users, or of all; ResourceNotFoundError for one that has none."""

    @abstractmethod
    def alter_accounts(
        self, deletions: Sequence[CredentialDeletion], upsertions: Sequence[CredentialUpsertion]
    ) -> dict[str, Outcome]:
        """Delete and set credentials, one of each user; a user with more than one in a call is not changed at
        all.

        Errors: UnacceptableCredentialError, UnsupportedSaslMechanismError, DuplicateResourceError (one
        user twice), ResourceNotFoundError (nothing to delete), KafkaStorageError.
        """


class AclInterface(ABC):
    """Access control lists: the rights of principals.

    All methods raise SecurityDisabledError where there are no access control lists, and those of a remote
    broker what the cluster answers.
    """

    @abstractmethod
    def describe_acls(self, wanted: AclFilter) -> list[Acl]:
        """The entries that the filter takes. Raises InvalidRequestError."""

    @abstractmethod
    def create_acls(self, acls: Sequence[Acl]) -> list[Outcome]:
        """Add entries; for each its outcome. One that is there already is created again.

        Errors: InvalidRequestError (none that can be), PolicyViolationError (too many), KafkaStorageError.
        """

    @abstractmethod
    def delete_acls(self, filters: Sequence[AclFilter]) -> list[DeletedAcls]:
        """Remove the entries that each filter takes. One that several take is in the outcome of each.

        Errors: InvalidRequestError, PolicyViolationError (too many), KafkaStorageError.
        """


class AccessInterface(AccountInterface, AclInterface):
    """Accounts and their rights."""
