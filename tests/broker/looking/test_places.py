"""Places in partitions as people write them."""

from __future__ import annotations

import time
from datetime import timezone

import pytest

from dafka.broker.looking.places import Place
from dafka.broker.looking.places import parse_place as place


def test_words_numbers_and_times():
    assert place("earliest") == Place("earliest")
    assert place("7") == Place("offset", 7)
    assert place("-7") == Place("before end", 7)
    assert place("2001-09-09T01:46:40Z") == place("2001-09-09T03:46:40+02:00") == Place("time", 10**12)
    assert place("2001-09-09 01:46:40.523", timezone.utc) == Place("time", 10**12 + 523)
    assert place("2001-09-09T03:46:40+02:00", timezone.utc) == Place("time", 10**12)
    assert abs(place("2h").number / 1000 - (time.time() - 7200)) < 60
    assert place("999999999d") == Place("time", 0)


@pytest.mark.parametrize("fraction", [".5", ".50", ",5", ".5000000009"])
def test_a_fraction_of_a_second_has_any_number_of_digits(fraction):
    for zone in ("Z", "+02:00", ""):
        moment = f"2001-09-09T0{3 if zone == '+02:00' else 1}:46:40{fraction}{zone}"
        assert place(moment, timezone.utc) == Place("time", 10**12 + 500)


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.998Z", "0001-01-02"])
def test_a_time_before_1970_is_1970_because_a_broker_takes_minus_one_for_the_end(text):
    assert place(text, timezone.utc) == Place("time", 0)


@pytest.mark.parametrize(
    "text", ["", "now", "1w", "9" * 19, "9" * 30, "2001-13-01", "0001-01-01T00:00+23:59x", "٣"]
)
def test_anything_else_is_refused(text):
    with pytest.raises(ValueError, match="is not one of earliest, latest"):
        place(text)
