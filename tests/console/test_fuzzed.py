"""Requests made from the API's own description: allowed ones, ones just beside these, and nonsense.

With DAFKA_TEST_SCHEMATHESIS=100 schemathesis makes so many for each operation.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest
from console.asking import SECONDS, Client
from jsonschema import Draft202012Validator

from dafka.testing import TestBroker

EXAMPLES = os.environ.get("DAFKA_TEST_SCHEMATHESIS")
NONSENSE = ["", "\0<b>\ud800", "x" * 1001, "-1"]
_MANY = 10_000
CHECKS = (  # whether what is allowed is accepted goes by what there is
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,negative_data_rejection,use_after_free"
)


@pytest.fixture(scope="module")
def client():
    """A broker of its own: the requests made up here are really carried out."""
    with TestBroker(console=True) as broker:
        broker.create_topic("orders", 2)
        broker.preload("orders", [("k", '{"a": 1}')] * 5)
        yield Client(broker.console)


@pytest.fixture(scope="module")
def operations(client):
    """All of them but those that never end by themselves, or end the console's session."""
    paths = client.get("/api/openapi.json")["paths"]
    found = [
        (method, path, one)
        for path, methods in paths.items()
        for method, one in methods.items()
        if "follow" not in path
    ]
    assert len(found) > 25
    return sorted(found, key=lambda one: one[0] == "delete")  # what they need is gone then


def values(schema: dict[str, Any]) -> Iterator[Any]:
    """Values that a schema allows, at its bounds, and some beside them."""
    kind = schema.get("type")
    if isinstance(kind, list):
        for one in kind:
            yield from values({**schema, "type": one})
    elif "enum" in schema:
        yield from [*schema["enum"], "nothing of it"]
    elif "const" in schema:
        yield schema["const"]
    elif kind == "integer":
        low, high = schema.get("minimum", 0), schema.get("maximum", 10)
        yield from (low, min(low + 1, high), low - 1, high + 1, 1.5, True)
        if high <= _MANY or high >= 2**31 - 1:  # a hundred thousand partitions would take their time
            yield high
    elif kind == "boolean":
        yield from (True, False, 1, None)
    elif kind == "string":
        yield from ("orders", "0", "latest", "x" * schema.get("maxLength", 10), *NONSENSE)
    elif kind == "array":
        items = list(values(schema["items"]))
        yield from ([], items[:1], items[:1] * 2, items, None, {})
    elif kind == "object":
        properties = schema.get("properties", {})
        usual = {name: next(values(one)) for name, one in properties.items()}
        yield usual
        yield {name: usual[name] for name in schema.get("required", ())}
        yield {**usual, "more": 1}
        for name, one in properties.items():
            for value in values(one):
                yield {**usual, name: value}
    yield from ([], {}, None, "text")


def is_allowed(schema: dict[str, Any], value: Any) -> bool:
    return Draft202012Validator(schema).is_valid(value)


def check(operation, answer, where):
    """The answer is one that the description knows, and no mistake of the console."""
    responses = operation["responses"]
    assert str(answer.status) in responses, (where, answer.status, answer.content[:300])
    assert answer.status != 500, (where, answer.content[:300])
    if answer.status >= 400:
        assert set(answer.json) == {"error", "message"}, where
        text = answer.json["message"]
        assert "Traceback" not in text and len(text) < 5000, where


def test_parameters_of_all_kinds_are_answered_as_described(client, operations):
    asked = 0
    for method, path, operation in operations:
        own = [one for one in operation["parameters"] if one["in"] != "header"]
        usual = {one["name"]: usual_value(one["schema"]) for one in own}
        for one in own:
            for value in dict.fromkeys(map(as_text, values(one["schema"]))):
                if one["in"] == "path" and (not value or "/" in value):
                    continue  # it is another path
                given = {**usual, one["name"]: value}
                where = address(path, own, given)
                answer = client.ask(method.upper(), where, body=None if method == "get" else {})
                check(operation, answer, (method, where[:200]))
                asked += 1
    assert asked > 400


def test_bodies_of_all_kinds_are_answered_as_described(client, operations):
    for method, path, operation in operations:
        if "requestBody" not in operation:
            continue
        own = [one for one in operation["parameters"] if one["in"] != "header"]
        where = address(path, own, {one["name"]: usual_value(one["schema"]) for one in own})
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        seen = set()
        for value in values(schema):
            text = json.dumps(value)
            if text in seen or len(text) > 100_000:
                continue
            seen.add(text)
            answer = client.ask(method.upper(), where, body=value)
            check(operation, answer, (method, where, text[:200]))
            if not is_allowed(schema, value):
                assert answer.status in (400, 404, 415), (method, where, text[:200], answer.status)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b"[" * 10_000, b'{"name": NaN}', b'"\\ud800"', b"1e999"]
)
def test_bodies_that_are_not_json_are_refused(client, body):
    kind = {**client.headers, "Content-Type": "application/json"}
    request = urllib.request.Request(f"{client.url}/api/topics", body, kind, method="POST")
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=SECONDS)
    with refused.value as answer:
        assert answer.code == 400 and json.load(answer)["error"] == "bad-request"


def usual_value(schema: dict[str, Any]) -> str:
    """The default, or the first value that it allows, as text."""
    return as_text(next(one for one in (schema.get("default"), *values(schema)) if is_allowed(schema, one)))


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def address(path: str, parameters: list[dict[str, Any]], given: dict[str, str]) -> str:
    query = []
    for one in parameters:
        text = quote(given[one["name"]].encode("utf-8", "surrogatepass"), safe="")
        if one["in"] == "path":
            path = path.replace(f"{{{one['name']}}}", text)
        else:
            query.append(f"{one['name']}={text}")
    return path + ("?" + "&".join(query) if query else "")


@pytest.mark.timeout(3600)
@pytest.mark.skipif(not EXAMPLES, reason="DAFKA_TEST_SCHEMATHESIS is a number of examples, as 100")
def test_schemathesis_finds_nothing(client, tmp_path):
    command = shutil.which("schemathesis")
    if command is None:
        pytest.skip("schemathesis is not installed: pip install 'schemathesis>=4,<5'")
    words = ["run", f"{client.url}/api/openapi.json", "-H", "X-Dafka-Console: 1", "--no-color"]
    words += [
        "--checks",
        CHECKS,
        "--max-examples",
        str(EXAMPLES),
        "--generation-deterministic",
        "--request-timeout",
        "60",
        "--exclude-path-regex",
        "follow",
    ]
    refusals = ["400", "401", "403", "404", "405", "409", "413", "414", "415", "5xx"]
    config = f"[checks]\nnegative_data_rejection.expected-statuses = {json.dumps(refusals)}\n"
    (tmp_path / "schemathesis.toml").write_text(config)
    done = subprocess.run([command, *words], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2000:]
