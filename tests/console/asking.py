"""A small client of a console, on real sockets."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple
from urllib.parse import urlencode

SECONDS = 100  # that something may take before a test fails


class Answer(NamedTuple):
    status: int
    headers: Any
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def events(self) -> list[tuple[str, Any]]:
        """The events of a stream that has ended."""
        found = []
        for block in self.content.decode().split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if "event" in lines:
                found.append((lines["event"], json.loads(lines["data"])))
        return found


class Client:
    """Asks a console as a program does."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.headers = {"X-Dafka-Console": "1"}

    def open(self, method: str, path: str, body: Any = None, headers: Any = None, **query: Any) -> Any:
        if query:
            path += "?" + urlencode({name.rstrip("_"): value for name, value in query.items()})
        data = None if body is None else json.dumps(body).encode()
        sent = {**self.headers, **({} if data is None else {"Content-Type": "application/json"})}
        request = urllib.request.Request(self.url + path, data, {**sent, **(headers or {})}, method=method)
        return urllib.request.urlopen(request, timeout=SECONDS)

    def ask(self, method: str, path: str, body: Any = None, headers: Any = None, **query: Any) -> Answer:
        try:
            with self.open(method, path, body, headers, **query) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, error.headers, error.read())

    def get(self, path: str, **query: Any) -> Any:
        answer = self.ask("GET", path, **query)
        assert answer.status == 200, (answer.status, answer.content[:1000])
        return answer.json
