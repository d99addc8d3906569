"""The console's WSGI application: the pages' shell, their files, the API, and the right to use them."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import gevent
from flask import Flask, Response, request
from kafka.errors import BrokerResponseError, IncompatibleBrokerVersion, KafkaError
from werkzeug.exceptions import HTTPException

from dafka.broker.looking.outcomes import RefusedError
from dafka.console import limits
from dafka.console.api import ROUTES
from dafka.console.desk import Bounds, Desk
from dafka.console.doors import Doors
from dafka.console.errors import ApiError
from dafka.console.networks.networks import Networks
from dafka.console.openapi import describe
from dafka.console.records.long_values import json_of
from dafka.console.routes import Route
from dafka.console.security import HEADERS, SAFE_METHODS, check_change, check_host, check_site
from dafka.protocol.errors import DafkaError
from dafka.protocol.json_text import read_json

log = logging.getLogger(__name__)

STATIC = Path(__file__).parent / "static"
_COOKIE: Any = {"httponly": True, "samesite": "Strict", "path": "/"}
_JSON = "application/json"
_MISSING = {"UnknownTopicOrPartitionError", "GroupIdNotFoundError", "TransactionalIdNotFoundError"}
_DENIED = ("AuthorizationFailedError", "ClusterAuthorizationFailedError")


def make_application(doors: Doors, bounds: Bounds, networks: Networks) -> Flask:
    """The application; ``doors`` decides who may do what, and with which connection to the broker."""
    app = Flask(__name__, static_folder=None)
    app.config["MAX_CONTENT_LENGTH"] = limits.BODY
    app.config["MAX_FORM_PARTS"] = 0
    description = json.dumps(describe(ROUTES), separators=(",", ":"))

    def guard() -> None:
        check_host(request.headers.get("Host", ""), doors.hosts)
        if request.path.startswith("/api/"):
            check_site(request.headers)
        if request.method not in SAFE_METHODS:
            check_change(request.headers, doors.writes or request.path == "/api/session")

    def protect(response: Response) -> Response:
        response.headers.update(HEADERS)
        if not request.path.startswith("/static/"):
            response.headers["Cache-Control"] = "no-store"
        return response

    def desk() -> Desk:
        connection, user = doors.enter(_token())
        return Desk(connection, bounds, writes=doors.writes, user=user, networks=networks)

    def view(route: Route) -> Callable[..., Response]:
        def answer(**path: str) -> Response:
            if len(request.args) != len(request.args.to_dict()) or any(
                len(values) > 1 for _, values in request.args.lists()
            ):
                raise ApiError("a parameter is there twice")
            values = route.read(path, request.args)
            if route.body is not None:
                values["body"] = _body(route)
            found = route.function(desk(), **values)
            if route.stream is not None:
                return _stream(found, route.stream)
            return _json(found)

        return answer

    for route in ROUTES:
        rule = "/api" + route.path.replace("{", "<").replace("}", ">")
        app.add_url_rule(rule, f"{route.method} {rule}", view(route), methods=[route.method])

    def openapi() -> Response:
        return Response(description, content_type=_JSON)

    def session() -> Response:
        """The data that a page needs first."""
        try:
            user = doors.enter(_token())[1]
        except ApiError:
            return _json({"login": True, "user": None, "writes": False})
        return _json({"login": False, "user": user, "writes": doors.writes})

    def log_in() -> Response:
        given = _given()
        if not isinstance(given, dict):
            raise ApiError("the body is an object with user and password")
        user, password = given.get("user"), given.get("password")
        if not isinstance(user, str) or not isinstance(password, str) or not user or not password:
            raise ApiError("user and password are texts")
        if max(len(user), len(password)) > limits.CREDENTIAL:  # the hub hashes them
            raise ApiError(f"user and password have at most {limits.CREDENTIAL} characters")
        if any("\ud800" <= one <= "\udfff" for one in user + password):
            raise ApiError("user and password are texts without halves of surrogate pairs")
        token = doors.log_in(user, password, request.remote_addr or "")
        doors.log_out(_token())  # the session before in this browser
        response = _json({"login": False, "user": user, "writes": doors.writes})
        response.set_cookie(_cookie(), token, **_COOKIE, secure=request.is_secure)
        return response

    def log_out() -> Response:
        doors.log_out(_token(), everywhere=request.args.get("everywhere") == "true")
        response = _json({"login": doors.needs_login, "user": None, "writes": False})
        response.delete_cookie(_cookie(), **_COOKIE, secure=request.is_secure)
        return response

    def health() -> Response:
        """Whether the broker answers, in the words of the metrics' port; no more, because anybody may ask."""
        try:
            doors.check()
        except KafkaError as error:
            detail = type(error).__name__
            return _json({"status": "down", "alive": True, "ready": False, "detail": detail}, 503)
        return _json({"status": "up", "alive": True, "ready": True, "detail": ""})

    def alive() -> Response:
        """Whether the console answers, whatever the broker does."""
        return _json({"alive": True})

    def static_file(name: str) -> Response:
        response: Response = app.make_response(_file(name))
        response.headers["Cache-Control"] = "no-cache"
        return response

    def _file(name: str) -> Response:
        from flask import send_from_directory

        return send_from_directory(STATIC, name)

    def no_such_path(name: str) -> Response:
        return _error(404, "not-found", f"there is no /api/{name}: /api/openapi.json says what there is")

    def shell(name: str = "") -> Response:
        """Every page is this file, and a script that looks at the address."""
        return app.make_response(_file("index.html"))

    app.before_request(guard)
    app.after_request(protect)
    app.add_url_rule("/api/openapi.json", "openapi", openapi, methods=["GET"])
    app.add_url_rule("/api/session", "session", session, methods=["GET"])
    app.add_url_rule("/api/session", "log_in", log_in, methods=["POST"])
    app.add_url_rule("/api/session", "log_out", log_out, methods=["DELETE"])
    app.add_url_rule("/health", "health", health, methods=["GET"])
    app.add_url_rule("/health/ready", "ready", health, methods=["GET"])
    app.add_url_rule("/health/live", "alive", alive, methods=["GET"])
    app.add_url_rule("/static/<path:name>", "static_file", static_file, methods=["GET"])
    app.add_url_rule("/api/<path:name>", "no_such_path", no_such_path, methods=["GET"])
    app.add_url_rule("/<path:name>", "shell", shell, methods=["GET"])
    app.add_url_rule("/", "first", shell)
    app.register_error_handler(Exception, _refuse)
    return app


def _cookie() -> str:
    """Browsers send cookies to all ports of a host: consoles at several have names of their own.

    One with the prefix is taken from this host by TLS alone, so that no other host of its domain can set it.
    """
    port = request.host.rpartition(":")[2]
    name = f"dafka-console-{port if port.isdigit() else 'default'}"
    return f"__Host-{name}" if request.is_secure else name


def _token() -> str | None:
    return request.cookies.get(_cookie())


def _given() -> Any:
    """The body of a request. Raises ApiError."""
    if request.mimetype != _JSON:
        raise _WrongTypeError("the body is application/json")
    try:
        with gevent.Timeout(limits.BODY_SECONDS, _TooSlowError("the body took too long")):
            content = request.get_data()
        return read_json(content, parse_constant=_no_constant)
    except ValueError as error:
        raise ApiError(f"the body is not JSON: {error}") from None


def _body(route: Route) -> Any:
    body = _given()
    route.check_body(body)
    return body


class _WrongTypeError(ApiError):
    status = 415
    code = "unsupported-media-type"


class _TooSlowError(ApiError):
    status = 408
    code = "request-timeout"


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _json(content: Any, status: int = 200) -> Response:
    text = "".join(json_of(content, ascii=False, compact=True))
    return Response(text.encode("utf-8", "backslashreplace"), status, content_type=_JSON)


def _stream(pieces: Iterable[bytes], kind: str) -> Response:
    rest = iter(pieces)
    response = Response(_with_rest(next(rest, b""), rest), content_type=kind)
    response.headers["X-Accel-Buffering"] = "no"
    if kind == "application/octet-stream" or request.args.get("format"):
        response.headers["Content-Disposition"] = "attachment"
    return response


def _with_rest(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    """The first piece was made before the answer began, so that a refusal is an answer of its own."""
    try:
        yield first
        yield from rest
    finally:
        if isinstance(rest, Generator):
            rest.close()  # the browser has gone


def _error(status: int, code: str, message: str) -> Response:
    return _json({"error": code, "message": message}, status)


def _refuse(error: Exception) -> Response:
    """The answer to a request that failed."""
    if isinstance(error, ApiError):
        return _error(error.status, error.code, str(error))
    if isinstance(error, HTTPException):
        response = _error(error.code or 500, (error.name or "error").lower().replace(" ", "-"), _why(error))
        if allowed := getattr(error, "valid_methods", None):
            response.headers["Allow"] = ", ".join(allowed)
        return response
    if isinstance(error, RefusedError):
        name = error.names[0] if error.names else "refused"
        status = 404 if name in _MISSING else 403 if name.endswith(_DENIED) else 409
        return _error(status, name, str(error))
    if isinstance(error, (NotImplementedError, IncompatibleBrokerVersion)):
        return _error(501, "unsupported", str(error) or "this broker cannot do that")
    if isinstance(error, KafkaError):
        name = type(error).__name__
        if name.endswith(_DENIED):
            return _error(403, name, str(error))
        return _error(502 if isinstance(error, BrokerResponseError) else 503, name, str(error))
    if isinstance(error, (DafkaError, ValueError)):
        return _error(409, type(error).__name__, str(error))
    log.error("a request for %s failed", request.path, exc_info=error)
    return _error(500, "internal", "the console has made a mistake; its log says more")


def _why(error: HTTPException) -> str:
    return str(error.description or error.name)
