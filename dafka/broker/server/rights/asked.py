"""A request of a client whose rights count, and the guards that most APIs have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dafka.broker.codec.errors import error_code, error_message
from dafka.broker.interface.broker import BrokerInterface, Error
from dafka.broker.server.answers.naming import version_of
from dafka.broker.server.context import Context
from dafka.broker.server.rights.needs import NEEDS, Effect, Need
from dafka.broker.server.table import Api
from dafka.security.acls.terms import CLUSTER_NAME, Operation, ResourceType


class Asked:
    """One request. May wait as a green thread."""

    def __init__(self, api: Api, broker: BrokerInterface, request: Any, context: Context) -> None:
        self.broker = broker
        self.request = request
        self.needs = NEEDS[api.name]
        self.response_class: Any = api.response
        self._api = api
        self._context = context
        assert context.rights is not None
        self.rights = context.rights

    @property
    def version(self) -> int:
        """The version of the request."""
        return version_of(self.request)

    def may(self, need: Need, name: str = CLUSTER_NAME) -> bool:
        """Whether the client may do this to the resource of that name."""
        return bool(self.allowed(need, [name]))

    def allowed(self, need: Need, names: Iterable[str]) -> set[str]:
        """To which of these resources the client may do this."""
        wanted = set(names)
        if not wanted:
            return wanted
        name, quiet = self._api.name, need.effect is Effect.LEFT_OUT
        if need.instead is not None:
            cluster = ResourceType.CLUSTER
            if self.rights.may(name, need.instead, cluster, CLUSTER_NAME, True):
                return wanted
        return self.rights.allowed(name, need.operation, need.kind, wanted, quiet)

    def answer(self) -> Any:
        """The answer to what is left of the request."""
        assert self._api.answer is not None
        return self._api.answer(self.broker, self.request, self._context)

    def refused(self, error: Error) -> Any:
        """An answer that is this error as a whole."""
        fields: dict[str, Any] = {"error_code": error_code(error)}
        if "error_message" in self.response_class.fields:
            fields["error_message"] = error_message(error)
        if "throttle_time_ms" in self.response_class.fields:
            fields["throttle_time_ms"] = 0
        return self.response_class(**fields)

    def operations(self, kind: ResourceType, names: Iterable[str]) -> dict[str, frozenset[Operation]]:
        """The operations on each of these resources that the client is allowed."""
        return self.rights.operations(kind, list(names))


Guard = Callable[[Asked], Any]


def nothing(asked: Asked) -> Any:
    """An API that needs no right."""
    return asked.answer()


def whole(asked: Asked) -> Any:
    """An API that needs rights on the cluster, with one error in its response."""
    for need in asked.needs:
        if not asked.may(need):
            return asked.refused(need.error)
    return asked.answer()


class Items(NamedTuple):
    """The list in a request, and how its answer says that one of the items is refused.

    ``asked`` and ``answered`` are the fields with the lists; ``name`` finds the name of the resource, and
    ``refused`` makes an item of the answer from one of the request and an error.
    """

    asked: str
    answered: str
    name: Callable[[Any], str]
    refused: Callable[[Any, Error], Any]

    def all_refused(self, asked: Asked, error: Error) -> Any:
        """An answer with this error for each of them."""
        items = [self.refused(item, error) for item in getattr(asked.request, self.asked) or ()]
        return asked.response_class(throttle_time_ms=0, **{self.answered: items})

    def split(self, asked: Asked, need: Need) -> list[Any]:
        """Take those that are refused out of the request; the items of the answer for them."""
        items = getattr(asked.request, self.asked) or []
        allowed = asked.allowed(need, (self.name(item) for item in items))
        if len(allowed) == len(items):
            return []
        kept: list[Any] = []
        refused: list[Any] = []
        for item in items:
            if self.name(item) in allowed:
                kept.append(item)
            else:
                refused.append(self.refused(item, need.error))
        setattr(asked.request, self.asked, kept)
        return refused

    def answer(self, asked: Asked, need: Need) -> Any:
        """An answer in which those are refused to which the client may not do this."""
        refused = self.split(asked, need)
        response = asked.answer()
        getattr(response, self.answered).extend(refused)
        return response


def each(items: Items) -> Guard:
    """An API that needs one right on each thing that it lists."""

    def guard(asked: Asked) -> Any:
        (need,) = asked.needs
        return items.answer(asked, need)

    return guard


def all_or_each(items: Items, names: Sequence[Callable[[Any], str]]) -> Guard:
    """An API that needs rights on the things that ``names`` find in it, and one on each that it lists.

    Without one of the first all of the listed ones are refused.
    """

    def guard(asked: Asked) -> Any:
        *wholes, last = asked.needs
        for need, name in zip(wholes, names, strict=True):
            if not asked.may(need, name(asked.request)):
                return items.all_refused(asked, need.error)
        return items.answer(asked, last)

    return guard


def all_refused(items: Items) -> Guard:
    """An API that needs a right on the cluster, and has errors only for each thing that it lists."""

    def guard(asked: Asked) -> Any:
        for need in asked.needs:
            if not asked.may(need):
                return items.all_refused(asked, need.error)
        return asked.answer()

    return guard
