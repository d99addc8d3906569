"""Records that are larger, broken or other than expected, in a real browser: shown as what they are."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest
from console.asking import SECONDS
from console.registries import framed, serving

import dafka.broker
from dafka.console import Console, ConsoleOptions, SchemaRegistry

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
pytestmark = pytest.mark.xdist_group("browser")  # one browser for all of them

LARGE = 10_000_000  # octets
SETTINGS = {"max.message.bytes": "12000000"}


@pytest.fixture
def topic(shared):
    name = f"t-{uuid4()}"
    shared.create_topic(name, 1, SETTINGS)
    return name


def test_ten_megabytes_are_cut_and_can_be_had_whole(page, shared, topic):
    value = b"begin " + b"x" * (LARGE - 10) + b" end"
    shared.preload(topic, [("small", b"before"), ("large", value), ("small", b"behind")])
    page.goto(f"/topics/{topic}")
    expect(page.locator("#records article")).to_have_count(3)
    large = page.locator("article", has_text="10 MB")
    assert len(large.inner_text()) < 1000
    large.locator("summary").click()
    expect(large.get_by_text(re.compile("^begin x{4000}"))).to_be_visible()
    large.get_by_role("button", name="Load up to 4 MB of 10 MB").click()
    expect(large.get_by_text(re.compile("^begin x{1000000}"))).to_be_visible()
    with page.expect_download() as download:
        large.get_by_role("link", name="Download the value").click()
    assert download.value.path().read_bytes() == value
    large.get_by_role("button", name="Write it again").click()
    expect(page.get_by_text("It has more than 4 MB")).to_be_visible()


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (b'{"half": ', '{"half": '),
        (b'{"a": 1} and more', '{"a": 1} and more'),
        (b"[" * 5000, "[[[[[[[["),
        (b'{"a": NaN}', '{"a": NaN}'),
        (b'{"a": 1, "a": 2}', '"a"'),
        (b'"\\ud800"', "\\ud800"),
        (b"\xff\xfe{\x00}\x00", "ff fe 7b 00 7d 00"),
        (b"bell\x07 escape\x1b[31m nul\x00", "bell␇ escape␛[31m nul␀"),
        ("right to left \u202e mark".encode(), "right to left ⟨U+202E⟩ mark"),
        (b"</pre><script>alert(1)</script>", "</pre><script>alert(1)</script>"),
        (b"", "empty"),
    ],
    ids=range(11),
)
def test_broken_records_are_shown_as_text_json_and_octets(page, shared, topic, value, seen):
    """As text, JSON and octets, and folded or not."""
    shared.preload(topic, [value], partition=0)
    page.goto(f"/topics/{topic}")
    record = page.locator("#records article")
    record.locator("summary").first.click()
    inside = record.locator(".inside")
    expect(inside).to_contain_text(seen)
    for way in ("text", "json", "hex"):
        page.get_by_label("Show as").select_option(way)
        record.locator("summary").first.click()
        expect(inside).to_contain_text("Value")
        if way == "hex" and value:
            expect(inside).to_contain_text(value[:1].hex())


def test_unknown_schemas_are_told_of(page, shared, topic):
    with serving() as registry:
        registry.add(1, {"type": "record", "name": "Order", "fields": [{"name": "amount", "type": "long"}]})
        registry.add(3, b"<html>no registry</html>")
        values = [framed(1, b"\x0e"), framed(2, b"\x0e"), framed(3, b"\x0e"), framed(1, b"\xff" * 20)]
        shared.preload(topic, values, partition=0)
        connection = dafka.broker.connect(shared.bootstrap_servers, SECONDS)
        with Console(connection, ConsoleOptions(schema_registry=SchemaRegistry(registry.url))) as console:
            page.goto(f"{console.url}topics/{topic}")
            rows = page.locator("#records article")
            for row, offset in enumerate([3, 2, 1]):  # the newest one comes first
                expect(rows.nth(row)).to_contain_text(f"0:{offset}")
                expect(rows.nth(row).get_by_text("not decoded")).to_be_visible()
            expect(rows.nth(3)).to_contain_text('{"amount":7}')
            rows.nth(2).locator("summary").click()
            expect(rows.nth(2)).to_contain_text("schema 2")
            expect(rows.nth(2)).to_contain_text("00 00 00 00 02 0e")
            rows.nth(1).locator("summary").click()
            expect(rows.nth(1)).to_contain_text("schema 3")
