"""A schema registry for tests, in a thread; it can be slow, hostile and secured."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

AUTHORIZATION = "Basic " + base64.b64encode(b"zoe:p:w").decode()


class FakeRegistry:
    """``schemas`` by id; ``subjects`` by name and version. ``asked``: the paths of all requests so far."""

    def __init__(self) -> None:
        self.schemas: dict[int, Any] = {}
        self.subjects: dict[tuple[str, int], Any] = {}
        self.asked: list[str] = []
        self.before: Callable[[], object] = lambda: None  # called before each answer
        self.needs_login = False
        self.url = ""

    def add(self, number: int, schema: Any, kind: str | None = None, **more: Any) -> None:
        self.schemas[number] = _entry(schema, kind, more)

    def add_subject(self, name: str, schema: Any, kind: str | None = None, **more: Any) -> dict[str, Any]:
        """Returns how another schema refers to it."""
        self.subjects[name, 1] = _entry(schema, kind, more)
        return {"name": name, "subject": name, "version": 1}

    def answer(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        self.asked.append(path)
        self.before()
        if self.needs_login and authorization != AUTHORIZATION:
            return 401, b"{}"
        match path.strip("/").split("/"):
            case ["schemas", "ids", number]:
                found = self.schemas.get(int(number))
            case ["subjects", name, "versions", version]:
                found = self.subjects.get((unquote(name), int(version)))
            case _:
                found = None
        if isinstance(found, bytes):
            return 200, found
        return (200, json.dumps(found).encode()) if found else (404, b'{"error_code": 40403}')


def _entry(schema: Any, kind: str | None, more: Any) -> Any:
    if isinstance(schema, bytes):  # the whole answer
        return schema
    text = schema if kind == "PROTOBUF" else json.dumps(schema)
    return {"schema": text, **({"schemaType": kind} if kind else {}), **more}


@contextmanager
def serving(tls: Any = None) -> Iterator[FakeRegistry]:
    """A registry at ``url``; ``tls`` is a context of the standard library."""
    registry = FakeRegistry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, content = registry.answer(self.path, self.headers.get("Authorization"))
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:  # the client did not wait
                self.close_connection = True

        def log_message(self, *arguments: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.block_on_close = False
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    registry.url = f"http{'s' if tls else ''}://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def framed(number: int, content: bytes) -> bytes:
    """Data with the id of its schema, as clients of a registry write it."""
    return b"\0" + number.to_bytes(4, "big") + content
