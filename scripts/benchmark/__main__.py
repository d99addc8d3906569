"""The benchmark: what this project does, beside a plain pyzmq loop or kafka-python doing it in the same run.

Every measurement is a fresh process or pair of processes (see ``processes.py``), values are 100 bytes, all
on this machine. A line's own measurement and its reference take turns, `--runs` times; the table shows the
medians and their ratio, and beside it what is wanted.
"""

from __future__ import annotations

import argparse
import sys
from statistics import median

from lines import LINES, Line
from tabulate import tabulate
from tqdm import tqdm

HEADERS = ["", "this project", "reference", "", "ratio", "wanted", ""]


def main() -> None:
    options = parse()
    chosen = [line for line in LINES if not options.only or any(word in line.name for word in options.only)]
    if not chosen:
        sys.exit("bench: no line has that in its name; these are: " + "; ".join(line.name for line in LINES))
    rows = []
    with tqdm(total=options.runs * len(chosen), unit="run", leave=False, disable=None) as bar:
        for line in chosen:
            bar.set_description(line.name)
            rows.append(measured(line, options.runs, bar))
    form = "github" if options.markdown else "simple"
    print(tabulate(rows, headers=HEADERS, tablefmt=form, disable_numparse=True, colalign=["left"] + ["right"] * 6))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description="Measure this project's speed.")
    parser.add_argument("only", nargs="*", metavar="WORD", help="measure the lines with this in their name")
    parser.add_argument("--runs", type=int, default=5, help="the table shows medians of so many runs (5)")
    parser.add_argument("--markdown", action="store_true", help="print the table in Markdown")
    return parser.parse_args()


def measured(line: Line, runs: int, bar: tqdm) -> list[str]:
    own, reference = [], []
    for _ in range(runs):
        own.append(line.measure())
        if line.reference is not None:
            reference.append(line.reference())
        bar.update()
    figure = median(own)
    compared = median(reference) if reference else None
    ratio = None if compared is None else figure / compared
    return [
        line.name,
        line.unit(figure),
        "-" if compared is None else line.unit(compared),
        line.beside,
        "-" if ratio is None else f"{ratio:.3g}",
        line.wanted,
        "yes" if line.is_met(figure, ratio) else "NO",
    ]


if __name__ == "__main__":
    main()
