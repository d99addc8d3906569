"""Configurations of topics, groups and brokers."""

from __future__ import annotations

from typing import Any

from dafka.broker.interface.admin import (
    ConfigChange,
    ConfigOperation,
    ConfigSource,
    ConfigType,
    Resource,
    ResourceType,
)
from dafka.broker.looking.outcomes import check
from dafka.console.api.topics import SETTINGS
from dafka.console.desk import Desk
from dafka.console.routes import FLAG, NAME, TEXT, Parameter, Routes, list_of, thing

routes = Routes()

_KINDS = {"topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "broker": ResourceType.BROKER}
_OWN = {ConfigSource.TOPIC, ConfigSource.GROUP, ConfigSource.DYNAMIC_BROKER}
_KIND = Parameter("kind", {"enum": list(_KINDS)}, "Of what", required=True)
_NAME = Parameter("name", TEXT, "Its name; of a broker its number, or nothing: all brokers", required=True)


@routes.add("GET", "/configs", "The settings of a topic, a group or a broker", _KIND, _NAME)
def get_configs(desk: Desk, kind: str, name: str) -> dict[str, Any]:
    resource = Resource(_KINDS[kind], name)
    (found,) = desk.call("describe_configs", {resource: None}).values()
    check({f"{kind} {name}": found})
    return {
        "configs": [
            {
                "name": one.name,
                "value": None if one.sensitive else one.value,
                "source": _word(ConfigSource, one.source),
                "own": one.source in _OWN,
                "read_only": one.read_only,
                "sensitive": one.sensitive,
                "type": _word(ConfigType, one.type),
                "documentation": one.documentation,
            }
            for one in found.entries
        ]
    }


@routes.add(
    "PATCH",
    "/configs",
    "Change settings, all of them or none",
    _KIND,
    _NAME,
    body=thing(set=SETTINGS, unset=list_of(NAME, 1000), check_only=FLAG),
)
def alter_configs(desk: Desk, kind: str, name: str, body: Any) -> dict[str, Any]:
    changes = [ConfigChange(one, ConfigOperation.SET, value) for one, value in body.get("set", {}).items()]
    changes += [ConfigChange(one, ConfigOperation.DELETE) for one in body.get("unset", ())]
    resource = Resource(_KINDS[kind], name)
    outcomes = desk.call("alter_configs", {resource: changes}, validate_only=body.get("check_only", False))
    check({f"{kind} {name}": outcomes[resource]})
    return {"changed": len(changes)}


def _word(words: Any, number: int) -> str:
    try:
        return str(words(number).name.lower())
    except ValueError:
        return str(number)
