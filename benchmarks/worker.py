"""The process that runs one system: `python -m benchmarks.worker`, spoken to over its pipes.

It opens one case of one row and takes a sample whenever the driver asks. It answers once all of its
threads rest: between requests it waits on its standard input and uses no processor.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import IO

from benchmarks import clock, protocol
from benchmarks.case import as_value
from benchmarks.rows import ROWS
from benchmarks.systems import limit_processors, system_of


def main() -> None:
    """Answer requests until the driver closes the pipe."""
    limit_processors()
    answers = _claim_standard_output()
    timer: clock.Timer | None = None
    while (request := protocol.receive(sys.stdin)) is not None:
        try:
            match request["do"]:
                case "open":
                    answer, timer = _open(request)
                case "warm_up" if timer:
                    timer.warm_up()
                    answer = {}
                case "sample" if timer:
                    answer = timer.sample()._asdict()
                case "resident":
                    answer = {"bytes": _resident_bytes()}
                case unknown:
                    answer = {"error": f"the worker cannot {unknown!r} now"}
        except Exception:
            answer = {"error": traceback.format_exc()}
        clock.rest()
        protocol.send(answers, answer)


def _open(request: protocol.Message) -> tuple[protocol.Message, clock.Timer | None]:
    """Load the system and build the case."""
    system = system_of(request["label"])
    try:
        loaded = system.load()
    except ModuleNotFoundError as error:
        if error.name != system.module:
            raise
        return {"missing": f"{system.title} is not installed"}, None
    row = ROWS[request["row"]]
    case = row.cases[request["label"]](loaded)
    effort = clock.QUICK if request["quick"] else clock.BUSY if row.busy else clock.FULL
    timer = clock.Timer(case, effort)
    value = protocol.encode_array(as_value(case.value))
    answer = {"value": value, "versions": system.versions(), "predicted": case.predicted}
    return answer, timer


def _claim_standard_output() -> IO[str]:
    """Keep the pipe to the driver for answers; whatever a library prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _resident_bytes() -> int | None:
    """This process's resident memory, where the system tells it (Linux)."""
    statm = Path("/proc/self/statm")
    if not statm.exists():
        return None
    return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
