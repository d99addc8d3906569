"""``dafka backup``: backups of a broker's or a store's folder, while it runs."""

from __future__ import annotations

import signal
import sys
from typing import Any

import click

from dafka.backup.checking import check
from dafka.backup.creating import create as create_backup
from dafka.backup.errors import BackupDamagedError, NewerBackupError
from dafka.backup.pruning import prune as prune_backups
from dafka.backup.repository import Manifest, Repository
from dafka.backup.restoring import restore as restore_backup
from dafka.broker.looking.outcomes import printable
from dafka.cli.kafka.output import json_option, show

_FOLDER = click.Path(file_okay=False)


@click.group(short_help="Backups of a broker's folder, while it runs.")
def backup() -> None:
    """Back up the folder of a broker or a store, while it runs, and restore it.

    A backup is consistent: it has topics, records, groups and transactions as they were in one moment. Files
    that an earlier one has already are not copied again.

    \b
      dafka backup create brokerdb /mnt/backups
      dafka backup list /mnt/backups
      dafka backup verify /mnt/backups
      dafka backup restore /mnt/backups restored
    """


@backup.command()
@click.argument("data", metavar="DATA", type=_FOLDER)
@click.argument("folder", metavar="BACKUP", type=_FOLDER)
@click.option("--check-all", is_flag=True, help="Compare everything that is reused, not a tenth of it.")
@json_option
def create(data: str, folder: str, check_all: bool, as_json: bool) -> None:
    """Back up the folder DATA to the folder BACKUP, which is made if it is missing.

    A tenth of the files that earlier backups have already is read and compared, another tenth each time:
    damaged ones are told, and copied again.

    After an interruption the same command goes on with what was copied. The exit status is 1 if something in
    DATA was damaged already; the backup is made all the same, and says what.
    """
    try:
        made = create_backup(data, folder, check_all=check_all, say=_say)
    except KeyboardInterrupt:
        click.echo("interrupted; the same command goes on with what was copied", err=True)
        sys.exit(128 + signal.SIGINT)
    _tell(made, as_json, f"backup {made.name}: {made.bytes:,} bytes, {made.new_bytes:,} of them new")


@backup.command("list")
@click.argument("folder", metavar="BACKUP", type=_FOLDER)
@json_option
def list_backups(folder: str, as_json: bool) -> None:
    """List the backups in the folder BACKUP, the oldest first.

    The exit status is 1 if the list of one is damaged, or a newer version's: it is told, and the others are
    listed.
    """
    repository = Repository(folder)
    rows, damages = [], []
    for name in repository.names():
        try:
            rows.append(_row(repository.read(name)))
        except (BackupDamagedError, NewerBackupError) as error:
            damages.append(str(error))
    show(rows, as_json, ["name", "taken", "source", "partitions", "bytes", "new_bytes"])
    for damage in damages:
        click.echo(damage, err=True)
    if damages:
        sys.exit(1)


@backup.command()
@click.argument("folder", metavar="BACKUP", type=_FOLDER)
@click.argument("name", required=False)
def verify(folder: str, name: str | None) -> None:
    """Read everything in the folder BACKUP, or what the backup NAME needs, and compare checksums.

    Each damage is printed with its place, and the exit status is 1 if there is any.
    """
    repository = Repository(folder)
    names = repository.names() if name is None else [repository.read(name).name]
    damages = 0

    def note(place: str, cause: str) -> None:
        nonlocal damages
        damages += 1
        click.echo(f"{place.rstrip(',')}: {cause}")

    size = check(repository, names, note)
    found = "no damage" if not damages else f"{damages} damaged places"
    click.echo(f"{_backups(len(names))}, {size:,} bytes: {found}")
    if damages:
        sys.exit(1)


@backup.command()
@click.argument("folder", metavar="BACKUP", type=_FOLDER)
@click.argument("data", metavar="NEW_DATA", type=_FOLDER)
@click.argument("name", required=False)
@click.option("--keep-damaged", is_flag=True, help="Restore what is left of a damaged backup.")
@json_option
def restore(folder: str, data: str, name: str | None, keep_damaged: bool, as_json: bool) -> None:
    """Restore the newest backup in the folder BACKUP, or the backup NAME, to the new folder NEW_DATA.

    Nothing is ever overwritten. After an interruption the same command goes on.
    """
    try:
        restored = restore_backup(folder, data, name, keep_damaged=keep_damaged, say=_say)
    except KeyboardInterrupt:
        click.echo("interrupted; the same command goes on", err=True)
        sys.exit(128 + signal.SIGINT)
    _tell(restored, as_json, f"restored {restored.name}: {restored.bytes:,} bytes in {data}")


@backup.command()
@click.argument("folder", metavar="BACKUP", type=_FOLDER)
@click.option("--keep", type=click.IntRange(1), required=True, help="How many of the newest backups stay.")
def prune(folder: str, keep: int) -> None:
    """Delete old backups in the folder BACKUP, and what only they had."""
    gone, freed = prune_backups(Repository(folder), keep)
    click.echo(f"{_backups(len(gone))} deleted, {freed:,} bytes freed")


def _tell(made: Manifest, as_json: bool, said: str) -> None:
    if as_json:
        show([{**_row(made), "damaged": made.damaged}], True, [])
    else:
        click.echo(said)
    for damage in made.damaged:
        click.echo(f"damaged when it was backed up: {printable(damage)}", err=True)
    if made.damaged:
        sys.exit(1)


def _row(made: Manifest) -> dict[str, Any]:
    return {
        "name": made.name,
        "taken": made.taken,
        "source": made.source,
        "partitions": made.partitions,
        "bytes": made.bytes,
        "new_bytes": made.new_bytes,
        "values": len(made.values),
        "timeline": made.timeline,
    }


def _say(text: str) -> None:
    click.echo(text, err=True)


def _backups(count: int) -> str:
    return f"{count} backup" if count == 1 else f"{count} backups"
