"""The command: ``run`` a node, ``fetch`` what it needs, print its ``classpath`` or its ``configs``, ``lock``
other versions."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import threading

from . import jars
from .jars import UnavailableError
from .node import StartError, java, running

SKIPPED = 77  # the exit status by which test harnesses skip


def main() -> int:
    options = _parser().parse_args()
    try:
        if options.command == "run":
            _run(options.heap, dict(options.set))
        elif options.command == "configs":
            from .configs import listing  # which needs kafka-python

            with running() as node:
                print(listing(node.bootstrap_servers), end="")
        elif options.command == "lock":
            jars.lock()
        else:
            path = jars.classpath()
            java()
            print(
                path
                if options.command == "classpath"
                else f"Apache Kafka {jars.version()} is in {jars.CACHE}"
            )
    except UnavailableError as error:
        print(f"apache_kafka: {error}", file=sys.stderr)
        return SKIPPED
    except (StartError, OSError, subprocess.CalledProcessError) as error:
        print(f"apache_kafka: {error}", file=sys.stderr)
        return 1
    return 0


def _run(heap: str, settings: dict[str, str]) -> None:
    over = threading.Event()
    signal.signal(signal.SIGTERM, _interrupted)
    signal.signal(signal.SIGINT, _interrupted)
    try:
        with running(heap=heap, settings=settings) as node:
            print(node.bootstrap_servers, flush=True)
            threading.Thread(target=_read_to_end, args=(over,), daemon=True).start()
            over.wait()
    except KeyboardInterrupt:
        pass


def _interrupted(number: int, frame: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _read_to_end(over: threading.Event) -> None:
    while sys.stdin.buffer.raw.read(4096):  # type: ignore[attr-defined]
        pass
    over.set()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/apache_kafka",
        description="Run one node of Apache Kafka on loopback in a temporary folder, for tests and "
        f"benchmarks. Exits with status {SKIPPED} and the reason where Java or Maven Central is missing.",
        epilog="$DAFKA_MAVEN_REPOSITORY: the repository to fetch from; otherwise the mirror of central in "
        "Maven's settings, otherwise Maven Central. $DAFKA_CACHE: the folder to keep jars in (.cache). "
        "$JAVA_HOME: the Java to run it with.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser(
        "run",
        help="run a node until SIGTERM or the end of standard input; its first "
        "line of output is its bootstrap address",
    )
    run.add_argument("--heap", default="512m", help="Java's -Xms and -Xmx (512m)")
    run.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        type=_setting,
        help="a setting of Kafka's server.properties; may be repeated",
    )
    commands.add_parser("fetch", help="only fetch the jars")
    commands.add_parser("classpath", help="fetch the jars and print Java's class path of them")
    commands.add_parser("configs", help="run a node and print all settings that it has (needs kafka-python)")
    commands.add_parser("lock", help="write scripts/apache/jars.txt anew from pom.xml (needs Maven)")
    return parser


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


if __name__ == "__main__":
    sys.exit(main())
