"""Hostile names of records, groups, clients, accounts and nodes: every page shows them as text.

ZPER's servers refuse topics with other signs than those of Kafka's names (tests/zper).
"""

from __future__ import annotations

import json
from urllib.parse import quote, urlencode

import pytest
from broker import users
from console.asking import SECONDS

import dafka.broker
from compat.kafka import KafkaConsumer, KafkaProducer
from dafka import Consumer, Producer, Store
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.console import ConsoleOptions, NetworkOptions
from dafka.overlay import Endpoint
from dafka.security import ServerAcls
from dafka.security.acls.terms import Acl, Operation, PatternType, Permission
from dafka.security.acls.terms import ResourceType as AclResource
from dafka.testing import TestBroker

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.xdist_group("browser")  # one browser for all of them

MARKUP = "\"'><img src=x onerror=alert(1)><script>alert(2)</script><svg onload=alert(3)>${7*7}{{7*7}}"
LINK = "javascript:alert(4)//"
SIGNS = "\x00\x1b[31m\u202etxt\u2066\ufeff\u200b"
HIDDEN = set("\x00\x1b\u202e\u2066\ufeff\u200b")
NAME = MARKUP + SIGNS.replace("\x00", "")
"""For what may hold any text but U+0000."""


@pytest.fixture(scope="module")
def overlay():
    with (
        Endpoint(listen="127.0.0.1:0") as first,
        Endpoint(peers=[first.address]) as second,
        second.subscribe(MARKUP),
    ):
        yield first


@pytest.fixture(scope="module")
def shared(overlay):
    networks = NetworkOptions(overlay=[overlay.address])
    acls = ServerAcls(super_users=("User:ANONYMOUS",))
    with TestBroker(console=ConsoleOptions(networks=networks), acls=acls) as broker:
        yield broker


@pytest.fixture(scope="module")
def hostile(shared, tmp_path_factory):
    """Everything that has a name has a hostile one, while the tests run."""
    servers = {"bootstrap_servers": shared.bootstrap_servers}
    shared.create_topic("records", 2)
    connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
    record = {"key": NAME, "headers": [(NAME, NAME.encode())]}
    tree = json.dumps({MARKUP: [LINK, {SIGNS: MARKUP}]}, ensure_ascii=False)
    values = [tree, MARKUP + SIGNS, LINK]
    shared.preload("records", [{**record, "value": value} for value in values], partition=0)
    users.add(shared, MARKUP, "secret")
    entry = Acl(
        AclResource.TOPIC, NAME, PatternType.LITERAL, f"User:{NAME}", "*", Operation.READ, Permission.ALLOW
    )
    connection.call("create_acls", [entry])
    resource = Resource(ResourceType.TOPIC, "records")
    change = ConfigChange("follower.replication.throttled.replicas", ConfigOperation.SET, "*")
    connection.call("alter_configs", {resource: [change]})
    producer = KafkaProducer(**servers, transactional_id=NAME, client_id=NAME)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send("records", MARKUP.encode(), headers=[(NAME, NAME.encode())], partition=1).get(SECONDS)
    consumer = KafkaConsumer(
        "records", **servers, group_id=NAME, client_id=NAME, auto_offset_reset="earliest"
    )
    while not consumer.poll(100):
        pass
    topic = MARKUP.encode()
    with (
        Store(tmp_path_factory.mktemp("store") / "one", tower=shared.tower),
        Producer(topic, tower=shared.tower) as native,
        Consumer([topic], tower=shared.tower),
    ):
        native.send(b"x")
        native.flush(SECONDS)
        yield
    consumer.close()
    producer.close(0)
    connection.close()


def where(name):
    """Pages, each with a word that is there when it is whole."""
    return {
        "overview": ("/", "Partitions"),
        "topics": (f"/topics?{urlencode({'search': name})}", "Search"),
        "records": ("/topics/records?from=earliest&partitions=0", "onerror"),
        "open-transaction": ("/topics/records?from=earliest&partitions=1", "onerror"),
        "no-topic": (f"/topics/{quote(name, safe='')}", "onerror"),
        "no-page": (f"/{quote(name, safe='')}", "There is no page"),
        "wrong-search": (f"/topics/records?{urlencode({'search': name, 'from': name})}", "Search"),
        "partitions": ("/topics/records/partitions", "holds up"),
        "settings": ("/topics/records/settings", "cleanup.policy"),
        "groups": ("/groups", "onerror"),
        "group": (f"/group?{urlencode({'name': NAME})}", "onerror"),
        "no-group": (f"/group?{urlencode({'name': 'x' + name})}", "there is no group"),
        "transactions": ("/transactions", "onerror"),
        "rights": ("/access", "onerror"),
        "mesh": ("/mesh", "onerror"),
        "no-node": (f"/mesh?{urlencode({'node': name})}", "there is no"),
        "overlay": (f"/overlay?{urlencode({'node': name})}", "onerror"),
    }


@pytest.mark.parametrize("place", where(""))
def test_a_page_shows_hostile_names_as_text(page, shared, hostile, place):
    """Nothing runs, nothing is loaded, and no element comes of a name."""
    dialogs = []
    page.on("dialog", lambda dialog: (dialogs.append(dialog.message), dialog.dismiss()))
    path, word = where(NAME)[place]
    page.goto(path)
    expect(page.locator("main:not([aria-busy])")).to_be_visible()
    expect(page.locator("main")).to_contain_text(word)
    page.evaluate("() => document.querySelectorAll('main details').forEach((one) => { one.open = true; })")
    assert dialogs == []
    made = page.evaluate(
        """() => [...document.querySelectorAll("main img, main script, main iframe, main style, main object")]
            .map((one) => one.outerHTML)"""
    )
    assert made == []
    links = page.evaluate("() => [...document.links].map((one) => one.href)")
    assert [one for one in links if not one.startswith((shared.console, "blob:"))] == []
    events = page.evaluate(
        """() => [...document.querySelectorAll("*")].filter((one) => one.getAttributeNames()
            .some((name) => name.startsWith("on"))).map((one) => one.outerHTML)"""
    )
    assert events == []
    text = page.locator("main").inner_text()
    assert not HIDDEN & set(text + page.title()), "they are shown by their numbers"
