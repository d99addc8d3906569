"""What people do with the pages, in a real browser."""

from __future__ import annotations

import json
import os
import re
import threading
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

import gevent
import pytest
from console.asking import SECONDS
from console.browsing import launch

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka.console import limits
from dafka.console.desk import Desk
from dafka.console.records import searching

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = sync_api.expect
SEARCHED = int(os.environ.get("DAFKA_TEST_SEARCHED", "0"))  # records of a long search
AXE = os.environ.get("DAFKA_TEST_AXE")  # the file axe.min.js

pytestmark = pytest.mark.xdist_group("browser")  # one browser for all of them


@pytest.fixture(scope="module")
def browser():
    expect.set_options(timeout=SECONDS * 1000)
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


@pytest.fixture
def page(context, shared, read_only):
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)
    own = (shared.console, read_only.url)
    page.on("request", lambda one: None if one.url.startswith(own) else problems.append(one.url))
    yield page
    page.close()
    assert [one for one in problems if not one.startswith(("data:", "Failed to load resource"))] == []


@pytest.fixture
def topic(shared):
    name = f"t-{uuid4()}"
    shared.create_topic(name, 3)
    return name


def test_a_topic_is_found_and_opened_with_the_keyboard(page, shared, topic):
    page.goto("/topics")
    expect(page.get_by_label("Search")).to_be_focused()
    page.keyboard.type(topic)
    page.wait_for_url(f"**search={topic}")
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name=topic).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=topic)).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Search")).to_have_value(topic)


def test_a_topic_is_created_changed_and_deleted(page, shared):
    name = f"t-{uuid4()}"
    page.goto("/topics")
    page.get_by_role("button", name="New topic").click()
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Partitions").fill("4")
    page.get_by_label("Settings").fill("retention.ms=60000")
    page.get_by_role("button", name="Create").click()
    page.get_by_role("link", name="Settings").click()
    page.get_by_label("only what is set").check()
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("button", name="Change retention.ms").click()
    page.get_by_label("Value").fill("soon")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_role("status").get_by_text("InvalidConfigurationError")).to_be_visible()
    page.get_by_role("button", name="Unset retention.ms").click()
    expect(page.get_by_text("No setting is like that.")).to_be_visible()
    page.get_by_role("link", name="Partitions").click()
    expect(page.get_by_role("row")).to_have_count(5)
    page.get_by_role("button", name="Delete the topic").click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text(f"Topic {name} is deleted.")).to_be_visible()
    assert name not in shared.topics()


def test_values_are_never_markup(page, shared, topic):
    attack = "<img src=x onerror=\"document.title='bad'\"><script>document.title='bad'</script>"
    shared.preload(
        topic, [{"key": attack, "value": json.dumps({attack: attack}), "headers": [(attack, b"x")]}]
    )
    page.goto(f"/topics/{topic}")
    page.locator("#records summary").first.click()
    expect(page.locator("#records .box")).to_contain_text("onerror")
    assert page.locator("#records img, #records script").count() == 0 and page.title() != "bad"


def test_octets_tombstones_and_large_values_are_shown_as_what_they_are(page, shared, topic):
    exact = '{"large": 12345678901234567890, "float": 741.0}'
    shared.preload(
        topic,
        [("k1", b"\x00\xff\x10"), ("k2", None), ("k3", "a\u202eb\x1b"), ("k4", "x" * 9000), ("k5", exact)],
    )
    page.goto(f"/topics/{topic}")
    expect(page.locator("#records article")).to_have_count(5)
    records = page.locator("#records")
    expect(records.get_by_text("00 ff 10")).to_be_visible()
    expect(records.get_by_text("tombstone")).to_be_visible()
    expect(records.get_by_text("a⟨U+202E⟩b␛")).to_be_visible()
    page.locator("article", has_text="k5").locator("summary").first.click()
    expect(page.locator(".json")).to_contain_text("12345678901234567890")
    expect(page.locator(".json")).to_contain_text("741.0")
    page.locator("article", has_text="k4").locator("summary").click()
    page.get_by_role("button", name=re.compile("Load up to 4 MB")).click()
    expect(page.locator("pre", has_text=re.compile("^x{9000}$"))).to_be_visible()


def test_records_are_written_and_searched(page, shared, topic):
    shared.preload(topic, [(f"k{n}", json.dumps({"n": n})) for n in range(1000)])
    page.goto(f"/topics/{topic}")
    page.get_by_role("button", name="Write", exact=True).click()
    page.get_by_label("Key (empty").fill("mine")
    page.get_by_label("Value", exact=True).fill('{"n": 5000}')
    page.get_by_role("button", name="Write", exact=True).last.click()
    expect(page.locator("#records article").first).to_contain_text("mine")
    search = page.get_by_role("textbox", name="Search")
    search.fill("value.n > 998")
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_text("2 found in 1,001 of 1,001 records.")).to_be_visible()
    expect(page.locator("#records article")).to_have_count(2)
    assert "expression=value.n+%3E+998" in page.url  # a link that can be shared
    page.reload()
    expect(page.get_by_text("2 found in")).to_be_visible()
    search.fill("key ==")
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_text("something is missing at the end")).to_be_visible()


def test_a_search_shows_its_progress_and_is_stopped(page, shared, topic, monkeypatch):
    """The stop ends the search in the console, not only in the page."""
    go_on, ended, asked = threading.Event(), threading.Event(), []
    fetch, streaming = searching.fetch, Desk.streaming

    def waiting(*where):
        asked.append(where)
        while len(asked) > 2 and not go_on.is_set():
            gevent.sleep(0.01)
        gevent.sleep(1.1 * searching.PROGRESS_SECONDS)
        return fetch(*where)

    @contextmanager
    def noticed(desk):
        try:
            with streaming(desk):
                yield
        finally:
            ended.set()

    monkeypatch.setattr(limits, "FETCH_OCTETS", 1)  # a batch at a time
    monkeypatch.setattr(searching, "fetch", waiting)
    monkeypatch.setattr(Desk, "streaming", noticed)
    for _ in range(400):
        shared.preload(topic, [b"x"] * 10, partition=0)
    page.goto(f"/topics/{topic}?from=earliest")
    stop_search(page, 4000, go_on.set)
    assert ended.wait(SECONDS) and len(asked) < 400


@pytest.mark.skipif(not SEARCHED, reason="DAFKA_TEST_SEARCHED is a number of records to search, as 1000000")
def test_a_search_through_very_many_records_is_stopped(page, shared, topic):
    for begin in range(0, SEARCHED, 50_000):
        shared.preload(topic, (b"%0100d" % one for one in range(begin, begin + 50_000)), partition=0)
    page.goto(f"/topics/{topic}")
    stop_search(page, -(-SEARCHED // 50_000) * 50_000, lambda: None)


def stop_search(page, total, stopped):
    """Search for what is nowhere, see how it comes on, and stop it: it says how far it has come."""
    page.get_by_role("textbox", name="Search").fill("value.x == 1")
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_text(re.compile(rf"0 found in [1-9][\d,]* of {total:,} records"))).to_be_visible()
    page.get_by_role("button", name="Stop").click()
    words = page.get_by_text(re.compile(r"records\. Stopped\.$"))
    expect(words).to_be_visible()
    stopped()
    scanned = re.search(r"in ([\d,]+) of", words.inner_text())[1]
    assert 0 < int(scanned.replace(",", "")) < total


def test_pages_of_records_lead_to_each_other(page, shared, topic):
    shared.preload(topic, [{"value": f"v{n}", "timestamp": 1000 + n} for n in range(50)], partition=0)
    page.goto(f"/topics/{topic}?limit=20")
    expect(page.locator("#records article").first).to_contain_text("v49")
    page.get_by_role("button", name="Older").click()
    expect(page.locator("#records article").first).to_contain_text("v29")
    page.get_by_role("button", name="Newer").click()
    expect(page.locator("#records article").first).to_contain_text("v49")


def test_a_topic_is_followed_while_much_comes(page, shared, topic):
    page.goto(f"/topics/{topic}")
    page.get_by_role("button", name="Follow live").click()
    expect(page.get_by_text("Following:")).to_be_visible()
    page.wait_for_timeout(300)
    enough = threading.Event()

    def write():
        producer = KafkaProducer(bootstrap_servers=shared.bootstrap_servers, linger_ms=5)
        number = 0
        while not enough.wait(0.1):
            for _ in range(100):
                producer.send(topic, f"v{number}".encode())
                number += 1
        producer.close()

    writing = threading.Thread(target=write)
    writing.start()
    try:
        shown = page.locator("#records article")
        expect(page.get_by_text(re.compile(r"[1-9],\d\d\d shown"))).to_be_visible()
        assert shown.count() <= 500
        page.get_by_role("button", name="Stop").click()
    finally:
        enough.set()
        writing.join()


def test_a_group_is_reset_after_a_preview(page, shared, topic):
    shared.preload(topic, [b"x"] * 10, partition=0)
    consumer = KafkaConsumer(
        topic, bootstrap_servers=shared.bootstrap_servers, group_id=topic, auto_offset_reset="earliest"
    )
    while not consumer.poll(100):
        pass
    page.goto(f"/group?name={topic}")
    expect(page.get_by_text("1 members")).to_be_visible()
    consumer.close()
    expect(page.get_by_text("0 members, lag 0")).to_be_visible()
    page.get_by_role("button", name="Reset offsets").click()
    page.get_by_label("To:").fill("by -4")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("dialog").get_by_role("row")).to_have_count(2)
    assert shared.committed(topic)[topic, 0] == 10
    page.get_by_role("button", name="Change them").click()
    expect(page.get_by_text("0 members, lag 4")).to_be_visible()
    assert shared.committed(topic)[topic, 0] == 6


def test_the_overview_draws_what_comes(page, shared, topic):
    page.goto("/")
    expect(page.locator("canvas").first).to_be_visible()
    shared.preload(topic, [b"x"] * 1000)
    expect(page.locator("figcaption", has_text=re.compile("Records a second [1-9]"))).to_be_visible()
    expect(page.get_by_text("[object")).to_have_count(0)


def test_a_read_only_console_has_no_buttons_that_change(page, read_only, topic):
    for path in ("/topics", f"/topics/{topic}", f"/topics/{topic}/partitions", f"/topics/{topic}/settings"):
        page.goto(read_only.url + path)
        expect(page.get_by_text("read-only")).to_be_visible()
        expect(page.locator("main:not([aria-busy])")).to_be_visible()
        for name in ("New topic", "Write", "Delete the topic", "Change"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)
        if "settings" not in path:
            expect(page.get_by_text("false")).to_have_count(0)


@pytest.mark.skipif(AXE is None, reason="DAFKA_TEST_AXE names the file axe.min.js of axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_axe_finds_nothing_serious(page, shared, topic, scheme, width):
    shared.preload(topic, [("k", '{"a": [1, {"b": null}]}')])
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    axe = Path(AXE).read_text()
    for path in (
        "/",
        "/topics",
        f"/topics/{topic}",
        f"/topics/{topic}/settings",
        "/groups",
        "/transactions",
        "/access",
    ):
        page.goto(path)
        expect(page.locator("main:not([aria-busy])")).to_be_visible()
        if path == f"/topics/{topic}":
            page.locator("#records summary").first.click()
        page.evaluate(axe)
        found = page.evaluate("axe.run()")["violations"]
        serious = [one for one in found if one["impact"] in ("serious", "critical")]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in serious] == [], path
