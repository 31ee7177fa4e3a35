"""The phases of `make test` and `make browser`: what each runs, and how long it may take.

Every phase runs, whatever becomes of others. One more runs at once than there are processors, since
phases wait too: for threads, kernels, servers and pages. What one says is shown when it ends, or as
it comes if it is the only one. At the end stands one line per phase with its wall time, its
processor time, and its budget of the latter, which does not depend on what else the machine does. A
phase that fails, or succeeds but takes more than its budget, makes the whole fail: slowness is
noticed on the day it arrives.

    python tools/phases.py                  # those of `make test`
    python tools/phases.py types layers     # these
"""

import os
import shutil
import subprocess
import sys
import threading
import time
from argparse import ArgumentParser
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

ENVIRONMENT = Path(sys.executable).parent

# A phase that hangs is stopped when this multiple of its budget has passed. One that is merely
# slow, or has a busy machine, ends by itself before, and its output says what was slow.
PATIENCE = 3


@dataclass(frozen=True)
class Phase:
    """One command of the environment that runs this program, or else of the system, and its budget.

    Attributes:
        name: what it is called on the command line.
        budget: how many seconds of processors it may take.
        command: the program and its arguments.
    """

    name: str
    budget: float
    command: tuple[str, ...]


PYTEST = ("pytest", "--durations=10", "--durations-min=1")
NBVAL = ("--nbval", "--nbval-current-env", "--nbval-sanitize-with=notebooks/sanitize.cfg")

# What has a phase of its own.
APART = ("tests/browser", "tests/examples", "tests/exec", "tests/graph", "tests/notebooks")

# What people see. Chromium's own processes take as much again, which nobody counts.
BROWSER = Phase("browser", 10 * 60, (*PYTEST, "-m", "browser", "tests/browser"))

# Those that take longest begin first, and none takes much more than others: so the last to end has
# company for most of its time.
TESTS = (
    Phase("exec", 6 * 60, (*PYTEST, "tests/exec")),
    Phase("ops", 5 * 60, (*PYTEST, "tests/graph/ops")),
    Phase("tests", 5 * 60, (*PYTEST, "tests", *(f"--ignore={folder}" for folder in APART))),
    Phase("graph", 5 * 60, (*PYTEST, "tests/graph", "--ignore=tests/graph/ops")),
    Phase("examples", 5 * 60, (*PYTEST, "tests/examples", "tests/notebooks")),
    Phase("notebooks", 4 * 60, (*PYTEST, *NBVAL, "notebooks")),
    Phase("types", 120, ("mypy",)),
    Phase("docs", 120, ("mkdocs", "build")),
    Phase("front-end", 60, ("npm", "--prefix", "labextension", "test")),
    Phase("layers", 60, ("lint-imports", "--no-logo")),
    Phase("circles", 60, ("lint-imports", "--no-logo", "--config", "tools/circles.toml")),
    Phase("lint", 30, ("ruff", "check")),
    Phase("format", 30, ("ruff", "format", "--check")),
)


@dataclass(frozen=True)
class Outcome:
    """How it went with a phase.

    Attributes:
        phase: which.
        seconds: how long it took.
        spent: how many seconds of processors it and the processes that it began took.
        failure: what went wrong with its command, if anything.
    """

    phase: Phase
    seconds: float
    spent: float
    failure: str | None

    @property
    def verdict(self) -> str:
        """The last word on the phase: "ok", or why it fails."""
        if self.failure is not None:
            return f"FAILED: {self.failure}"
        if self.spent > self.phase.budget:
            return "FAILED: over its budget"
        return "ok"


def surroundings() -> dict[str, str]:
    """The environment of a phase, where modules are compiled once and not by each process."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def run(phase: Phase, output: IO[bytes] | None) -> Outcome:
    """Run a phase's command; what it says goes to a file, or where this program's goes."""
    program, *arguments = phase.command
    found = shutil.which(program, path=ENVIRONMENT) or program
    limit = phase.budget * PATIENCE
    start = time.monotonic()
    process = subprocess.Popen(
        [found, *arguments], stdout=output, stderr=output, env=surroundings()
    )
    timer = threading.Timer(limit, process.kill)
    timer.start()
    try:
        _, status, usage = os.wait4(process.pid, 0)
    finally:
        timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    failure = f"exit status {process.returncode}" if process.returncode else None
    seconds = time.monotonic() - start
    if seconds > limit:
        failure = f"stopped after {limit:.0f} s"
    return Outcome(phase, seconds, usage.ru_utime + usage.ru_stime, failure)


def announce(phase: Phase) -> None:
    """Say whose output follows."""
    print(f"\n==> {phase.name}: {' '.join(phase.command)}", flush=True)


def run_at_once(phases: list[Phase]) -> list[Outcome]:
    """Run phases beside each other, and show what each said when it ends."""
    outcomes = []
    with ExitStack() as stack:
        files = {phase: stack.enter_context(TemporaryFile()) for phase in phases}
        pool = stack.enter_context(ThreadPoolExecutor((os.cpu_count() or 1) + 1))
        # After an interrupt, which ends those that run, none begins.
        stack.callback(pool.shutdown, cancel_futures=True)
        for future in as_completed([pool.submit(run, phase, files[phase]) for phase in phases]):
            outcome = future.result()
            announce(outcome.phase)
            files[outcome.phase].seek(0)
            shutil.copyfileobj(files[outcome.phase], sys.stdout.buffer)
            sys.stdout.flush()
            outcomes.append(outcome)
    return outcomes


def run_alone(phase: Phase) -> Outcome:
    """Run one phase, and show what it says as it comes."""
    announce(phase)
    return run(phase, None)


def main() -> int:
    """Run the phases named on the command line, or `make test`'s; return the exit status."""
    known = {phase.name: phase for phase in (BROWSER, *TESTS)}
    parser = ArgumentParser(description="Run the phases of `make test`, or some.")
    parser.add_argument("names", nargs="*", metavar="phase", help=", ".join(known))
    names = parser.parse_args().names or [phase.name for phase in TESTS]
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no phase named {', '.join(unknown)}; there are {', '.join(known)}")

    start = time.monotonic()
    phases = [known[name] for name in names]
    outcomes = run_at_once(phases) if len(phases) > 1 else [run_alone(phases[0])]
    print("\nphase       seconds  processors  budget")
    for outcome in outcomes:
        phase = outcome.phase
        times = f"{outcome.seconds:7.1f} {outcome.spent:11.1f} {phase.budget:7.0f}"
        print(f"{phase.name:<11} {times}  {outcome.verdict}")
    print(f"{'all':<11} {time.monotonic() - start:7.1f}")
    return int(any(outcome.verdict != "ok" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
