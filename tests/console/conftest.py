"""A broker with a console, and clients of it."""

from __future__ import annotations

from importlib.util import find_spec
from urllib.parse import urlsplit

import pytest
from console.asking import SECONDS, Client
from console.browsing import launch
from console.clusters import ON_REQUEST, ApacheKafka, apache_kafka

import dafka.broker
from dafka.testing import TestBroker

_EXTRA = ("fastavro", "flask", "grpc_tools", "jsonschema", "msgpack")  # some of the extra "console"
collect_ignore_glob = [] if all(map(find_spec, _EXTRA)) else ["*"]


@pytest.fixture(scope="module")
def embedded():
    """A broker for all tests of a file, each of which takes names of its own; other tests run without it."""
    with TestBroker(console=True) as broker:
        yield broker


@pytest.fixture(scope="session")
def apache():
    """Apache Kafka with a console."""
    with apache_kafka() as cluster:
        yield cluster


@pytest.fixture(scope="module", params=["dafka", pytest.param("apache", marks=ON_REQUEST)])
def shared(request):
    """The cluster that a console shows."""
    return request.getfixturevalue("embedded" if request.param == "dafka" else "apache")


@pytest.fixture
def is_apache(shared):
    """Whether that is Apache Kafka."""
    return isinstance(shared, ApacheKafka)


@pytest.fixture(params=["embedded", "tcp"])
def client(request, shared, is_apache):
    """The console of that cluster: the one within the broker, and one that reaches it over TCP."""
    if is_apache:
        if request.param == "embedded":
            pytest.skip("Apache Kafka runs in no process of ours")
        return Client(shared.console)
    return Client(shared.console if request.param == "embedded" else request.getfixturevalue("over_tcp"))


@pytest.fixture
def local(shared):
    """The console within the broker, or the only one."""
    return Client(shared.console)


@pytest.fixture(scope="module")
def over_tcp(shared):
    from dafka.broker.connecting import Connection
    from dafka.broker.remote.remote import Remote
    from dafka.console import Console
    from dafka.hub.hub import get_hub

    hub = get_hub()
    host, port = shared.bootstrap_servers.split(":")
    remote = hub.run(Remote, hub, [(host, int(port))])
    try:
        with Console(Connection(hub, remote)) as console:
            yield console.url
    finally:
        hub.run(remote.close)


@pytest.fixture
def read_only(shared):
    """A console of that broker in which nothing may be changed."""
    from dafka.console import Console, ConsoleOptions

    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    with Console(connection, ConsoleOptions(write=False)) as console:
        yield Client(console.url)


# -- a real browser, where there is one -------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    sync_api.expect.set_options(timeout=SECONDS * 1000)
    with sync_api.sync_playwright() as playwright:
        browser = launch(playwright)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def context(browser, shared):
    """One for all tests: Chromium starts processes for each. The console keeps nothing in a browser."""
    context = browser.new_context(base_url=shared.console)
    context.set_default_timeout(SECONDS * 1000)
    context.new_page().goto("/health")  # stays open, and keeps the process that draws
    yield context
    context.close()


def _is_own(request):
    """Whether a page asks for something where it came from."""
    return request.is_navigation_request() or urlsplit(request.url)[:2] == urlsplit(request.frame.url)[:2]


@pytest.fixture
def page(context):
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    page.on("request", lambda one: None if _is_own(one) else problems.append(one.url))
    yield page
    page.close()
    assert [one for one in problems if not one.startswith(("data:", "Failed to load resource"))] == []
