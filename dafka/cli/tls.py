"""The options of a server's certificate."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, get_args

import click

from dafka.security.tls import ClientAuth, ServerTls

Command = Callable[..., Any]

_FILE = click.Path(dir_okay=False)


def tls_options(command: Command) -> Command:
    """``--ssl-certfile`` and its siblings; the command gets them as ``tls``, None without a certificate."""

    @click.option("--ssl-certfile", type=_FILE, metavar="FILE", help="The server's certificate, PEM.")
    @click.option(
        "--ssl-keyfile", type=_FILE, metavar="FILE", help="Its key, PEM.  [default: in the certfile]"
    )
    @click.option("--ssl-password", metavar="TEXT", help="Of the key. Better in the environment than here.")
    @click.option(
        "--ssl-cafile", type=_FILE, metavar="FILE", help="Authorities of clients' certificates, PEM."
    )
    @click.option(
        "--ssl-client-auth",
        type=click.Choice(get_args(ClientAuth)),
        default="none",
        show_default=True,
        help="Whether clients show a certificate.",
    )
    @click.option(
        "--ssl-principal-rules",
        default="DEFAULT",
        show_default=True,
        metavar="RULES",
        help="How a certificate becomes a principal, as Kafka's ssl.principal.mapping.rules.",
    )
    @wraps(command)
    def with_tls(
        *,
        ssl_certfile: str | None,
        ssl_keyfile: str | None,
        ssl_password: str | None,
        ssl_cafile: str | None,
        ssl_client_auth: ClientAuth,
        ssl_principal_rules: str,
        **options: Any,
    ) -> Any:
        tls = None
        if ssl_certfile is not None:
            tls = ServerTls(
                certfile=ssl_certfile,
                keyfile=ssl_keyfile,
                password=ssl_password,
                cafile=ssl_cafile,
                client_auth=ssl_client_auth,
                principal_rules=ssl_principal_rules,
            )
        elif ssl_keyfile or ssl_cafile or ssl_client_auth != "none":
            raise click.UsageError("--ssl-keyfile, --ssl-cafile and --ssl-client-auth need --ssl-certfile")
        return command(tls=tls, **options)

    return with_tls
