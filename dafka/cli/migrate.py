"""``dafka migrate``: topics and committed offsets from Kafka to a Dafka broker, and back."""

from __future__ import annotations

import logging
import sys

import click

_FILE = click.Path(exists=True, dir_okay=False)
INTERRUPTED = 130


@click.command()
@click.argument("source")
@click.argument("destination")
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="NAME",
    help="This topic, or a pattern as 'orders-*'; may be repeated.  [default: all]",
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="NAME",
    help="Also the committed offsets of this group, or of a pattern; may be repeated.",
)
@click.option(
    "--follow",
    is_flag=True,
    help="Go on until Enter is pressed or SIGUSR1 comes, then copy the rest and end.",
)
@click.option(
    "--jobs", type=click.IntRange(1, 64), default=4, show_default=True, help="Partitions at a time."
)
@click.option(
    "--checkpoint",
    metavar="FILE",
    help="Where progress is noted.  [default: migration-SOURCE-to-DESTINATION.sqlite]",
)
@click.option(
    "--source-config",
    type=_FILE,
    metavar="FILE",
    help="Kafka's client properties for a source with TLS or accounts: security.protocol=SSL ...",
)
@click.option("--destination-config", type=_FILE, metavar="FILE", help="The same for the destination.")
@click.option(
    "--verify/--no-verify", default=True, show_default=True, help="Compare counts and checksums afterwards."
)
@click.option("-v", "--verbose", is_flag=True, help="Say what is tried again.")
def migrate(
    source: str,
    destination: str,
    topics: tuple[str, ...],
    groups: tuple[str, ...],
    follow: bool,
    jobs: int,
    checkpoint: str | None,
    source_config: str | None,
    destination_config: str | None,
    verify: bool,
    verbose: bool,
) -> None:
    """Copy topics from SOURCE to DESTINATION, each record once.

    Both are HOST:PORT (several with commas), or a folder: that of a Dafka broker which is not running, or in
    the destination's place a new one. Partitions, keys, headers and timestamps stay; aborted records are not
    copied; topics get the settings of the source's at the end. After an interruption, SIGKILL included, the
    same command goes on where it was. Nothing else may write to the topics of the destination until the end.

    The exit status is 1 if it failed or the sides differ, and 130 if it was interrupted.
    """
    try:
        from dafka.migrating.migration import Migration, checkpoint_name
        from dafka.migrating.migration import migrate as run
        from dafka.migrating.signals import Interrupted
    except ModuleNotFoundError as error:
        if error.name != "tqdm":
            raise
        raise click.ClickException("tqdm is missing: pip install 'dafka[migrate]'") from error
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="dafka migrate: %(message)s"
    )
    for library in ("kafka", "dafka"):
        logging.getLogger(library).setLevel(logging.INFO if verbose else logging.ERROR)
    path = checkpoint or checkpoint_name(source, destination)
    try:
        different = run(
            Migration(
                source=source,
                destination=destination,
                checkpoint=path,
                topics=topics,
                groups=groups,
                follow=follow,
                jobs=jobs,
                verify=verify,
                source_config=source_config,
                destination_config=destination_config,
            )
        )
    except Interrupted:
        click.echo(f"interrupted; the same command goes on, with {path}", err=True)
        sys.exit(INTERRUPTED)
    sys.exit(int(different > 0))
