"""The mesh, the overlay and ZPER in a real browser; and no page has obstacles."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from console.asking import SECONDS

from dafka import Consumer, Producer, Store
from dafka.console import Console, ConsoleOptions, NetworkOptions
from dafka.overlay import Endpoint
from dafka.testing import TestBroker
from dafka.zper import Reader, Writer, ZperOptions

expect = pytest.importorskip("playwright.sync_api", reason="playwright is not installed").expect
AXE = os.environ.get("DAFKA_TEST_AXE")  # the file axe.min.js
PATHS = (
    *("/", "/topics", "/topics/shown", "/topics/shown/partitions", "/topics/shown/settings", "/groups"),
    *("/transactions", "/access", "/overlay", "/zper"),
)

pytestmark = pytest.mark.xdist_group("browser")  # one browser for all of them


@pytest.fixture(scope="module")
def overlay():
    """Two endpoints that are peers; the console knows the first one."""
    with Endpoint(listen="127.0.0.1:0") as first, Endpoint(peers=[first.address]) as second:
        yield first, second


@pytest.fixture(scope="module")
def shared(overlay):
    """A broker with all that a console can show."""
    networks = NetworkOptions(overlay=[overlay[0].address])
    with TestBroker(console=ConsoleOptions(networks=networks), zper=ZperOptions()) as broker:
        yield broker


@pytest.fixture
def producer(shared):
    with Producer("hello", tower=shared.tower) as producer:
        yield producer


def send(producer, count):
    for number in range(count):
        producer.send(b"%d" % number)
    producer.flush(SECONDS)


def test_a_store_falls_behind_and_catches_up(page, shared, producer, tmp_path):
    with Store(tmp_path / "one", tower=shared.tower):
        late = Store(tmp_path / "two", tower=shared.tower)
        name = late.address[:8]
        send(producer, 10)
        page.goto("/mesh?search=hello")
        partition = page.get_by_role("row").filter(has_text=producer.address[:8])
        expect(partition.get_by_text(f"{name} to 10")).to_be_visible()
        node = page.get_by_role("row").filter(has=page.get_by_role("button", name=name, exact=True))
        expect(node.get_by_text("yes")).to_be_visible()
        late.close()
        send(producer, 50)
        expect(partition.get_by_text("(50 behind)")).to_be_visible()
        expect(node.get_by_text("away")).to_be_visible()
        expect(page.locator(".graph .away").filter(has_text=name)).to_be_visible()
        expect(page.locator(".graph .label.late")).to_have_text("\u221250")
        with Store(tmp_path / "two", tower=shared.tower):
            expect(partition.get_by_text(f"{name} to 60")).to_be_visible()
            expect(page.get_by_text("behind)")).to_have_count(0)
            expect(node.get_by_text("yes")).to_be_visible()


def test_a_node_is_chosen_with_the_keyboard_and_shows_its_metrics(page, shared, producer, tmp_path):
    with (
        Store(tmp_path / "one", tower=shared.tower) as store,
        Consumer(["hello"], tower=shared.tower, offset_reset="earliest"),
    ):
        send(producer, 10)
        page.goto("/mesh")
        drawn = page.locator(f'[data-id="node {store.address}"]')
        drawn.focus()
        page.keyboard.press("Enter")
        chosen = page.get_by_role("region", name="The chosen node")
        expect(chosen.get_by_role("heading", name=f"store {store.address}")).to_be_visible()
        expect(drawn).to_be_focused()  # although it was drawn anew
        chosen.get_by_text("Metrics").click()
        expect(chosen.get_by_role("row").filter(has_text="records_in").first).to_be_visible()
        assert f"node={store.address}" in page.url
        row = page.get_by_role("row").filter(has_text="consumer")
        expect(row.get_by_text("hello")).to_be_visible()


def test_the_overlay_shows_who_is_peered_and_the_path(page, overlay):
    first, second = map(str, (one.id for one in overlay))
    page.goto("/overlay")
    page.get_by_role("button", name=second[:8], exact=True).first.click()
    words = f"console → {first[:8]} → {second[:8]}"
    expect(page.get_by_role("region", name="The chosen node").get_by_text(words)).to_be_visible()
    expect(page.locator(".graph .edge.way")).to_have_count(1)


def test_zper_shows_its_writers_and_readers(page, shared):
    zper = shared.zper
    page.goto("/zper")
    expect(page.get_by_text("Nobody is connected.")).to_be_visible()
    with Writer("flights", zper.writer_address) as writer, Reader("flights", zper.reader_address) as reader:
        writer.send(b"UA-1545", b"departed")
        writer.flush(SECONDS)
        assert next(iter(reader)).frames
        for server in ("writer", "reader"):
            expect(page.get_by_role("row").filter(has_text=server).filter(has_text="flights")).to_be_visible()
        expect(page.locator(".graph")).to_contain_text("1 writer")


def test_networks_that_are_not_connected_have_no_page(page, read_only, overlay):
    page.goto(read_only.url)
    expect(page.get_by_role("link", name="Rights")).to_be_visible()
    for name in ("Mesh", "Overlay", "ZPER"):
        expect(page.get_by_role("link", name=name)).to_have_count(0)


def test_without_a_kafka_only_the_networks_have_pages(page, overlay):
    with Console(options=ConsoleOptions(networks=NetworkOptions(overlay=[overlay[0].address]))) as console:
        page.goto(console.url)
        expect(page.get_by_role("heading", name="Overlay")).to_be_visible()
        expect(page.get_by_role("navigation").get_by_role("link")).to_have_text(["Overlay"])
        page.goto(console.url + "topics")
        expect(page.get_by_role("alert")).to_have_text(re.compile("started without a Kafka"))


@pytest.mark.skipif(AXE is None, reason="DAFKA_TEST_AXE names the file axe.min.js of axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_axe_finds_nothing_serious(page, shared, producer, tmp_path, scheme, width):
    shared.preload("shown", [("k", '{"a": [1, {"b": null}]}')])
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 800})
    axe = Path(AXE).read_text()
    with Store(tmp_path / "one", tower=shared.tower) as store:
        send(producer, 10)
        for path in (*PATHS, f"/mesh?node={store.address}"):
            page.goto(path)
            expect(page.locator("main:not([aria-busy])")).to_be_visible()
            if path == "/topics/shown":
                page.locator("#records summary").first.click()
            if path.startswith("/mesh"):
                expect(page.get_by_role("region", name="The chosen node")).to_be_visible()
            page.evaluate(axe)
            found = page.evaluate("axe.run()")["violations"]
            serious = [one for one in found if one["impact"] in ("serious", "critical")]
            assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in serious] == [], path
