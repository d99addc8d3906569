"""Every client at every listener, with every mechanism, and with what may be wrong (cases.py).

Java and Spark, and the same against Apache Kafka: DAFKA_TEST_APACHE_KAFKA=1.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import pytest
from broker.server.secured import Files, Secured, files, secured
from clients.adapters.java import Java
from clients.adapters.kcat import Kcat
from clients.logins.attempts import ATTEMPTS, SECONDS, SILENT
from clients.logins.cases import CASES, CERTIFICATE, CLOSED, IN, LOGIN, NOT_ALLOWED, TOKEN, Case, Login
from clients.servers import APACHE, DAFKA

from scripts.apache.jars import UnavailableError

LONG = "DAFKA_TEST_APACHE_KAFKA"
IN_THE_LONG_FORM = pytest.mark.skipif(not os.environ.get(LONG), reason=f"starts Java; set {LONG}=1")
PATIENCE = (1.0, 8.0, SECONDS)
"""Seconds until an attempt that is not let in is given up. Clients try again and again, and a busy machine
may be late with the reason."""
AT_ONCE = 8

DIFFERENT = {
    # It names the authorities that it accepts, and these clients then show no other certificate.
    **{(APACHE, one, "SSL: a stranger's certificate"): IN for one in ("confluent-kafka", "java")},
    # It refuses SCRAM of librdkafka before 2.6.1, which has its part of the nonce twice.
    **{
        (APACHE, "kcat", case.name): LOGIN
        for case in CASES
        if "SCRAM" in case.mechanism and case.outcome in (IN, NOT_ALLOWED)
    },
}
"""What becomes of a case with a broker and a client, where that is something else."""

values = (b"%d" % number for number in count())


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return files(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="module", params=[DAFKA, pytest.param(APACHE, marks=IN_THE_LONG_FORM)])
def broker(request: pytest.FixtureRequest, made: Files) -> Iterator[Secured]:
    try:
        with secured(request.param, made) as running:
            yield running
    except UnavailableError as error:
        pytest.skip(str(error))


def expected(broker: Secured, client: str, case: Case) -> set[str]:
    """What may become of it."""
    if (different := DIFFERENT.get((broker.name, client, case.name))) is not None:
        return {different}
    if client in SILENT and case.outcome not in (IN, NOT_ALLOWED):
        return {CLOSED}
    # The broker's last word may be overtaken by the end of the connection.
    return {case.outcome, *([CLOSED] if case.outcome == CERTIFICATE else [])}


def attempted(client: str, case: Case, login: Login, broker: Secured) -> str:
    address, value = case.address(broker.listeners), next(values)
    found = ""
    for seconds in [SECONDS] if case.outcome in (IN, NOT_ALLOWED) else PATIENCE:
        found = ATTEMPTS[client](address, login, value, seconds)
        if found == IN or found in expected(broker, client, case):
            break
    return found


@pytest.fixture
def by_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    """The facade is not to find the broker in its process."""
    monkeypatch.setattr("dafka.broker.running.at", lambda _: None)
    monkeypatch.setattr("dafka.broker.running.brokers", lambda: [])


def differences(client: str, broker: Secured, made: Files, at_once: int = AT_ONCE) -> dict[str, str]:
    """The cases in which it is not as expected."""
    cases = [one for one in CASES if client != "kcat" or one.mechanism != TOKEN]  # it has no tokens
    logins = [one.login(made) for one in cases]  # before anybody reads their files
    with ThreadPoolExecutor(at_once) as pool:
        found = list(pool.map(lambda *case: attempted(client, *case, broker), cases, logins))
    return {
        case.name: f"it {said}, and not: {case.outcome}"
        for case, said in zip(cases, found, strict=True)
        if said not in expected(broker, client, case)
    }


@pytest.mark.parametrize("client", [one for one in ATTEMPTS if one not in ("java", "spark")])
def test_some_users_are_let_in_and_others_are_told_why_not(
    broker: Secured, made: Files, client: str, by_tcp: None
) -> None:
    if client == "kcat" and (missing := Kcat().missing()):
        pytest.skip(missing)
    assert differences(client, broker, made) == {}


@IN_THE_LONG_FORM
@pytest.mark.timeout(1800)
def test_the_same_with_java(broker: Secured, made: Files) -> None:
    if missing := Java().missing():
        pytest.skip(missing)
    assert differences("java", broker, made, at_once=1) == {}


@IN_THE_LONG_FORM
@pytest.mark.timeout(3600)
def test_the_same_with_spark(broker: Secured, made: Files, spark: Any) -> None:
    assert differences("spark", broker, made, at_once=4) == {}
