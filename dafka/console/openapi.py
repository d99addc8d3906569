"""The OpenAPI description of the API, made from its routes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import dafka
from dafka.console.routes import EVENTS, Route
from dafka.console.security import CHANGE_HEADER

_ERROR = {
    "type": "object",
    "properties": {
        "error": {"type": "string", "description": "A word, or the name of Kafka's error"},
        "message": {"type": "string"},
    },
    "required": ["error", "message"],
}
_STATUSES = {
    "400": "A parameter or the body is not as described",
    "401": "Log in first",
    "403": "Not allowed",
    "404": "Not there",
    "408": "The body took too long",
    "409": "The broker refuses it",
    "413": "The body is too large",
    "415": "The body is not application/json",
    "501": "This broker cannot do that",
    "502": "The broker has answered with an error",
    "503": "The broker does not answer, or too much is under way",
}


def describe(routes: Iterable[Route]) -> dict[str, Any]:
    """The description, in OpenAPI 3.1."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(f"/api{route.path}", {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Dafka console",
            "version": dafka.__version__,
            "description": "What the console's pages themselves use. Octets that are not text are Base64.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": _ERROR},
            "responses": {
                f"Error{status}": {
                    "description": meaning,
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
                }
                for status, meaning in _STATUSES.items()
            },
        },
    }


def _operation(route: Route) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {
            "name": one.name,
            "in": "path" if route.in_path(one) else "query",
            "required": one.required or route.in_path(one),
            "description": one.description,
            "schema": {**one.schema, **({} if one.default is None else {"default": one.default})},
        }
        for one in route.parameters
    ]
    if route.is_change:
        header = {"name": CHANGE_HEADER, "in": "header", "required": True, "schema": {"const": "1"}}
        parameters.append(header | {"description": "Says that no other site has asked"})
    content = {route.stream: {} if route.stream == EVENTS else {"schema": {"type": "string"}}}
    operation: dict[str, Any] = {
        "operationId": route.function.__name__,
        "summary": route.summary,
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "Done",
                "content": content if route.stream else {"application/json": {"schema": route.answer}},
            },
            "414": {"description": "The address is longer than 8 kB"},
            **{status: {"$ref": f"#/components/responses/Error{status}"} for status in _STATUSES},
        },
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {"application/json": {"schema": route.body}},
        }
    return operation
