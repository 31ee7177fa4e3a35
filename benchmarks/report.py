"""Shows results: the lines on the terminal and `RESULTS.md`.

A pure function of the kept results, so that the page can be written again without measuring.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from benchmarks import graph_view_page
from benchmarks.case import UNITS
from benchmarks.driver import RowResult
from benchmarks.results import HERE, Results
from benchmarks.systems import SYSTEMS, THREADS

PAGE = HERE / "RESULTS.md"
_MEGABYTE = 1e6
# Processors busy with other work from which on a row says so.
_BUSY = 0.1


def row_lines(name: str, result: RowResult) -> list[str]:
    """What the terminal shows of one row."""
    lines = [f"{name}: {result['title']}"]
    for label, measured in result["measurements"].items():
        grown = _growth(result, label)
        lines.append(
            f"  {label:24} {_time(measured, result['unit'])}, n={measured['samples']}{grown}"
        )
    for label, why in result["unavailable"].items():
        lines.append(f"  {label:24} {why}")
    if result["busy_processors"] > _BUSY:
        lines.append(f"  {_noise(result)}")
    lines.append(f"  ratio {_ratio(result)}; target {result['target']}: {_met(result)}")
    return lines


def write_page(results: Results, order: Iterable[str]) -> None:
    """Write `RESULTS.md`, the rows in `order`."""
    PAGE.write_text(page(results, order), encoding="utf-8")


def page(results: Results, order: Iterable[str]) -> str:
    """The text of `RESULTS.md`."""
    found = {name: results["rows"][name] for name in order if name in results["rows"]}
    rows = {name: row for name, row in found.items() if not row.get("section")}
    titles = [system.title for system in SYSTEMS.values()]
    header = ["Row", "Work", *titles, "Flowbook / best peer", "Target", "Met", "Run"]
    parts = [
        "# What the benchmarks measured",
        "",
        "Written by `python -m benchmarks`; do not edit. How to read it: `README.md` here.",
        "Times are medians, the quartiles in brackets; lower is better, a ratio below 1 means that "
        "Flowbook is faster.",
        f"Every system runs in a process of its own, held to {THREADS} threads unless a note "
        "says otherwise; they take turns.",
        "",
        _table_line(header),
        _table_line(["---"] * len(header)),
        *(_table_line(_cells(name, row)) for name, row in rows.items()),
        *_notes(rows),
        *_sections({name: row for name, row in found.items() if name not in rows}),
        *_runs(results, found),
        *graph_view_page.section(),
    ]
    return "\n".join(parts) + "\n"


def _sections(rows: dict[str, RowResult]) -> list[str]:
    """Short tables of many rows, one for each section: what falls furthest behind comes first."""
    lines = []
    for section in dict.fromkeys(row["section"] for row in rows.values()):
        inside = {n: r for n, r in rows.items() if r["section"] == section}
        ranked = sorted(inside, key=lambda name: -(inside[name]["ratio"] or _UNKNOWN)["median"])
        met = sum(row["met"] is True for row in inside.values())
        targets = ", ".join(dict.fromkeys(row["target"] for row in inside.values()))
        header = ["Row", "Work", "Flowbook", "NumPy by hand", "Ratio", "Met", "Run"]
        lines += ["", f"## {section}", ""]
        lines += [f"The target is {targets}; {met} of {len(inside)} rows meet it.", ""]
        lines += [_table_line(header), _table_line(["---"] * len(header))]
        lines += [_table_line(_short_cells(name, inside[name])) for name in ranked]
        notes = [f"- `{n}`: {' '.join(r['notes'])}" for n, r in inside.items() if r["notes"]]
        busiest = max(inside.values(), key=lambda row: row["busy_processors"])
        if busiest["busy_processors"] > _BUSY:
            notes.append(f"- At worst, by row: {_noise(busiest)}")
        lines += ["", *notes] if notes else []
    return lines


_UNKNOWN = {"median": float("inf")}


def _short_cells(name: str, row: RowResult) -> list[str]:
    ratio = "values differ" if row["differing"] else "–"
    if row["ratio"] is not None:
        ratio = "{median:.2f} [{first_quartile:.2f}–{third_quartile:.2f}]".format(**row["ratio"])
    cells = (_system_cell(system, row) for system in ("flowbook", "numpy"))
    return [f"`{name}`", row["title"], *cells, ratio, _met(row), row["run"]]


def _cells(name: str, row: RowResult) -> list[str]:
    systems = [_system_cell(system, row) for system in SYSTEMS]
    return [
        f"`{name}`",
        row["title"],
        *systems,
        _ratio(row),
        row["target"],
        _met(row),
        row["run"],
    ]


def _system_cell(system: str, row: RowResult) -> str:
    """All labels of a system: the plain one, then its variants by name."""
    shown = []
    for label in (*row["measurements"], *row["unavailable"]):
        name, _, variant = label.partition(" ")
        if name != system:
            continue
        if label in row["unavailable"]:
            text = row["unavailable"][label].replace("|", "\\|")
        else:
            text = _time(row["measurements"][label], row["unit"])
        if label in row["differing"]:
            text += " **other value**"
        shown.append(f"{variant}: {text}" if variant else text)
    return "; ".join(shown) or "–"


def _time(measured: dict[str, float], unit: str) -> str:
    median, first, third = (
        _figure(measured[key] / UNITS[unit])
        for key in ("median", "first_quartile", "third_quartile")
    )
    return f"{median} {unit} [{first}–{third}]"


def _figure(value: float) -> str:
    """Three significant digits, never an exponent."""
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def _ratio(row: RowResult) -> str:
    if row["differing"]:
        return "none: values differ"
    if row.get("above"):
        above = {key: 100 * share for key, share in row["above"].items()}
        return "{median:+.1f} % [{low:+.1f} to {high:+.1f}] beside plain".format(**above)
    if row.get("predicted"):
        return f"{row['predicted']:.2f} x the fastest turn was predicted"
    if row["ratio"] is None:
        return "–"
    ratio = row["ratio"]
    spread = f"[{ratio['first_quartile']:.2g}–{ratio['third_quartile']:.2g}]"
    return f"{ratio['median']:.2g} {spread} ({row['best_peer']})"


def _met(row: RowResult) -> str:
    return {None: "–", True: "yes", False: "**no**"}[row["met"]]


def _growth(row: RowResult, label: str) -> str:
    grown = row["growth"].get(label)
    return "" if grown is None else f", resident memory {grown / _MEGABYTE:+.0f} MB"


def _noise(row: RowResult) -> str:
    return (
        f"Other work kept {row['busy_processors']:.1f} processors busy: where threads spin "
        "while they wait (OpenBLAS), times may be far too high."
    )


def _notes(rows: dict[str, Any]) -> list[str]:
    lines = []
    for name, row in rows.items():
        texts = [*row["notes"]]
        texts += [f"The value of {label} {text}." for label, text in row["differing"].items()]
        grown = [f"{label}{_growth(row, label)}" for label in row["growth"]]
        if grown:
            texts.append(f"While timed: {'; '.join(grown)}.")
        if row["busy_processors"] > _BUSY:
            texts.append(_noise(row))
        if texts:
            lines.append(f"- `{name}`: {' '.join(texts)}")
    return ["", "## Notes", "", *lines] if lines else []


def _runs(results: Results, rows: dict[str, Any]) -> list[str]:
    lines = ["", "## Runs", ""]
    for number, run in results["runs"].items():
        machine = run["machine"]
        lines.append(
            f"- Run {number}, {run['date']}, `{run['command']}`: {machine['processor']}, "
            f"{machine['cores']} cores, {machine['memory']}, {machine['system']}."
        )
        lines += _version_lines(row for row in rows.values() if row["run"] == number)
    return lines


def _version_lines(rows: Iterable[RowResult]) -> list[str]:
    versions: dict[str, dict[str, str]] = {}
    for row in rows:
        versions.update(row["versions"])
    return [
        f"  - {SYSTEMS[system].title}: "
        + ", ".join(f"{name} {version}" for name, version in versions[system].items())
        for system in SYSTEMS
        if system in versions
    ]


def _table_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
