"""The settings of quotas that a broker is started with, by Kafka's names."""

from __future__ import annotations

from collections.abc import Mapping

from dafka.broker.quotas.allowance import Windows

DEFAULTS = {
    "quota.window.num": 11,
    "quota.window.size.seconds": 1,
    "controller.quota.window.num": 11,
    "controller.quota.window.size.seconds": 1,
}
_MOST = {"num": 100, "seconds": 3600}


def check_quota_settings(settings: Mapping[str, str]) -> None:
    """Raise ValueError for settings that a broker cannot be started with."""
    for name, value in settings.items():
        if name not in DEFAULTS:
            listed = ", ".join(DEFAULTS)
            raise ValueError(f"{name!r} is not one of the settings of quotas, which are {listed}")
        most = _MOST[name.rpartition(".")[2]]
        is_number = isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 10
        if not is_number or not 1 <= int(value) <= most:
            raise ValueError(f"{name} is a text with a number from 1 to {most}, not {value!r:.100}")


def windows(settings: Mapping[str, str], prefix: str = "") -> Windows:
    """The windows in which octets, requests and connections are counted; prefix "controller.": changes of
    topics."""
    names = (f"{prefix}quota.window.num", f"{prefix}quota.window.size.seconds")
    number, seconds = (int(settings.get(name, DEFAULTS[name])) for name in names)
    return Windows(number, float(seconds))
