"""Errors of the API, each with its status."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class ApiError(DafkaError):
    """A request that is answered with an error. ``code`` is a word for programs, the text is for people."""

    status = 400
    code = "bad-request"


class ForbiddenError(ApiError):
    """This console, or this account, may not do that."""

    status = 403
    code = "forbidden"


class NotLoggedInError(ApiError):
    """The client has to log in first."""

    status = 401
    code = "login"


class NotThereError(ApiError):
    """A topic, group or other thing that does not exist."""

    status = 404
    code = "not-found"


class NoBrokerError(ApiError):
    """This console shows a mesh, an overlay or ZPER without a Kafka."""

    status = 501
    code = "no-broker"


class TooManyError(ApiError):
    """Too many wrong passwords."""

    status = 429
    code = "too-many"


class BusyError(ApiError):
    """As much as the console does at a time is under way already."""

    status = 503
    code = "busy"
