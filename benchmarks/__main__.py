"""The command line: `python -m benchmarks [row ...]`, from the root of the repository."""

from __future__ import annotations

import argparse
import sys
from fnmatch import fnmatchcase

from benchmarks import results
from benchmarks.case import Row
from benchmarks.driver import run_row
from benchmarks.peers import install_peers
from benchmarks.report import PAGE, row_lines, write_page
from benchmarks.rows import ROWS
from benchmarks.systems import SYSTEMS


def main(arguments: list[str]) -> int:
    """Run what the arguments say and return the exit status."""
    options = _parse(arguments)
    if options.rows == ["peers"]:
        install_peers()
        return 0
    if options.list:
        for row in ROWS.values():
            print(f"{row.name:20} {row.title} (target {row.target.describe(row.unit)})")
        return 0
    rows = _choose(options.rows)
    if not rows:
        print(f"no row is called {' or '.join(options.rows)}; --list shows them", file=sys.stderr)
        return 2
    _measure(rows, options, "python -m benchmarks " + " ".join(arguments))
    return 0


def _measure(rows: list[Row], options: argparse.Namespace, command: str) -> None:
    """Measure the rows; keep each as soon as it is done, unless the run is only a look."""
    keep = not options.quick and not options.only
    run = results.new_run(command.strip())
    measured = {}
    before = results.load()
    for row in rows:
        labels = [
            label for label in row.cases if not options.only or label.split()[0] in options.only
        ]
        result = run_row(row, labels, quick=options.quick, say=_say)
        print("\n".join(row_lines(row.name, result)), flush=True)
        if keep:
            measured[row.name] = result
            merged = results.merge(before, run, measured)
            results.save(merged)
            write_page(merged, ROWS)
    print(f"written: {PAGE.name}" if keep else "nothing written: --quick or --only is only a look")


def _parse(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure Flowbook and its peers in turn and write benchmarks/RESULTS.md.",
    )
    parser.add_argument(
        "rows", nargs="*", help="names or patterns of rows (default: all); `peers` installs them"
    )
    parser.add_argument("--list", action="store_true", help="show the rows")
    parser.add_argument(
        "--quick", action="store_true", help="three short rounds, to see that it works"
    )
    parser.add_argument(
        "--only",
        type=lambda text: text.split(","),
        metavar="SYSTEM,...",
        help=f"only these of {', '.join(SYSTEMS)}",
    )
    return parser.parse_args(arguments)


def _choose(patterns: list[str]) -> list[Row]:
    """The rows that one of the patterns matches, in the table's order; all for none."""
    if not patterns:
        return list(ROWS.values())
    return [
        row for row in ROWS.values() if any(fnmatchcase(row.name, pattern) for pattern in patterns)
    ]


def _say(text: str) -> None:
    print(f"[{text}]" if "\n" not in text else text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
