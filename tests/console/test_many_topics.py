"""Ten thousand topics: lists of them make no long turn of the hub, and one is found in a browser."""

from __future__ import annotations

import gc
import threading

import pytest
from console.asking import SECONDS, Client
from console.browsing import launch
from console.clusters import ON_REQUEST, apache_kafka
from timing import each_time, short_turns, until

import dafka.broker
from dafka.broker.interface.topics import TopicSpec
from dafka.hub.hub import get_hub
from dafka.testing import TestBroker

TOPICS = 10_000

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def many():
    """The console of a broker with so many topics."""
    with TestBroker(console=True) as broker:
        fill(broker)
        yield broker.console


@pytest.fixture
def many_of_apache():
    """That of an Apache Kafka of its own with so many topics."""
    with apache_kafka() as cluster:
        fill(cluster)
        yield cluster.console


def fill(cluster):
    connection = dafka.broker.connect(cluster.bootstrap_servers, SECONDS)
    for begin in range(0, TOPICS, 500):
        names = [f"topic-{number:05d}" for number in range(begin, begin + 500)]
        found = connection.call("create_topics", {name: TopicSpec(1) for name in names})
        assert {one.error for one in found.values()} == {None}
    until(lambda: len(connection.call("metadata", None).topics) == TOPICS, "all topics in the metadata", 300)
    connection.close()


@each_time
def test_lists_make_no_long_turn(many):
    client = Client(many)
    with short_turns():
        assert client.get("/api/topics")["total"] == TOPICS
        assert client.get("/api/topics", sort="partitions", descending="true")["matching"] == TOPICS
        assert client.get("/api/topics", search="777")["matching"] == 19
        assert client.get("/api/rates")["topics"] == TOPICS


def test_lists_do_not_bring_python_to_look_for_garbage_everywhere(many):
    """Each time that Python looks through all objects of so many topics makes a turn of 70 ms."""
    client, hub = Client(many), get_hub().run(threading.get_ident)
    collections = []

    def seen(phase, details):
        if phase == "start" and details["generation"] == 2 and threading.get_ident() == hub:
            collections.append(details)

    client.get("/api/topics")
    gc.collect()
    gc.callbacks.append(seen)
    try:
        for _ in range(10):
            client.get("/api/topics")
    finally:
        gc.callbacks.remove(seen)
    assert len(collections) < 3


@pytest.mark.parametrize("which", ["many", pytest.param("many_of_apache", marks=ON_REQUEST)])
def test_a_topic_is_found_in_a_browser(request, which):
    url = request.getfixturevalue(which)
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    expect = sync_api.expect
    with sync_api.sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page(base_url=url)
        page.set_default_timeout(SECONDS * 1000)
        expect.set_options(timeout=SECONDS * 1000)
        page.goto("/topics?search=topic-")
        expect(page.get_by_text("10,000 of 10,000 topics")).to_be_visible()
        expect(page.locator("tbody tr")).to_have_count(100)
        page.get_by_role("button", name="Next").click()
        expect(page.get_by_text("101 to 200")).to_be_visible()
        page.get_by_label("Search").fill("09998")
        expect(page.locator("tbody tr")).to_have_count(1)
        page.get_by_role("link", name="topic-09998").click()
        expect(page.get_by_role("heading", name="topic-09998")).to_be_visible()
        browser.close()
