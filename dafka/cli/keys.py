"""Setting options by environment variables and by keys of a file in ZPL.

Both names are made of the command's and the option's: ``--retention-ms`` of ``dafka store`` is
``DAFKA_STORE_RETENTION_MS`` and ``store/retention_ms``. The keys of the C daemons have names of their own.
Every command with ``--config`` reads one, so each of its options has a key.

A key or a variable that no option has is an error: a broker whose ``broker/db`` is misspelt would run with
its data in another folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

import click

PREFIX = "DAFKA_"
# Variables that are not options of a command, with what they set.
OTHERS = {"DAFKA_EMBEDDED": "the folder of the broker that every address of compat.kafka means"}
# Of ./scripts and tests.
_SCRIPTS = re.compile(r"DAFKA_(CACHE|FUZZ_\w+|(?:SPARK_)?KILLS|MAVEN_REPOSITORY|TEST_\w+)")

# Docker and Kubernetes describe each service to all containers beside it. For a service called "dafka" or
# "dafka-broker" the variables have our prefix, but are not settings.
_OF_A_SERVICE = re.compile(r"\w+_(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)")
_OF_A_SERVICE_ADDRESS = re.compile(r"(tcp|udp|sctp)://")

# Where the words of the C daemons' files are not ours.
_SECTIONS = {"produce": "producer", "consume": "consumer"}
_BEACON = {
    "advertise": "beacon/address",
    "beacon_interval": "beacon/interval",
    "beacon_timeout": "beacon/timeout",
    "pub": "beacon/pub_address",
    "sub": "beacon/sub_address",
}
_VERBOSE = "beacon/verbose"
_TOOLS = ("perf consumer", "perf producer", "perf store", "sniff", "topics")
_NAMES = {
    "tower": {"pub": "tower/pub_address", "sub": "tower/sub_address"},
    "broker": {"data": "broker/db"},
    "store": {"folder": "store/db"},
    "consume": {"start": "consumer/offset/reset"},
    **{path: {"verbose": _VERBOSE} for path in _TOOLS},
}
_WITHOUT_KEY = {"config"}


class Setting(NamedTuple):
    """An option of a command, or an argument that has a variable, and where else it is set."""

    parameter: click.Parameter
    variable: str
    key: str | None


class UnknownNameError(click.UsageError):
    """Unknown keys of a file or variables of the environment."""

    def __init__(self, where: str, names: Iterable[str], known: Iterable[str], command: str) -> None:
        candidates = sorted(known)
        described = []
        for name in names:
            near = get_close_matches(name, candidates, 1, 0.0)
            described.append(f"{name!r}" + (f" (the nearest known one is {near[0]!r})" if near else ""))
        super().__init__(f"{where} unknown: {', '.join(described)}; `dafka config {command}` lists them all")


def commands_of(
    command: click.Command, path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """A command with the names that lead to it (perf, store); of a group all commands in it."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        child = command.get_command(context, name)
        if child is not None:
            yield from commands_of(child, (*path, name))


def settings(command: click.Command, path: tuple[str, ...]) -> Iterator[Setting]:
    """The settings of the command at ``path``."""
    reads_files = any(parameter.name == "config" for parameter in command.params)
    prefix = PREFIX + "_".join(path).replace("-", "_").upper()
    for parameter in command.params:
        name = str(parameter.name)
        has_key = reads_files and name not in _WITHOUT_KEY
        if isinstance(parameter, click.Option) or isinstance(parameter.envvar, str):
            variable = parameter.envvar if isinstance(parameter.envvar, str) else f"{prefix}_{name.upper()}"
            yield Setting(parameter, variable, key_of(path, name) if has_key else None)


def key_of(path: tuple[str, ...], name: str) -> str:
    """The key of a parameter of the command that ``path`` names."""
    words = _NAMES.get(" ".join(path), {})
    if name in words:
        return words[name]
    if name in _BEACON and path != ("tower",):
        return _BEACON[name]
    return f"{section_of(path)}/{name}"


def section_of(path: tuple[str, ...]) -> str:
    """The section of a file that belongs to a command."""
    return "/".join((_SECTIONS.get(path[0], path[0]), *path[1:]))


def owner(key: str, commands: Iterable[str]) -> str | None:
    """The command to whose section a key belongs."""
    first = key.split("/", 1)[0]
    return next((command for command in commands if _SECTIONS.get(command, command) == first), None)


def check_keys(
    where: str,
    keys: Iterable[str],
    path: tuple[str, ...],
    commands: Iterable[str],
    load: Callable[[str], click.Command | None],
) -> None:
    """Raise UnknownNameError for unknown keys.

    Several commands may share a file, as the C daemons do: a section of another one is checked, too, which
    needs that command, so ``load`` is called for those that the file speaks of and for no others.
    """
    commands = list(commands)
    keys = list(keys)
    shared = {*_BEACON.values(), _VERBOSE}
    known = set(shared)
    for name in {path[0], *(owned for key in keys if (owned := owner(key, commands)) is not None)}:
        command = load(name)
        if command is not None:
            known.update(one.key for one in _all_settings(command, name) if one.key is not None)
    unknown = [key for key in keys if key not in known]
    if unknown:
        raise UnknownNameError(f"{where}: keys that are", unknown, known, " ".join(path))


def check_variables(
    environment: Mapping[str, str],
    name: str,
    command: click.Command,
    commands: Iterable[str],
) -> None:
    """Raise UnknownNameError for variables with our prefix that mean nothing.

    The variables of another command are looked at when that one runs.
    """
    others = [f"{PREFIX}{other.upper()}_" for other in commands if other != name]
    candidates = [
        variable
        for variable in environment
        if variable.startswith(PREFIX)
        and variable not in OTHERS
        and not any(variable.startswith(other) for other in others)
        and not _SCRIPTS.fullmatch(variable)
        and not _of_a_service(variable, environment[variable])
    ]
    if not candidates:
        return  # without looking into the command, whose parts may have to be imported for that
    known = {one.variable for one in _all_settings(command, name)} | {*OTHERS}
    unknown = sorted(set(candidates) - known)
    if unknown:
        raise UnknownNameError("variables of the environment that are", unknown, known, name)


def _all_settings(command: click.Command, name: str) -> Iterator[Setting]:
    for path, child in commands_of(command, (name,)):
        yield from settings(child, path)


def _of_a_service(variable: str, value: str) -> bool:
    if _OF_A_SERVICE.fullmatch(variable):
        return True
    return variable.endswith("_PORT") and _OF_A_SERVICE_ADDRESS.match(value) is not None
