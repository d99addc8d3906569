"""Places in partitions on the command line."""

from __future__ import annotations

from typing import Any

import click

from dafka.broker.looking.places import Place, parse_place


# ParamType takes type arguments in newer versions of click only.
class PlaceType(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A place, as :func:`dafka.broker.looking.places.parse_place` reads it."""

    name = "place"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        if isinstance(value, Place):
            return value
        try:
            return parse_place(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
