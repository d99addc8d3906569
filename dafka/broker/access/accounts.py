"""Accounts: the credentials of users, in the log's table ``accounts``.

A row is named by mechanism and user (``SCRAM-SHA-256:alice``) and has salt, keys and iterations of SCRAM, the
octets as hexadecimal digits. The table ``accounts.secret`` has the secret from which the answers for unknown
users are made: they are the same each time, so that nobody can tell whether a user exists.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gevent.lock import BoundedSemaphore
from kafka.errors import (
    DuplicateResourceError,
    KafkaStorageError,
    PolicyViolationError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnsupportedSaslMechanismError,
)

from dafka.broker.interface.access import (
    AccountInterface,
    CredentialDeletion,
    CredentialUpsertion,
    DescribedAccount,
    ScramMechanism,
)
from dafka.broker.interface.outcome import Outcome
from dafka.broker.limits import ACCOUNTS_KEPT, ACL_ROUND
from dafka.commit.writer import Writer
from dafka.hub.completion import run_to_completion
from dafka.hub.hub import Hub
from dafka.hub.turns import Pace, in_pieces
from dafka.log import Log, LogError, shapes
from dafka.log.repeating import bounded_logger
from dafka.security import credentials
from dafka.security.credentials import ScramCredential, key_octets

log = bounded_logger(__name__)

ACCOUNTS, SECRET = "accounts", "accounts.secret"
NAME_OCTETS = 255
_USUAL = (credentials.LEAST_ITERATIONS, credentials.SALT_OCTETS)

_Change = CredentialDeletion | CredentialUpsertion
_Key = tuple[str, str]  # a mechanism's name and a user


class _RefusedError(Exception):
    """Why credentials cannot be changed as asked."""

    def __init__(self, error: type, detail: str) -> None:
        super().__init__(detail)
        self.outcome = Outcome(error, detail)


class Accounts(AccountInterface):
    """The accounts of one broker. Hub side."""

    def __init__(self, hub: Hub, log: Log, writer: Writer) -> None:
        self._hub = hub
        self._writer = writer
        table = log.table(ACCOUNTS, shapes.RowShape(_is_key, _is_credential))
        self._known = {_parsed(key): _read(value) for key, value in table.items()}
        self._forms = {one: Counter[tuple[int, int]]() for one in _MECHANISMS}
        for (mechanism, _), known in self._known.items():
            self._forms[mechanism][_form(known)] += 1
        self._secrets = log.table(SECRET, shapes.named_rows(octets=shapes.octets(range(32, 33).__contains__)))
        self._changing = BoundedSemaphore(1)

    def __len__(self) -> int:
        """How many credentials there are."""
        return len(self._known)

    # -- who somebody is ------------------------------------------------------------------------

    def credential(self, mechanism: str, user: str) -> ScramCredential:
        """A user's credential; for a user that has none, one that no password matches.

        Waits as a green thread when it is first asked for an unknown user.
        """
        known = self._known.get((mechanism, user))
        if known is not None:
            return known
        common = self._forms[mechanism].most_common(1)
        iterations, salt = common[0][0] if common else _USUAL
        return credentials.stand_in(mechanism, user, self._secret(), iterations, salt)

    def has(self, mechanism: str, user: str) -> bool:
        """Whether a user has a credential."""
        return (mechanism, user) in self._known

    def _secret(self) -> bytes:
        with self._changing:
            if "octets" not in self._secrets:
                self._writer.put_and_wait({(SECRET, "octets"): secrets.token_bytes(32)})
            return bytes(self._secrets.get("octets"))

    # -- the interface --------------------------------------------------------------------------

    def describe_accounts(self, users: Iterable[str] | None = None) -> dict[str, DescribedAccount]:
        found: dict[str, dict[int, int]] = {}
        wanted = None if users is None else dict.fromkeys(users)
        if wanted is None:
            pace = Pace()
            for (mechanism, user), known in pace.over(list(self._known.items())):
                found.setdefault(user, {})[_MECHANISMS[mechanism]] = known.iterations
            return {user: DescribedAccount(None, one) for user, one in pace.over(found.items())}
        return {user: self._described(user) for user in Pace().over(wanted)}

    def _described(self, user: str) -> DescribedAccount:
        has = {
            number: self._known[label, user].iterations
            for label, number in _MECHANISMS.items()
            if (label, user) in self._known
        }
        if has:
            return DescribedAccount(None, has)
        words = f"Attempt to describe a user credential that does not exist: {user}"
        return DescribedAccount(ResourceNotFoundError, {}, words)

    def alter_accounts(
        self, deletions: Sequence[CredentialDeletion], upsertions: Sequence[CredentialUpsertion]
    ) -> dict[str, Outcome]:
        of_user: dict[str, list[_Change]] = {}
        every: list[_Change] = [*deletions, *upsertions]
        for one in Pace().over(every):
            of_user.setdefault(one.user, []).append(one)
        return run_to_completion(self._hub, self._alter, of_user)

    def _alter(self, of_user: Mapping[str, Sequence[_Change]]) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        with self._changing:
            pace = Pace()
            for some in in_pieces(of_user.items(), ACL_ROUND):
                outcomes.update(self._alter_some(some))
                pace.rest()
        return outcomes

    def _alter_some(self, of_user: Sequence[tuple[str, Sequence[_Change]]]) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        changes: dict[_Key, ScramCredential | None] = {}
        for user, some in of_user:
            try:
                mine = self._checked(some, len(self._known) + len(changes))
            except _RefusedError as refused:
                outcomes[user] = refused.outcome
                continue
            outcomes[user] = Outcome(None)
            changes.update(mine)
        try:
            self._write(changes)
        except LogError as error:
            log.error("accounts could not be changed: %s", error)
            failed = Outcome(KafkaStorageError, str(error))
            return {user: one if one.error else failed for user, one in outcomes.items()}
        return outcomes

    def _checked(self, some: Sequence[_Change], count: int) -> dict[_Key, ScramCredential | None]:
        changes: dict[_Key, ScramCredential | None] = {}
        for one in some:
            if changes:  # of the other mechanism, too, as in Apache Kafka
                detail = "A user credential cannot be altered twice in the same request"
                raise _RefusedError(DuplicateResourceError, detail)
            if not 0 < len(one.user.encode(errors="replace")) <= NAME_OCTETS:
                raise _RefusedError(
                    UnacceptableCredentialError, f"a user has a name of 1 to {NAME_OCTETS} octets"
                )
            if one.mechanism not in list(ScramMechanism):
                raise _RefusedError(UnsupportedSaslMechanismError, "Unknown SCRAM mechanism")
            key = ScramMechanism(one.mechanism).label, one.user
            if isinstance(one, CredentialUpsertion):
                _check(one)
                changes[key] = credentials.credential(key[0], one.salted_password, one.salt, one.iterations)
            elif key in self._known:
                changes[key] = None
            else:
                detail = "Attempt to delete a user credential that does not exist"
                raise _RefusedError(ResourceNotFoundError, detail)
        if count + len(changes) > ACCOUNTS_KEPT and any(
            value is not None and key not in self._known for key, value in changes.items()
        ):
            raise _RefusedError(PolicyViolationError, f"there are {ACCOUNTS_KEPT} credentials already")
        return changes

    def _write(self, changes: Mapping[_Key, ScramCredential | None]) -> None:
        if not changes:
            return
        self._writer.put_and_wait(
            {
                (ACCOUNTS, f"{key[0]}:{key[1]}"): None if new is None else _row(new)
                for key, new in changes.items()
            }
        )
        for key, new in changes.items():
            forms, old = self._forms[key[0]], self._known.pop(key, None)
            if old is not None:
                forms[_form(old)] -= 1
            if new is not None:
                self._known[key] = new
                forms[_form(new)] += 1


_MECHANISMS = {one.label: int(one) for one in ScramMechanism}


def _check(one: CredentialUpsertion) -> None:
    least, most = credentials.LEAST_ITERATIONS, credentials.MOST_ITERATIONS
    if not least <= one.iterations <= most:
        words = "Too few iterations" if one.iterations < least else "Too many iterations"
        raise _RefusedError(UnacceptableCredentialError, f"{words}: {least} to {most} are allowed")
    least, most = credentials.LEAST_SALT_OCTETS, credentials.MOST_SALT_OCTETS
    if not least <= len(one.salt) <= most:
        raise _RefusedError(UnacceptableCredentialError, f"a salt has {least} to {most} octets")
    size = key_octets(ScramMechanism(one.mechanism).label)
    if len(one.salted_password) != size:
        raise _RefusedError(UnacceptableCredentialError, f"a salted password has {size} octets")


def _form(known: ScramCredential) -> tuple[int, int]:
    """The part of a credential that a client sees before it has proved anything."""
    return known.iterations, len(known.salt)


def _row(known: ScramCredential) -> dict[str, Any]:
    return {
        "salt": known.salt.hex(),
        "stored_key": known.stored_key.hex(),
        "server_key": known.server_key.hex(),
        "iterations": known.iterations,
    }


def _read(row: Mapping[str, Any]) -> ScramCredential:
    salt, stored_key, server_key = (bytes.fromhex(row[name]) for name in ("salt", "stored_key", "server_key"))
    return ScramCredential(salt, stored_key, server_key, row["iterations"])


def _parsed(key: str) -> _Key:
    mechanism, _, user = key.partition(":")
    return mechanism, user


def _is_key(key: str) -> bool:
    mechanism, user = _parsed(key)
    return mechanism in _MECHANISMS and 0 < len(user.encode(errors="surrogatepass")) <= NAME_OCTETS


def _hex(least: int, most: int) -> shapes.Check:
    def check(value: Any) -> bool:
        if type(value) is not str or not 2 * least <= len(value) <= 2 * most or len(value) % 2:
            return False
        return all(digit in "0123456789abcdef" for digit in value)

    return check


def _credential_shape(size: int) -> shapes.Check:
    return shapes.fields(
        {
            "salt": _hex(credentials.LEAST_SALT_OCTETS, credentials.MOST_SALT_OCTETS),
            "stored_key": _hex(size, size),
            "server_key": _hex(size, size),
            "iterations": lambda value: (
                shapes.natural(value) and credentials.LEAST_ITERATIONS <= value <= credentials.MOST_ITERATIONS
            ),
        }
    )


_SHAPES = {one: _credential_shape(key_octets(one)) for one in _MECHANISMS}


def _is_credential(key: str, value: Any) -> object:
    return _SHAPES[_parsed(key)[0]](value)
