"""Cluster: its reading of a controller's responses; with real ones in test_working_on_cluster."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import zmq
from contexts import new_context

from dafka.zper.clients.cluster import Cluster
from dafka.zper.clients.errors import NoResponseError
from dafka.zper.commands import InvalidResponseError, RefusedError, Status


@contextmanager
def answering(*responses: list[bytes]) -> Iterator[str]:
    """The address of a ROUTER that gives these responses, one to each request."""
    with new_context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.LINGER, 0)
        port = router.bind_to_random_port("tcp://127.0.0.1")

        def serve() -> None:
            for response in responses:
                client, *_ = router.recv_multipart()
                router.send_multipart([client, *response])

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{port}"
        finally:
            thread.join()


def test_lists_are_what_the_json_says() -> None:
    responses = [
        [b"\x64", b'{"%s": [{"id": "A"}]}' % what] for what in (b"nodes", b"peers", b"topics", b"topics")
    ]
    with answering(*responses) as address, Cluster(address) as cluster:
        expected = [{"id": "A"}]
        assert [cluster.nodes(), cluster.peers(), cluster.topics(), cluster.topics("t")] == [expected] * 4
    assert cluster.closed


def test_a_status_other_than_ok_is_an_error_that_has_it() -> None:
    with answering([b"\x66"]) as address, Cluster(address) as cluster:
        with pytest.raises(RefusedError, match="INVALID_COMMAND") as raised:
            cluster.nodes()
        assert raised.value.status is Status.INVALID_COMMAND


@pytest.mark.parametrize(
    "response",
    [
        [b""],
        [b"\x00", b"{}"],
        [b"\x64"],
        [b"\x64", b"{"],
        [b"\x64", b"[]"],
        [b"\x64", b"{}"],
        [b"\x64", b'{"nodes": 5}'],
    ],
    ids=lambda response: str(response)[:30],
)
def test_a_response_of_another_shape_is_an_error_of_ours(response: list[bytes]) -> None:
    with answering(response) as address, Cluster(address) as cluster, pytest.raises(InvalidResponseError):
        cluster.nodes()


def test_a_response_that_is_nested_too_deep_is_not_read() -> None:
    deep = b'{"nodes": ' + b"[" * 500 + b"]" * 500 + b"}"
    too_deep = pytest.raises(InvalidResponseError, match="nested more than 300 deep")
    with answering([b"\x64", deep]) as address, Cluster(address) as cluster, too_deep:
        cluster.nodes()


def test_no_response_in_time_is_an_error_with_the_address() -> None:
    no_response = pytest.raises(NoResponseError, match=r"tcp://127.0.0.1:1: no response to NODES in 0.05 s")
    with Cluster("tcp://127.0.0.1:1", timeout=0.05) as cluster, no_response:
        cluster.nodes()
