"""Places in partitions on the command line."""

from __future__ import annotations

import click
import pytest

from dafka.broker.looking.places import Place
from dafka.cli.kafka.places import PlaceType


def test_places_are_read_once_and_refused_in_words():
    assert PlaceType().convert("-7", None, None) == Place("before end", 7)
    assert PlaceType().convert(Place("latest"), None, None) == Place("latest")
    with pytest.raises(click.BadParameter, match="is not one of earliest, latest"):
        PlaceType().convert("now", None, None)
