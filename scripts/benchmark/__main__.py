"""The benchmark: figures of this project beside a reference measured in the same run.

That is a plain pyzmq loop, kafka-python or Apache Kafka, and a line says which. Values are 100 bytes where a
line does not say otherwise, everything is on this machine, and every measurement is a fresh process or two
(see ``processes.py``). The measurements take turns, `--runs` times; the table shows the medians of each line
and of its reference, their ratio, and what is wanted.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median

from libzmq_loops import NotBuiltError
from lines import LINES, Line
from tabulate import tabulate
from tqdm import tqdm

sys.path.append(str(Path(__file__).resolve().parents[1]))

from apache.jars import UnavailableError

HEADERS = ["", "this project", "reference", "", "ratio", "wanted", ""]


def main() -> None:
    options = parse()
    lines = [line for line in LINES if not options.only or any(word in line.name for word in options.only)]
    if not lines:
        sys.exit("bench: no line has that in its name; these are: " + "; ".join(line.name for line in LINES))
    figures: dict[Line, list[float]] = {line: [] for line in lines}
    references: dict[Line, list[float]] = {line: [] for line in lines}
    unavailable: set[str] = set()
    with tqdm(total=options.runs * len(lines), leave=False) as bar:
        for turn in range(options.runs):
            for line in lines:
                bar.set_description(line.name)
                figures[line].append(line.measure(turn))
                try:
                    if line.reference is not None:
                        references[line].append(line.reference(turn))
                except UnavailableError as error:
                    unavailable.add(f"without Apache Kafka: {error}")
                except NotBuiltError as error:
                    unavailable.add(str(error))
                bar.update()
    for reason in sorted(unavailable):
        print(f"bench: {reason}", file=sys.stderr)
    rows = [row(line, median(figures[line]), median(references[line] or [0.0])) for line in lines]
    style = "github" if options.markdown else "simple"
    alignment = ["left", "right", "right", "left", "right", "right", "left"]
    print(tabulate(rows, headers=HEADERS, tablefmt=style, disable_numparse=True, colalign=alignment))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure this project's speed.")
    parser.add_argument("only", nargs="*", metavar="WORD", help="measure the lines with this in their name")
    parser.add_argument("--runs", type=int, default=5, help="the table shows medians of so many runs (5)")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    return parser.parse_args()


def row(line: Line, figure: float, reference: float) -> list[str]:
    ratio = figure / reference if reference else None
    return [
        line.name,
        line.unit(figure),
        line.unit(reference) if reference else "-",
        line.beside,
        f"{ratio:.3g}" if ratio else "-",
        line.wanted,
        line.met(figure, ratio),
    ]


if __name__ == "__main__":
    main()
