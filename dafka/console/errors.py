"""What the API refuses, each with its status."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class ApiError(DafkaError):
    """A request that is answered with an error. ``code`` is a word for programs, the text is for people."""

    status = 400
    code = "bad-request"


class ForbiddenError(ApiError):
    """What this console, or this account, may not do."""

    status = 403
    code = "forbidden"


class NotLoggedInError(ApiError):
    """Who asks has to log in first."""

    status = 401
    code = "login"


class NotThereError(ApiError):
    """What was asked for does not exist."""

    status = 404
    code = "not-found"


class BusyError(ApiError):
    """As much as the console does at a time is under way already."""

    status = 503
    code = "busy"
