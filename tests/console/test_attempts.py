"""How often passwords may be tried."""

from __future__ import annotations

import pytest

from dafka.console import limits
from dafka.console.attempts import Attempts
from dafka.console.errors import TooManyError


@pytest.fixture
def time():
    return [1000.0]


@pytest.fixture
def attempts(time):
    return Attempts(lambda: time[0])


def wrong(attempts, address, user, count):
    for _ in range(count):
        attempts.begin(address, user)


def test_an_account_is_guessed_so_often_from_one_address_and_its_owner_gets_in(attempts, time):
    wrong(attempts, "10.0.0.1", "admin", limits.ATTEMPTS_OF_ACCOUNT)
    with pytest.raises(TooManyError, match="try again in 60 s"):
        attempts.begin("10.0.0.1", "admin")
    attempts.begin("10.0.0.2", "admin")
    attempts.begin("10.0.0.1", "other")
    time[0] += limits.ATTEMPT_SECONDS
    wrong(attempts, "10.0.0.1", "admin", limits.ATTEMPTS_OF_ACCOUNT)


def test_one_address_tries_no_password_with_all_accounts(attempts):
    for number in range(limits.ATTEMPTS_OF_ADDRESS):
        attempts.begin("10.0.0.1", f"user-{number}")
    with pytest.raises(TooManyError):
        attempts.begin("10.0.0.1", "one-more")


@pytest.mark.parametrize(("one", "other"), [("2001:db8::1", "2001:db8::ffff"), ("::ffff:1.2.3.4", "1.2.3.4")])
def test_all_addresses_of_one_host_are_one(attempts, one, other):
    wrong(attempts, one, "admin", limits.ATTEMPTS_OF_ACCOUNT)
    with pytest.raises(TooManyError):
        attempts.begin(other, "admin")


def test_right_passwords_are_not_counted(attempts):
    for _ in range(3 * limits.ATTEMPTS_OF_ADDRESS):
        attempts.begin("10.0.0.1", "admin")
        attempts.succeed("10.0.0.1", "admin")


def test_known_attempts_are_bounded(attempts, monkeypatch):
    monkeypatch.setattr(limits, "ATTEMPTS_KNOWN", 10)
    for number in range(100):
        attempts.begin(f"10.0.0.{number}", "admin")
    assert len(attempts._begun) == 10
