"""Clients that others wrote: those of the packages websockets and websocket-client, and Node's."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess

import pytest

from dafka.overlay import Endpoint
from dafka.overlay.values import Count, Table
from dafka.overlay.websocket.server_connection import PATH

PATIENCE = 100.0
ENTRY = {"key": {"@data-type": "string", "data": "ä\x00🦆"}, "value": {"@data-type": "none", "data": {}}}
VALUE = {"@data-type": "table", "data": [ENTRY]}
QUESTION = json.dumps({"type": "data-message", "topic": "/to/python", **VALUE})

NODE = """
const socket = new WebSocket(process.argv[1]);
socket.onopen = () => socket.send('["/to/node"]');
socket.onmessage = ({data}) => {
    const message = JSON.parse(data);
    if (message.type === "ack") socket.send(process.argv[2]);
    else { console.log(data); socket.close(1000, "done"); }
};
socket.onclose = ({code, reason}) => { console.log(code, reason); };
socket.onerror = ({message}) => { console.log("error", message); };
"""


@pytest.fixture
def endpoint():
    with Endpoint(websocket="127.0.0.1:0") as one:
        yield one


def url(endpoint):
    return f"ws://{endpoint.websocket_address}{PATH}"


def heard(subscriber):
    assert subscriber.get(PATIENCE)[:2] == ("/to/python", Table({"ä\x00🦆": None}))


def test_websockets_with_asyncio_and_its_default_of_compression(endpoint):
    from websockets.asyncio.client import connect

    async def talk():
        async with connect(url(endpoint)) as client:
            await client.send('["/to/client"]')
            assert json.loads(await client.recv())["type"] == "ack"
            await client.send([QUESTION[:10], QUESTION[10:30], QUESTION[30:]])  # in fragments
            await (await client.ping())
            return await client.recv()

    with endpoint.subscribe("/to/python") as subscriber:

        def answer():
            heard(subscriber)
            endpoint.publish("/to/client", Count(1))

        async def both():
            _, message = await asyncio.gather(asyncio.to_thread(answer), asyncio.wait_for(talk(), PATIENCE))
            return message

        message = asyncio.run(both())
    assert message == '{"type":"data-message","topic":"/to/client","@data-type":"count","data":1}'


def test_websocket_client(endpoint):
    websocket = pytest.importorskip("websocket", reason="needs the package websocket-client")
    client = websocket.create_connection(url(endpoint), timeout=PATIENCE)  # sends an origin
    try:
        client.send('["/to/client"]')
        assert json.loads(client.recv())["endpoint"] == str(endpoint.id)
        with endpoint.subscribe("/to/python") as subscriber:
            client.send(QUESTION)
            heard(subscriber)
        endpoint.publish("/to/client", "x" * 100_000)
        assert len(json.loads(client.recv())["data"]) == 100_000
        client.ping("there?")
        client.send("rubbish")
        assert json.loads(client.recv())["code"] == "deserialization_failed"
    finally:
        client.close()


def test_node(endpoint):
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    options = [option for option in ([], ["--experimental-websocket"]) if _has_websocket(node, option)]
    if not options:
        pytest.skip("this node has no WebSocket")
    command = [node, *options[0], "-e", NODE, url(endpoint), QUESTION]
    with (
        endpoint.subscribe("/to/python") as subscriber,
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True, encoding="utf-8") as process,
    ):
        try:
            heard(subscriber)
            endpoint.publish("/to/node", Table({"ä\x00🦆": None}))
            output, _ = process.communicate(timeout=PATIENCE)
        finally:
            process.kill()
    message, goodbye = output.splitlines()
    assert json.loads(message) == {"type": "data-message", "topic": "/to/node", **VALUE}
    assert goodbye == "1000 done"


def _has_websocket(node: str, options: list[str]) -> bool:
    command = [node, *options, "-e", "process.exit(typeof WebSocket === 'undefined' ? 1 : 0)"]
    return subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
