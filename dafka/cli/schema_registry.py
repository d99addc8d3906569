"""The options that say where the schemas of records are."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from dafka.console.decoding.options import SchemaRegistry
from dafka.security.tls import ClientTls

Command = Callable[..., Any]

_FILE = click.Path(exists=True, dir_okay=False)


def schema_registry_options(command: Command) -> Command:
    """``--schema-registry`` and its siblings; the command gets them as ``registry``, None without one."""

    @click.option(
        "--schema-registry",
        metavar="URL",
        envvar="DAFKA_SCHEMA_REGISTRY",
        callback=_url,
        help="Where the schemas of Avro, Protobuf and JSON Schema are: http://HOST:PORT.",
    )
    @click.option("--schema-registry-user", metavar="NAME", help="The user that asks it.")
    @click.option(
        "--schema-registry-password", type=_FILE, metavar="FILE", help="A file with the password in it."
    )
    @click.option(
        "--schema-registry-cafile", type=_FILE, metavar="FILE", help="Authorities of its certificate, PEM."
    )
    @wraps(command)
    def with_registry(
        *,
        schema_registry: str | None,
        schema_registry_user: str | None,
        schema_registry_password: str | None,
        schema_registry_cafile: str | None,
        **options: Any,
    ) -> Any:
        registry = None
        if schema_registry is not None:
            registry = _registry(
                schema_registry, schema_registry_user, schema_registry_password, schema_registry_cafile
            )
        elif schema_registry_user or schema_registry_password or schema_registry_cafile:
            raise click.UsageError(
                "--schema-registry-user, --schema-registry-password and --schema-registry-cafile need "
                "--schema-registry URL"
            )
        return command(registry=registry, **options)

    return with_registry


def _url(ctx: click.Context, param: click.Parameter, url: str | None) -> str | None:
    try:
        if url is not None:
            SchemaRegistry(url)
    except ValueError as error:  # which does not show it: it may have a password in it
        raise click.BadParameter(str(error), ctx, param) from None
    return url


def _registry(url: str, user: str | None, password: str | None, cafile: str | None) -> SchemaRegistry:
    """Raises click.ClickException."""
    if password is not None and user is None:
        raise click.UsageError("--schema-registry-password needs --schema-registry-user")
    try:
        secret = "" if password is None else Path(password).read_text("utf-8").rstrip("\r\n")
        tls = None if cafile is None else ClientTls(cafile=cafile)
        return SchemaRegistry(url, user, secret, tls)
    except (OSError, ValueError) as error:
        raise click.ClickException(f"--schema-registry: {error}") from None
