"""JeroMQ's sockets: the 0.3 that speaks ZMTP 2.0, and a current one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sockets.serving import Recorder, dealer, in_hub, publisher, router, subscriber
from timing import until

REPOSITORY = Path.home() / ".m2" / "repository" / "org" / "zeromq" / "jeromq"
SOURCE = Path(__file__).parent / "JeroMQ.java"

pytestmark = pytest.mark.xdist_group("jeromq")


@pytest.fixture(scope="module", params=["0.3.5", "0.6.0"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def classpath(version: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    jar = REPOSITORY / version / f"jeromq-{version}.jar"
    if not jar.exists():
        pytest.skip(f"JeroMQ is not here: mvn dependency:get -Dartifact=org.zeromq:jeromq:{version}")
    if shutil.which("javac") is None:
        pytest.skip("no javac here")
    folder = tmp_path_factory.mktemp(version)
    subprocess.run(["javac", "-nowarn", "-cp", str(jar), "-d", str(folder), str(SOURCE)], check=True)
    return f"{jar}:{folder}"


@contextmanager
def jeromq(
    classpath: str, kind: str, endpoint: str = "", identity: str = "", count: int = 2000, size: int = 100
) -> Iterator[subprocess.Popen[str]]:
    """A process with a socket. Its last line is "ok"."""
    command = ["java", "-cp", classpath, "JeroMQ", kind, endpoint, identity, str(count), str(size)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
        assert process.stdout is not None
        assert process.stdout.readline() == "ok\n"
    finally:
        process.kill()
        process.communicate()


def body(number: int, size: int) -> bytes:
    return bytes([number % 256]) * (size if number % 3 == 0 else size // 2)


def sample(count: int, size: int) -> list[list[bytes]]:
    return [[b"%d" % number, body(number, size)] for number in range(count)]


@pytest.mark.parametrize("identity", ["me", ""])
@pytest.mark.parametrize(("count", "size"), [(3000, 100), (100, 300_000)])
def test_a_dealer_gets_its_messages_back(classpath: str, version: str, identity: str, count: int, size: int):
    recorder = Recorder(lambda peer, message: message)
    with router(recorder) as served, jeromq(classpath, "DEALER", served.endpoint, identity, count, size):
        until(lambda: len(recorder.received) == count)
        assert recorder.all == sample(count, size)
        (peer,) = recorder.peers
        assert peer.socket_type == b"DEALER"
        assert peer.version == ((2, 0) if identity or version == "0.3.5" else (3, 0))
        if identity:
            assert peer.identity == b"me"


def test_a_req_gets_answers(classpath: str):
    recorder = Recorder(lambda peer, message: message)
    with router(recorder) as served, jeromq(classpath, "REQ", served.endpoint, "me", 300):
        until(lambda: len(recorder.received) == 300)
    assert recorder.all == [[b"", *message] for message in sample(300, 100)]
    assert recorder.peers[0].socket_type == b"REQ"


def test_a_push_tells_its_identity(classpath: str):
    recorder = Recorder()
    with router(recorder) as served, jeromq(classpath, "PUSH", served.endpoint, "logger"):
        until(lambda: len(recorder.received) == 2000)
    assert recorder.messages_of == {b"logger": sample(2000, 100)}


def test_a_pull_tells_its_identity_and_gets_messages(classpath: str):
    recorder = Recorder()
    with router(recorder) as served, jeromq(classpath, "PULL", served.endpoint, "reader"):
        peer = until(lambda: served.peer(b"reader"))
        in_hub(peer.send_many, sample(2000, 100))


def test_a_sub_gets_what_is_published(classpath: str):
    with publisher() as served, jeromq(classpath, "SUB", served.endpoint):
        until(lambda: served.metrics()["subscriptions"] == 1)
        in_hub(served.send_many, sample(2000, 100))


@pytest.mark.parametrize(("count", "size"), [(2000, 100), (100, 300_000)])
def test_our_sub_gets_what_an_xpub_publishes(classpath: str, version: str, count: int, size: int):
    recorder = Recorder()
    with jeromq(classpath, "XPUB", count=count, size=size) as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with subscriber(recorder, f"tcp://127.0.0.1:{port}") as made:
            in_hub(made.subscribe, b"")
            until(lambda: len(recorder.received) == count)
            assert recorder.all == sample(count, size)
            (peer,) = recorder.peers
            assert peer.version == ((2, 0) if version == "0.3.5" else (3, 0))


def test_our_dealer_gets_its_messages_back_from_a_router(classpath: str, version: str):
    recorder = Recorder()
    with jeromq(classpath, "ROUTER") as process:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        with dealer(f"tcp://127.0.0.1:{port}", recorder, identity=b"me") as made:
            peer = until(lambda: made.peer)
            assert peer.version == ((2, 0) if version == "0.3.5" else (3, 0))
            in_hub(peer.send_many, sample(2000, 100))
            until(lambda: len(recorder.received) == 2000)
            assert recorder.all == sample(2000, 100)
