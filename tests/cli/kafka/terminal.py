"""``dafka kafka ...`` as its users type it, in this process."""

from __future__ import annotations

import json
from typing import Any

from click.testing import CliRunner

from dafka.cli import main


class Terminal:
    """Commands at one cluster."""

    def __init__(self, servers: str) -> None:
        self.servers = servers

    def run(self, *arguments: str, stdin: str | bytes = "") -> str:
        """What a command prints; it has to end well."""
        done = self._invoke(*arguments, stdin=stdin)
        assert done.exit_code == 0, (done.output, done.stderr)
        return done.stdout

    def octets(self, *arguments: str) -> bytes:
        """The same, as it is printed."""
        done = self._invoke(*arguments, stdin="")
        assert done.exit_code == 0, (done.output, done.stderr)
        return done.stdout_bytes  # type: ignore[no-any-return]

    def rows(self, *arguments: str, stdin: str | bytes = "") -> list[Any]:
        """What it prints with --json."""
        return [json.loads(line) for line in self.run(*arguments, "--json", stdin=stdin).splitlines()]

    def refused(self, *arguments: str, stdin: str | bytes = "") -> str:
        """The error that it ends with."""
        done = self._invoke(*arguments, stdin=stdin)
        assert done.exit_code == 1, (done.exit_code, done.output)
        return done.stderr

    def misused(self, *arguments: str) -> str:
        """The error of a command line that means nothing."""
        done = self._invoke(*arguments, stdin="")
        assert done.exit_code == 2, (done.exit_code, done.output)
        return done.stderr

    def _invoke(self, *arguments: str, stdin: str | bytes) -> Any:
        done = CliRunner().invoke(
            main,
            ["kafka", *arguments],
            input=stdin,
            env={"DAFKA_KAFKA_BOOTSTRAP_SERVER": self.servers},
        )
        if not isinstance(done.exception, SystemExit | None):
            raise done.exception  # it would have printed a traceback
        return done
