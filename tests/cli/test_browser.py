"""``dafka console`` and ``dafka broker --console``."""

from __future__ import annotations

import re
import ssl
import subprocess
import time
import urllib.request
from pathlib import Path

import pytest
from cli.tools import refused, running
from console.asking import SECONDS, Client
from security.certificates import Authority

from dafka import Store, Tower
from dafka.overlay import Endpoint
from dafka.testing import TestBroker
from dafka.zper import ZperOptions

pytest.importorskip("flask", reason="the extra console is not installed")


def console_of(program: subprocess.Popen[str]) -> Client:
    assert program.stderr is not None
    for line in program.stderr:
        if found := re.match(r"console: (https?://\S+)", line):
            return Client(found[1])
    raise AssertionError("the program has ended")


def test_a_cluster_is_shown() -> None:
    with TestBroker() as broker:
        broker.create_topic("orders", 3)
        with running(
            "console", "--bootstrap-servers", broker.bootstrap_servers, "--listen", "127.0.0.1:0"
        ) as program:
            client = console_of(program)
            assert client.get("/api/topics")["topics"][0]["partitions"] == 3
            assert not client.get("/api/cluster")["embedded"] and client.get("/api/session")["writes"]


def test_a_broker_shows_itself(tmp_path) -> None:
    data = str(tmp_path / "data")
    with running("broker", "--listen", "127.0.0.1:0", "--data", data, "--console", "127.0.0.1:0") as program:
        client = console_of(program)
        assert client.get("/api/cluster")["embedded"]
        assert client.ask("POST", "/api/topics", {"name": "orders"}).status == 200


def test_an_address_that_cannot_be_is_refused() -> None:
    for command in (("console", "--listen", "8080"), ("broker", "--console", "8080")):
        ended = refused(*command)
        assert "listen='8080' is not HOST:PORT" in ended.stderr and ended.returncode == 2


@pytest.mark.parametrize("kafka", [True, False], ids=["with-kafka", "alone"])
def test_mesh_overlay_and_zper_are_shown(tmp_path: Path, kafka: bool) -> None:
    with (
        TestBroker(zper=ZperOptions()) as broker,
        Tower() as tower,
        Store(tmp_path / "store", tower=tower) as store,
        Endpoint(listen="127.0.0.1:0") as endpoint,
        running(
            *("console", "--listen", "127.0.0.1:0"),
            *(("--bootstrap-servers", broker.bootstrap_servers) if kafka else ()),
            *("--sub", tower.addresses[0], "--pub", tower.addresses[1], "--overlay", endpoint.address),
            *("--zper", broker.zper.controller_address),
        ) as program,
    ):
        client = console_of(program)
        networks = {"mesh": True, "overlay": True, "zper": True}
        assert client.get("/api/networks") == {"kafka": kafka, **networks}
        assert client.get("/api/zper")["controllers"][0]["error"] is None
        assert client.get("/api/overlay")["connected"]
        while store.address not in {one["address"] for one in client.get("/api/mesh")["nodes"]}:
            time.sleep(0.1)  # it takes a beacon; pytest's own limit of time ends this


def test_a_broker_gives_its_console_its_certificate(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    signed = authority.sign("broker")
    with running(
        *("broker", "--listen", "SSL://127.0.0.1:0", "--data", str(tmp_path / "data")),
        *("--ssl-certfile", signed.certfile, "--ssl-keyfile", signed.keyfile),
        *("--console", "127.0.0.1:0", "--console-tls"),
    ) as program:
        url = console_of(program).url
        context = ssl.create_default_context(cafile=authority.cafile)
        with urllib.request.urlopen(url + "/health", timeout=SECONDS, context=context) as answer:
            assert answer.status == 200


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("console", "--sub", "tcp://127.0.0.1:5556"), "give both or none"),
        (("console", "--zper", "127.0.0.1:5559"), "is not the address of a ZPController"),
        (("console", "--overlay", "nowhere"), "nowhere"),
        (("broker", "--console-login", "PLAIN"), "need --console"),
        (("broker", "--console", "127.0.0.1:0", "--console-tls"), "needs --ssl-certfile"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: tuple[str, ...], words: str) -> None:
    assert words in refused(*options).stderr
