"""Steps of people with the pages, in a real browser."""

from __future__ import annotations

import base64
import json
import os
import re
import threading
import time
from contextlib import contextmanager
from datetime import datetime
from uuid import uuid4

import gevent
import msgpack
import pytest
from console.asking import SECONDS
from timing import until

from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka.share import ShareConsumer
from dafka.console import limits
from dafka.console.desk import Desk
from dafka.console.records import batches, searching

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
expect = sync_api.expect
SEARCHED = int(os.environ.get("DAFKA_TEST_SEARCHED", "0"))  # records of a long search
AXE = os.environ.get("DAFKA_TEST_AXE")  # the file axe.min.js

pytestmark = pytest.mark.xdist_group("browser")  # one browser for all of them


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
    page.get_by_role("button", name="Change retention.ms").click()
    page.get_by_label("Value").fill("7200000")
    page.get_by_role("button", name="Set", exact=True).click()
    expect(page.get_by_role("row").filter(has_text="retention.ms")).to_contain_text("7200000 (2 h)")
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
    page.get_by_role("dialog").get_by_role("button", name="Write", exact=True).click()
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


def test_a_record_is_written_again_as_it_was(page, shared, topic):
    headers = [("h", b"\xff"), ("null", None), ("a=b", b"1\n2")]
    like = {"key": b"\x00k", "value": "ä".encode() * 3000, "headers": headers, "partition": 1}
    shared.preload(topic, [like, {"key": "gone", "value": None}])
    page.goto(f"/topics/{topic}")
    for key in ("␀k", "gone"):
        page.locator("article", has_text=key).first.locator("summary").first.click()
        page.get_by_role("button", name="Write it again").click()
        page.get_by_role("dialog").get_by_role("button", name="Write", exact=True).click()
        expect(page.get_by_role("status").get_by_text("Written at")).to_be_visible()
        expect(page.locator("article", has_text=key)).to_have_count(2)
        page.reload()
    first, second = [one for one in shared.records(topic) if one.partition == 1 and one.key == b"\x00k"]
    assert (first.value, first.headers) == (second.value, second.headers) == (like["value"], headers)
    assert [one.value for one in shared.records(topic) if one.key == b"gone"] == [None, None]


def test_many_records_are_written_and_decoded(page, shared, topic):
    page.goto(f"/topics/{topic}")
    page.get_by_role("button", name="Write many").click()
    packed = base64.b64encode(msgpack.packb({"<b>": ["<i>x</i>", 2**63]})).decode()
    page.get_by_label("Lines").fill(
        '{"key": "k1", "value": {"n": 1}}\n\n' + json.dumps({"value_base64": packed})
    )
    page.get_by_role("dialog").get_by_role("button", name="Write", exact=True).click()
    expect(page.get_by_text("2 records are written.")).to_be_visible()
    record = page.locator("article", has_text="MessagePack")
    record.locator("summary").first.click()
    expect(record.locator(".json")).to_contain_text("<i>x</i>")
    expect(record.locator(".json")).to_contain_text("9223372036854775808")
    page.get_by_label("Decode values").fill("none")
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_text("MessagePack")).to_have_count(0)
    assert "decode=none" in page.url


def test_a_search_shows_its_progress_and_is_stopped(page, shared, topic, monkeypatch):
    """The stop ends the search in the console, not only in the page."""
    go_on, ended, asked = threading.Event(), threading.Event(), []
    fetch, streaming = batches.fetch, Desk.streaming

    def waiting(*where, **how):
        asked.append(where)
        while len(asked) > 2 and not go_on.is_set():
            gevent.sleep(0.01)
        gevent.sleep(1.1 * searching.PROGRESS_SECONDS)
        return fetch(*where, **how)

    @contextmanager
    def noticed(desk):
        try:
            with streaming(desk):
                yield
        finally:
            ended.set()

    monkeypatch.setattr(limits, "FETCH_OCTETS", 1)  # a batch at a time
    monkeypatch.setattr(batches, "fetch", waiting)
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


def test_a_search_has_a_range_a_time_and_a_key(page, shared, topic):
    """Times are copied from one record to the fields, and are UTC there too, whatever the zone of anybody."""
    first = (int(time.time()) - 3600) * 1000
    rows = [{"key": f"k{n % 3}", "value": f"v{n}", "timestamp": first + 1000 * n} for n in range(9)]
    shared.preload(topic, rows, partition=0)
    page.goto(f"/topics/{topic}?from=earliest")
    shown = page.locator("#records article")
    expect(shown).to_have_count(9)
    begin, end = (shown.nth(row).locator("time").inner_text() for row in (6, 2))
    assert datetime.fromisoformat(begin.replace("Z", "+00:00")).timestamp() == first // 1000 + 2
    page.get_by_label("From").fill(begin.rstrip("Z"))
    page.get_by_label("Search up to").fill(end)
    page.get_by_role("textbox", name="Search", exact=True).fill(f'timestamp > "{begin}" and not v4')
    page.get_by_role("button", name="Read").click()
    expect(page.get_by_text("2 found in 4 of 4 records.")).to_be_visible()
    expect(shown).to_contain_text(["v3", "v5"])
    page.reload()  # the address has all of it
    expect(page.get_by_text("2 found in 4 of 4 records.")).to_be_visible()
    shown.first.locator("summary").click()
    page.get_by_role("link", name="All with this key").click()
    expect(shown).to_contain_text(["v0", "v3", "v6"])
    expect(page.get_by_role("textbox", name="Search", exact=True)).to_have_value('key == "k0"')


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
        assert page.url.endswith("?live=true")
        page.reload()  # a link to what comes
        expect(page.get_by_text(re.compile(r"[1-9],\d\d\d shown"))).to_be_visible()
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("Stopped.")).to_be_visible()
        assert "live" not in page.url
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
    expect(page.get_by_text("1 member,")).to_be_visible()
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


@contextmanager
def reading(shared, topic, client):
    """A member of the group that has the topic's name, which polls until the end."""
    enough = threading.Event()
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=shared.bootstrap_servers,
        group_id=topic,
        client_id=client,
        heartbeat_interval_ms=100,
    )

    def poll():
        while not enough.is_set():
            consumer.poll(50)
        consumer.close()

    polling = threading.Thread(target=poll)
    polling.start()
    try:
        yield
    finally:
        enough.set()
        polling.join()


def test_a_rebalance_is_seen(page, shared, topic):
    owned = page.get_by_role("row").filter(has=page.get_by_role("link", name=topic))
    with reading(shared, topic, "<b>one</b>"):
        page.goto("/groups")
        page.get_by_label("Search").fill(topic)
        page.get_by_role("link", name=topic).click()
        expect(page.get_by_text("1 member,")).to_be_visible()
        expect(owned.filter(has_text="<b>one</b>")).to_have_count(3)
        with reading(shared, topic, "two"):
            expect(page.get_by_text("2 members")).to_be_visible()
            expect(page.get_by_role("cell", name=re.compile(rf"^{topic} \d"))).to_have_count(2)
            expect(owned.filter(has_text="two")).not_to_have_count(0)
            expect(owned.filter(has_text="<b>one</b>")).not_to_have_count(3)
        expect(owned.filter(has_text="<b>one</b>")).to_have_count(3)
        expect(page.get_by_role("cell", name=f"{topic} 0\u20132", exact=True)).to_be_visible()


def test_an_open_transaction_that_holds_up_readers_is_seen_and_ended(page, shared, topic):
    producer = KafkaProducer(bootstrap_servers=shared.bootstrap_servers, transactional_id=topic)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"x", partition=1).get(SECONDS)
    shared.preload(topic, [b"y"] * 4, partition=1)
    page.goto(f"/topics/{topic}/partitions")
    expect(page.get_by_text("holds up 5 records")).to_be_visible()
    page.get_by_role("link", name=topic).last.click()
    expect(page.get_by_text(f"{topic}-1: 5 records from 0")).to_be_visible()
    page.get_by_role("button", name="Abort").click()
    page.get_by_role("dialog").get_by_role("button", name="Abort").click()
    expect(page.get_by_text("is aborted")).to_be_visible()
    expect(page.get_by_text("5 records from")).to_have_count(0)
    producer.close(0)


def test_states_of_delivery_are_seen(page, shared, is_apache, topic):
    shared.preload(topic, [b"x"] * 7, partition=0)
    configs = {"bootstrap_servers": shared.bootstrap_servers, "group_id": topic}
    with ShareConsumer(topic, share_acknowledgement_mode="explicit", **configs) as consumer:
        consumer.poll(0)
        until(lambda: consumer.assignment())
        until(lambda: consumer.poll(0) or shared.preload(topic, [b"new"], partition=0))
        page.goto(f"/group?name={topic}")
        expect(page.get_by_role("heading", name="States of delivery")).to_be_visible()
        row = page.get_by_role("row").filter(has_text="\u00d7 1")
        expect(row).to_contain_text(topic)


def test_the_overview_draws_what_comes(page, shared, topic):
    page.goto("/")
    expect(page.locator("canvas").first).to_be_visible()
    shared.preload(topic, [b"x"] * 1000)
    expect(page.locator("figcaption", has_text=re.compile("Records a second (in )?[1-9]"))).to_be_visible()
    expect(page.get_by_text("[object")).to_have_count(0)


def test_a_curve_of_one_moment_shows_the_minute_before_it(page, shared):
    page.goto("/health")
    page.add_script_tag(url="/static/vendor/uPlot.iife.min.js")
    drawn = page.evaluate(
        """async () => {
            const { Plot } = await import("/static/plot.js");
            const plot = new Plot(document.body, "Lag", ["lag"]);
            plot.add(1000, [5]);
            await new Promise(requestAnimationFrame);
            const { min, max } = plot.plot.scales.x;
            plot.end();
            return [min, max];
        }"""
    )
    assert drawn == [940, 1000]


def test_a_read_only_console_has_no_buttons_that_change(page, read_only, topic):
    for path in ("/topics", f"/topics/{topic}", f"/topics/{topic}/partitions", f"/topics/{topic}/settings"):
        page.goto(read_only.url + path)
        expect(page.get_by_text("read-only")).to_be_visible()
        expect(page.locator("main:not([aria-busy])")).to_be_visible()
        for name in ("New topic", "Write", "Delete the topic", "Change"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)
        if "settings" not in path:
            expect(page.get_by_text("false")).to_have_count(0)
