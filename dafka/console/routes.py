"""Routes of the API: each is declared once, and is from then on checked, documented and answered.

A parameter or a body is described by a JSON schema. Requests that the schema does not allow never reach the
function of the route, and the same schemas make the OpenAPI description.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from dafka.console.errors import ApiError

Schema = Mapping[str, Any]
Function = Callable[..., Any]

TEXT: Schema = {"type": "string", "maxLength": 1000}
NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 1000}
TOPIC: Schema = {"type": "string", "minLength": 1, "maxLength": 255}
FLAG: Schema = {"type": "boolean"}
PARTITION: Schema = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
OFFSET: Schema = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}

EVENTS = "text/event-stream"
"""Of a stream of server-sent events."""

# JSON schema takes 5.0 for an integer; a number of partitions must be written as one.
_Validator = extend(
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)
_NUMBER = re.compile(r"-?\d{1,19}", re.ASCII)


@dataclass(frozen=True)
class Parameter:
    """A parameter in the path or in the query."""

    name: str
    schema: Schema
    description: str
    required: bool = False
    default: Any = None

    @cached_property
    def _validator(self) -> Any:
        return _Validator(self.schema)

    def read(self, given: str | None) -> Any:
        """The value that the text means. Raises ApiError."""
        if given is None:
            if self.required:
                raise ApiError(f"the parameter {self.name} is missing")
            return self.default
        value: Any = given
        kind = self.schema.get("type")
        if kind == "integer" and _NUMBER.fullmatch(given):
            value = int(given)
        elif kind == "boolean" and given in ("true", "false"):
            value = given == "true"
        for error in self._validator.iter_errors(value):
            raise ApiError(f"{self.name}={given[:100]!r}: {error.message[:300]}")
        return value


@dataclass(frozen=True)
class Route:
    """One method of one path."""

    method: str
    path: str  # as OpenAPI writes it: /topics/{topic}
    function: Function
    summary: str
    parameters: tuple[Parameter, ...] = ()
    body: Schema | None = None
    stream: str | None = None  # its type, if the answer is one, and not JSON
    answer: Schema = field(default_factory=lambda: {"type": "object"})

    @property
    def is_change(self) -> bool:
        """Whether it may change something."""
        return self.method != "GET"

    @cached_property
    def _validator(self) -> Any:
        return _Validator(self.body or {})

    def in_path(self, parameter: Parameter) -> bool:
        """Whether a parameter is part of the path."""
        return f"{{{parameter.name}}}" in self.path

    def read(self, path: Mapping[str, str], query: Mapping[str, str]) -> dict[str, Any]:
        """The values of all parameters. Raises ApiError, also for a parameter that there is not."""
        known = {one.name for one in self.parameters if not self.in_path(one)}
        if unknown := sorted(set(query) - known):
            raise ApiError(
                f"there is no parameter {unknown[0][:100]!r}, but {', '.join(sorted(known)) or 'none'}"
            )
        return {
            one.name.replace("-", "_"): one.read(path[one.name] if self.in_path(one) else query.get(one.name))
            for one in self.parameters
        }

    def check_body(self, body: Any) -> None:
        """Raise ApiError for a body that the route does not take."""
        for error in self._validator.iter_errors(body):
            where = "".join(f"[{one!r}]" for one in error.absolute_path)
            raise ApiError(f"body{where}: {error.message[:300]}")


class Routes:
    """The routes of one family, in a module of :mod:`dafka.console.api`."""

    def __init__(self) -> None:
        self.all: list[Route] = []

    def add(
        self,
        method: str,
        path: str,
        summary: str,
        *parameters: Parameter,
        body: Schema | None = None,
        stream: str | None = None,
    ) -> Callable[[Function], Function]:
        """Declare the function below as the answer to ``method path``: ``function(desk, **parameters)``.

        A function with a body gets it as ``body``. It returns what JSON can hold, or pieces of a stream.
        """

        def declare(function: Function) -> Function:
            self.all.append(Route(method, path, function, summary, parameters, body, stream))
            return function

        return declare


def thing(required: Iterable[str] = (), **properties: Schema) -> Schema:
    """The schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def list_of(items: Schema, most: int, least: int = 0) -> Schema:
    """The schema of a list."""
    return {"type": "array", "items": items, "maxItems": most, "minItems": least}
