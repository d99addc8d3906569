"""Records through the API: pages, single ones, new ones, searches, downloads."""

from __future__ import annotations

import base64
import csv
import io
import json
from contextlib import closing
from uuid import uuid4

import pytest
from kafka import KafkaProducer

from dafka.console import limits
from dafka.console.records import batches
from dafka.protocol.batch_reader import decode_batch


@pytest.fixture
def topic(shared):
    name = f"t-{uuid4()}"
    shared.create_topic(name, 3)
    return name


def rows(page):
    return [(one["partition"], one["offset"], one["value"]["text"]) for one in page["records"]]


def test_pages_lead_from_the_first_to_the_last_record_and_back(client, shared, topic):
    records = [{"value": str(n), "timestamp": 1000 + n, "partition": n % 3} for n in range(20)]
    shared.preload(topic, records)
    path, seen, pages = f"/api/topics/{topic}/records", [], []
    page = client.get(path, from_="earliest", limit=7)
    while True:
        seen += rows(page)
        pages.append(rows(page))
        if page["next"] is None:
            break
        page = client.get(path, after=page["next"], limit=7)
    assert [value for _, _, value in seen] == [str(n) for n in range(20)]
    back = client.get(path, before=page["previous"], limit=7)
    assert rows(back) == pages[-2]
    assert client.get(path, before=back["previous"], limit=7)["previous"] is None
    assert [value for _, _, value in rows(client.get(path, limit=2))] == ["18", "19"]


def test_places_and_partitions_choose_what_is_shown(client, shared, topic):
    shared.preload(topic, [{"value": str(n), "timestamp": 10**12 + n * 1000} for n in range(9)], partition=1)
    path = f"/api/topics/{topic}/records"
    assert rows(client.get(path, partitions="1", from_="7")) == [(1, 7, "7"), (1, 8, "8")]
    assert rows(client.get(path, partitions="1", from_="-1")) == [(1, 8, "8")]
    assert rows(client.get(path, from_="2001-09-09T01:46:48Z")) == [(1, 8, "8")]
    assert rows(client.get(path, partitions="0,2", from_="earliest")) == []
    assert client.ask("GET", path, partitions="5").status == 400
    assert client.ask("GET", path, partitions="x").status == 400
    assert client.ask("GET", path, after="x").status == 400
    assert client.ask("GET", path, from_="soon").status == 409


@pytest.mark.parametrize(
    "value",
    [
        b"<script>alert(1)</script>",
        b"\x00\x1b[2J\r\n",
        b'{"broken": ',
        b"\xff\xfe\x00",
        "\u202e\U0001f600".encode(),
    ],
)
def test_values_are_what_they_are(client, shared, topic, value):
    shared.preload(topic, [(b"k", value)], partition=0)
    (record,) = client.get(f"/api/topics/{topic}/records")["records"]
    shown = record["value"]
    found = shown["text"].encode() if "text" in shown else base64.b64decode(shown["base64"])
    assert found == value and shown["size"] == len(value) and not shown["cut"]


def test_tombstones_headers_and_batches_are_told(client, shared, topic):
    shared.preload(topic, [{"key": "k", "headers": [("h", b"v"), ("n", None)]}], partition=0)
    (record,) = client.get(f"/api/topics/{topic}/records")["records"]
    assert record["value"] is None and record["key"]["text"] == "k"
    assert [(one["name"], one["value"] and one["value"]["text"]) for one in record["headers"]] == [
        ("h", "v"),
        ("n", None),
    ]
    assert record["batch"]["records"] == 1 and record["batch"]["compression"] is None


def test_a_large_value_is_cut_and_can_be_had_whole(client, shared):
    topic = f"t-{uuid4()}"
    shared.create_topic(topic, 1, {"max.message.bytes": str(12_000_000)})
    value = "ä".encode() * 5_000_000  # ten megabytes, cut within a character
    shared.preload(topic, [b"x" + value])
    page = client.ask("GET", f"/api/topics/{topic}/records")
    assert len(page.content) < 20_000
    shown = page.json["records"][0]["value"]
    assert shown["cut"] and shown["size"] == len(value) + 1 and shown["text"].startswith("xää")
    one = client.get(f"/api/topics/{topic}/records/0/0")["value"]
    assert one["cut"] and len(one["text"]) > 1_000_000
    whole = client.ask("GET", f"/api/topics/{topic}/records/0/0/value")
    assert whole.content == b"x" + value
    assert whole.headers["Content-Disposition"] == "attachment"
    assert client.ask("GET", f"/api/topics/{topic}/records/0/1").status in (404, 409)


def test_no_page_passes_over_large_records(client, shared, topic, monkeypatch):
    monkeypatch.setattr(limits, "PAGE_OCTETS", 100_000)
    monkeypatch.setattr(limits, "FETCH_OCTETS", 10_000)
    values = [f"{n}" + "x" * 20_000 for n in range(20)]
    shared.preload(
        topic, [{"value": one, "timestamp": 1000 + n, "partition": n % 3} for n, one in enumerate(values)]
    )
    path = f"/api/topics/{topic}/records"

    def numbers(page):
        return [int(one["value"]["text"].rstrip("x")) for one in page["records"]]

    page = client.get(path, limit=20)
    assert 19 in numbers(page)
    seen = numbers(page)
    while page["previous"] is not None:
        page = client.get(path, limit=20, before=page["previous"])
        seen = numbers(page) + seen
    assert sorted(seen) == list(range(20))
    seen = numbers(page)
    while page["next"] is not None:
        page = client.get(path, limit=20, after=page["next"])
        seen += numbers(page)
    assert sorted(seen) == list(range(20))


def test_small_batches_that_grow_large_are_not_all_in_memory(local, shared, topic, monkeypatch):
    monkeypatch.setattr(limits, "PAGE_OCTETS", 1_000_000)
    decoded = []

    def decode(batch, **options):
        decoded.append(len(batch))
        return decode_batch(batch, **options)

    monkeypatch.setattr(batches, "decode_batch", decode)
    host = shared.bootstrap_servers
    with closing(KafkaProducer(bootstrap_servers=host, compression_type="gzip", batch_size=0)) as producer:
        for _ in range(30):
            producer.send(topic, bytes(500_000), partition=0)
            producer.flush()
    path = f"/api/topics/{topic}/records"
    page = local.get(path, from_="earliest", limit=30)
    assert 2 <= len(page["records"]) <= 3 and page["next"] and len(decoded) <= 4
    seen = len(page["records"])
    while page["next"] is not None:
        page = local.get(path, limit=30, after=page["next"])
        seen += len(page["records"])
    assert seen == 30
    found = local.ask("GET", f"/api/topics/{topic}/search").events
    events = [content for name, content in found if name == "found"]
    assert sum(len(one["records"]) for one in events) == 30 and all(
        len(one["records"]) < 30 for one in events
    )


def test_records_are_written_and_come_back(client, shared, topic):
    new = [
        {"key": "k", "value": {"a": 1}, "headers": {"h": "v"}, "timestamp": 5},
        {"value_base64": "/w==", "partition": 2},
        {"key": "k", "value": None},
    ]
    answer = client.ask("POST", f"/api/topics/{topic}/records", {"records": new, "compression": "gzip"})
    assert answer.status == 200 and sum(one["records"] for one in answer.json["written"]) == 3
    found = sorted(shared.records(topic), key=lambda one: (one.value or b"", one.key or b""))
    assert [one.value for one in found] == [None, b'{"a":1}', b"\xff"]
    assert found[1].headers == [("h", b"v")] and found[1].timestamp == 5
    assert found[0].partition == found[1].partition and found[2].partition == 2
    refused = client.ask("POST", f"/api/topics/{topic}/records", {"records": [{"valeu": 1}]})
    assert refused.status == 400 and "'valeu' is not a field" in refused.json["message"]


def test_transactions_are_marked(client, shared, topic):
    from compat.kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=shared.bootstrap_servers, transactional_id=topic)
    producer.init_transactions()
    for value, end in ((b"1", producer.commit_transaction), (b"2", producer.abort_transaction)):
        producer.begin_transaction()
        producer.send(topic, value, partition=0).get(100)
        end()
    producer.begin_transaction()
    producer.send(topic, b"3", partition=0).get(100)
    page = client.get(f"/api/topics/{topic}/records", from_="earliest")
    assert [(one["value"]["text"], one["transaction"]) for one in page["records"]] == [
        ("1", "committed"),
        ("2", "aborted"),
        ("3", "open"),
    ]
    assert page["records"][0]["producer"]["sequence"] == 0
    (row,) = client.get("/api/transactions", search=topic)["transactions"]
    assert row["state"] == "Ongoing" and row["partitions"] == [[topic, 0]]
    (begun,) = row["begun"]
    assert begun["holds"] and (begun["from"], begun["last_stable"], begun["end"]) == (4, 4, 5)
    (held,) = client.get(f"/api/topics/{topic}/transactions")["transactions"]
    assert held["id"] == topic and held["holds"] and held["started"]
    body = {"partition": 0, "producer_id": held["producer_id"], "epoch": held["epoch"]}
    assert "abort that one" in client.ask("POST", f"/api/topics/{topic}/abort", body).json["message"]
    assert client.ask("POST", "/api/transaction/abort", id=topic).status == 200
    assert client.get(f"/api/topics/{topic}/records", from_="4")["records"][0]["transaction"] == "aborted"
    producer.close()


def test_a_search_finds_with_progress(client, shared, topic):
    shared.preload(topic, [(str(n), json.dumps({"n": n})) for n in range(5000)])
    answer = client.ask("GET", f"/api/topics/{topic}/search", expression="value.n >= 4990 and key != 4995")
    events = answer.events
    found = [one["key"]["text"] for name, event in events if name == "found" for one in event["records"]]
    assert sorted(found, key=int) == [str(n) for n in range(4990, 5000) if n != 4995]
    assert events[-1] == ("end", {"scanned": 5000, "total": 5000, "found": 9, "full": False})
    bounded = client.ask("GET", f"/api/topics/{topic}/search", limit=3).events
    assert bounded[-1][1]["full"] and bounded[-1][1]["found"] == 3
    refused = client.ask("GET", f"/api/topics/{topic}/search", expression='key == "')
    assert refused.status == 409 and refused.json["error"] == "ExpressionError"


def test_downloads_have_everything(client, shared, topic):
    shared.preload(topic, [(b"k", b"=1+1"), (b"\xff", None)], partition=0)
    answer = client.ask("GET", f"/api/topics/{topic}/download", format="jsonl")
    lines = [json.loads(line) for line in answer.content.splitlines()]
    assert [(one.get("key"), one.get("value")) for one in lines] == [("k", "=1+1"), (None, None)]
    assert lines[1]["key_base64"] == "/w=="
    text = client.ask("GET", f"/api/topics/{topic}/download", format="csv").content.decode()
    assert text.splitlines()[0] == "partition,offset,timestamp,key,value,headers"
    assert ",k,'=1+1," in text  # no formula for a spreadsheet


def test_downloads_of_large_records_are_like_those_of_small_ones(client, shared):
    topic = f"t-{uuid4()}"
    shared.create_topic(topic, 1, {"max.message.bytes": "4000000"})
    for size in (1, 200_000):
        value = b'="\xff\n,' * size
        shared.preload(topic, [{"key": "k" * size, "value": value, "headers": [("h", b"\xc3\xa9" * size)]}])
        shared.preload(topic, [{"value": "{}" * size}, ("k", "\u20ac" * size)])
    content = client.ask("GET", f"/api/topics/{topic}/download", format="jsonl").content
    small, _, _, large, _, euros = map(json.loads, content.splitlines())
    assert base64.b64decode(large["value_base64"]) == 200_000 * base64.b64decode(small["value_base64"])
    assert large["key"] == "k" * 200_000 and euros["value"] == "\u20ac" * 200_000
    assert large["headers"] == [{"name": "h", "value": "\xe9" * 200_000}]
    content = client.ask("GET", f"/api/topics/{topic}/download", format="csv", decoded="true").content
    before = csv.field_size_limit(10_000_000)
    try:
        _, small, text, _, large, long, euros = csv.reader(io.StringIO(content.decode(), newline=""))
    finally:
        csv.field_size_limit(before)
    assert small[3:] == ["k", "'=\"\\xff\n,", '[["h", "\\u00e9"]]', "", ""]
    assert large[4] == "'" + 200_000 * small[4][1:] and json.loads(large[5]) == [["h", "\xe9" * 200_000]]
    assert [len(row) for row in (text, large, long)] == [8, 8, 8]
    assert long[3:] == ["", "{}" * 200_000, "[]", "", ""] and euros[4] == "\u20ac" * 200_000


def test_new_records_are_followed(client, shared, topic):
    with client.open("GET", f"/api/topics/{topic}/follow") as stream:
        assert stream.readline() == b"event: following\n"
        shared.preload(topic, [b"now"])
        while not (line := stream.readline()).startswith(b"event: records"):
            assert line
        event = json.loads(stream.readline().removeprefix(b"data: "))
    assert event["records"][0]["value"]["text"] == "now" and event["skipped"] == 0


def test_a_browser_that_follows_a_deleted_topic_is_told(client, topic, caplog):
    with client.open("GET", f"/api/topics/{topic}/follow") as stream:
        assert stream.readline() == b"event: following\n"
        assert client.ask("DELETE", f"/api/topics/{topic}").status == 200
        rest = stream.read()
    assert b"event: trouble" in rest and topic.encode() in rest
    assert not [one for one in caplog.records if one.name.startswith("dafka.console")]


def test_a_follower_passes_over_what_comes_too_fast(local, shared, topic):
    with local.open("GET", f"/api/topics/{topic}/follow") as stream:
        assert stream.readline() == b"event: following\n"
        shared.preload(topic, [b"x" * 10] * 30_000, partition=0)
        shared.preload(topic, [b"last"], partition=0)
        seen = skipped = 0
        while seen + skipped < 30_001:
            line = stream.readline()
            assert line
            if line.startswith(b'data: {"records"'):
                event = json.loads(line.removeprefix(b"data: "))
                assert len(event["records"]) <= 200
                seen += len(event["records"])
                skipped += event["skipped"]
    assert event["records"][-1]["value"]["text"] == "last" and seen < 10_000
