"""Keeps `results.json`: for every row its last full measurement, and the run that it is from.

Only the rows that ran are replaced.  A run (date, command, machine) stays as long as some row
refers to it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine

HERE = Path(__file__).parent
_JSON = HERE / "results.json"

Results = dict[str, Any]


def load() -> Results:
    """The kept results, empty where there are none yet."""
    if not _JSON.exists():
        return {"runs": {}, "rows": {}}
    results: Results = json.loads(_JSON.read_text(encoding="utf-8"))
    return results


def new_run(command: str) -> dict[str, Any]:
    """What is recorded about one call of the driver."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "command": command,
        "machine": describe_machine(),
    }


def merge(results: Results, run: dict[str, Any], rows: dict[str, Any]) -> Results:
    """The results with `rows`, measured in `run`, in place of their predecessors.

    >>> old = {"runs": {"1": {"date": "a"}}, "rows": {"x": {"run": "1"}}}
    >>> merge(old, {"date": "b"}, {"x": {}})
    {'runs': {'2': {'date': 'b'}}, 'rows': {'x': {'run': '2'}}}
    """
    number = str(1 + max(map(int, results["runs"]), default=0))
    merged = {**results["rows"], **{name: {**row, "run": number} for name, row in rows.items()}}
    used = {row["run"] for row in merged.values()}
    runs = {**results["runs"], number: run}
    return {"runs": {key: runs[key] for key in runs if key in used}, "rows": merged}


def save(results: Results) -> None:
    """Write `results.json`."""
    _JSON.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
