"""``dafka acl``: the access control lists of a broker, with the options of Kafka's ``kafka-acls``."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple

import click

from dafka.cli.where import where
from dafka.security.acls.options import ServerAcls
from dafka.security.acls.terms import (
    CLUSTER_NAME,
    OPERATIONS,
    WILDCARD,
    Acl,
    AclFilter,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

Command = Callable[..., Any]

_NAMED = {  # the options that name a resource
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
}
_OPERATIONS = [one.name.replace("_", "").capitalize() for one in Operation if one >= Operation.ALL]
_PRODUCER = {
    ResourceType.TOPIC: (Operation.WRITE, Operation.DESCRIBE, Operation.CREATE),
    ResourceType.TRANSACTIONAL_ID: (Operation.WRITE, Operation.DESCRIBE),
}
_CONSUMER = {
    ResourceType.TOPIC: (Operation.READ, Operation.DESCRIBE),
    ResourceType.GROUP: (Operation.READ,),
}


class Given(NamedTuple):
    """The resources that the options name."""

    resources: list[tuple[ResourceType, str]]
    pattern: PatternType
    entries: list[tuple[str, str, Permission]]  # principal, host
    operations: tuple[Operation, ...]
    producer: bool
    consumer: bool
    idempotent: bool

    def acls(self) -> list[Acl]:
        """Every entry that they name."""
        return list(
            dict.fromkeys(
                Acl(kind, name, self._pattern(kind), principal, host, operation, permission)
                for kind, name, operation in self._done()
                for principal, host, permission in self.entries
            )
        )

    def _pattern(self, kind: ResourceType) -> PatternType:
        return PatternType.LITERAL if kind is ResourceType.CLUSTER else self.pattern

    def _done(self) -> Iterable[tuple[ResourceType, str, Operation]]:
        if self.producer or self.consumer:
            for kind, name in self.resources:
                for some in (_PRODUCER,) * self.producer + (_CONSUMER,) * self.consumer:
                    for operation in some.get(kind, ()):
                        yield kind, name, operation
            if self.idempotent:
                yield ResourceType.CLUSTER, CLUSTER_NAME, Operation.IDEMPOTENT_WRITE
            return
        for kind, name in self.resources:
            for operation in self.operations or (Operation.ALL,):
                if operation is not Operation.ALL and operation not in OPERATIONS[kind]:
                    known = ", ".join(one.name for one in sorted(OPERATIONS[kind]))
                    raise click.UsageError(f"there is no {operation.name} on a {kind.name}, but {known}, ALL")
                yield kind, name, operation

    def filters(self) -> list[AclFilter]:
        """Filters for the entries that they name; without principals, of all principals."""
        if self.entries:
            return [AclFilter(*acl) for acl in self.acls()]
        operations = self.operations or (Operation.ANY,)
        if self.producer or self.consumer:
            return [
                AclFilter(kind, name, self._pattern(kind), operation=operation)
                for kind, name, operation in self._done()
            ]
        return [
            AclFilter(kind, name, self._pattern(kind), operation=operation)
            for kind, name in self.resources
            for operation in operations
        ]


def _resources(patterns: list[str]) -> Callable[[Command], Command]:
    def decorate(command: Command) -> Command:
        @click.option("--topic", multiple=True, metavar="NAME", help="A topic; *: every one.")
        @click.option("--group", multiple=True, metavar="NAME", help="A group; *: every one.")
        @click.option("--transactional-id", multiple=True, metavar="NAME", help="A transactional id.")
        @click.option("--cluster", is_flag=True, help="The cluster.")
        @click.option(
            "--resource-pattern-type",
            type=click.Choice(patterns, case_sensitive=False),
            default="literal",
            show_default=True,
            help="How names name.",
        )
        @wraps(command)
        def with_resources(*, cluster: bool, resource_pattern_type: str, **options: Any) -> Any:
            found = [(kind, name) for option, kind in _NAMED.items() for name in options.pop(option)]
            if cluster:
                found.append((ResourceType.CLUSTER, CLUSTER_NAME))
            return command(resources=found, pattern=PatternType[resource_pattern_type.upper()], **options)

        return with_resources

    return decorate


def _entries(command: Command) -> Command:
    @click.option(
        "--allow-principal",
        multiple=True,
        metavar="PRINCIPAL",
        help="A principal that may: User:alice, User:*.",
    )
    @click.option("--deny-principal", multiple=True, metavar="PRINCIPAL", help="A principal that may not.")
    @click.option("--allow-host", multiple=True, metavar="ADDRESS", help="From where.  [default: anywhere]")
    @click.option(
        "--deny-host", multiple=True, metavar="ADDRESS", help="From where not.  [default: anywhere]"
    )
    @click.option(
        "--operation",
        multiple=True,
        type=click.Choice(_OPERATIONS, case_sensitive=False),
        help="What.  [default: All]",
    )
    @click.option(
        "--producer", is_flag=True, help="All that a producer needs on --topic and --transactional-id."
    )
    @click.option("--idempotent", is_flag=True, help="With --producer: without a transaction, too.")
    @click.option("--consumer", is_flag=True, help="All that a consumer needs on --topic and --group.")
    @wraps(command)
    def with_entries(
        *,
        resources: list[tuple[ResourceType, str]],
        pattern: PatternType,
        allow_principal: tuple[str, ...],
        deny_principal: tuple[str, ...],
        allow_host: tuple[str, ...],
        deny_host: tuple[str, ...],
        operation: tuple[str, ...],
        producer: bool,
        idempotent: bool,
        consumer: bool,
        **options: Any,
    ) -> Any:
        kinds = {kind for kind, _ in resources}
        if (producer or consumer) and (operation or deny_principal or deny_host):
            raise click.UsageError(
                "--producer and --consumer allow what is needed: give no --operation, no --deny"
            )
        if (producer or consumer) and ResourceType.TOPIC not in kinds:
            raise click.UsageError("--producer and --consumer need --topic")
        if consumer and ResourceType.GROUP not in kinds:
            raise click.UsageError("--consumer needs --group")
        if idempotent and not producer:
            raise click.UsageError("--idempotent needs --producer")
        if not resources:
            raise click.UsageError("say of what: --topic, --group, --transactional-id or --cluster")
        if (allow_host and not allow_principal) or (deny_host and not deny_principal):
            raise click.UsageError("--allow-host needs --allow-principal, and --deny-host --deny-principal")
        entries = [
            (who, host, Permission.ALLOW) for who in allow_principal for host in allow_host or (WILDCARD,)
        ]
        entries += [
            (who, host, Permission.DENY) for who in deny_principal for host in deny_host or (WILDCARD,)
        ]
        operations = tuple(_operation(one) for one in operation)
        given = Given(resources, pattern, entries, operations, producer, consumer, idempotent)
        return command(given=given, **options)

    return with_entries


@click.group(short_help="Access control lists of a broker.")
def acl() -> None:
    """Add, list and remove what clients of a broker may do, and may not.

    They count where a broker runs with --authorizer.
    """


@acl.command()
@_resources(["literal", "prefixed"])
@_entries
@where
def add(given: Given, connect: Any) -> None:
    """Add entries."""
    if not given.entries:
        raise click.UsageError("name a principal: --allow-principal or --deny-principal")
    acls = given.acls()
    with connect(new=True, acls=ServerAcls()) as connection:
        for one, outcome in zip(acls, connection.call("create_acls", acls), strict=True):
            if outcome.error is not None:
                raise click.ClickException(f"{_line(one)}: {outcome.error.__name__}: {outcome.detail}")


@acl.command(name="list")
@_resources(["any", "match", "literal", "prefixed"])
@click.option("--principal", multiple=True, metavar="PRINCIPAL", help="Only of these.")
@where
def list_(
    resources: list[tuple[ResourceType, str]], pattern: PatternType, principal: tuple[str, ...], connect: Any
) -> None:
    """List entries: principal, permission, operation, resource, pattern, name, host."""
    named = [AclFilter(kind, name, pattern) for kind, name in resources] or [AclFilter()]
    filters = [one._replace(principal=who) for one in named for who in principal or (None,)]
    with connect(acls=ServerAcls()) as connection:
        found = {one: None for wanted in filters for one in connection.call("describe_acls", wanted)}
    for line in sorted(map(_line, found)):
        click.echo(line)


@acl.command()
@_resources(["any", "match", "literal", "prefixed"])
@_entries
@where
def remove(given: Given, connect: Any) -> None:
    """Remove entries, without principals those of everybody, and list them."""
    with connect(acls=ServerAcls()) as connection:
        for outcome in connection.call("delete_acls", given.filters()):
            for line in sorted(map(_line, outcome.acls)):
                click.echo(line)
            if outcome.error is not None:
                raise click.ClickException(f"{outcome.error.__name__}: {outcome.detail}")


def _operation(name: str) -> Operation:
    return next(one for one in Operation if one.name.replace("_", "").lower() == name.lower())


def _line(one: Acl) -> str:
    names = one.permission.name, one.operation.name, one.resource_type.name, one.pattern.name
    return "\t".join((one.principal, *names, one.name, one.host))
