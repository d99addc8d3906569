"""What each setting means here, for those who ask for it with a setting (DescribeConfigs, KIP-569).

The texts are in ``documentation.json``. Settings of the broker from which topics or groups take what they do
not set themselves have the text of these; minima and maxima of a group's settings say of what.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from dafka.broker.topics.configs import KEYS
from dafka.broker.topics.group_configs import BOUNDED, bounds_of
from dafka.broker.topics.kafka_configs import group_keys


@cache
def documentation() -> Mapping[str, str]:
    """The texts by the names of settings, of topics, the broker, groups and client metrics."""
    parts = json.loads(files("dafka.broker.topics").joinpath("documentation.json").read_text("utf-8"))
    texts: dict[str, str] = {name: text for part in parts.values() for name, text in part.items()}
    for setting in BOUNDED:
        least, most = bounds_of(setting)
        texts.setdefault(most, f"The most that {setting} of a group may be.")
        if least is not None:
            texts.setdefault(least, f"The least that {setting} of a group may be.")
    for whose, keys in (("topics", KEYS), ("groups", group_keys())):
        for name, key in keys.items():
            if key.broker:
                texts.setdefault(
                    key.broker, f"{texts[name]} This is for {whose} without {name} of their own."
                )
    return texts
