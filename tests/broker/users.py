"""Accounts for tests."""

from __future__ import annotations

import os

import dafka.broker
from dafka import Broker
from dafka.broker.interface.access import CredentialUpsertion, ScramMechanism
from dafka.security import credentials


def add(broker: Broker, user: str, password: str) -> None:
    """An account, by each mechanism."""
    salt = os.urandom(32)
    call = dafka.broker.connect(broker.bootstrap_servers).call
    for one in ScramMechanism:
        salted = credentials.salted_password(one.label, password, salt, 4096)
        outcomes = call("alter_accounts", [], [CredentialUpsertion(user, one, 4096, salt, salted)])
        assert outcomes[user].error is None
