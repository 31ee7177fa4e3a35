"""The phases of `make test`: what each runs, and how long it may take.

Every phase runs, whatever became of those before it; its output is shown as it comes. At the end
stands one line per phase with its wall time and its budget. A phase that fails, or succeeds but
takes longer than its budget, makes the whole fail: slowness is noticed on the day it arrives.

    python tools/phases.py                  # all of them
    python tools/phases.py types layers     # these
"""

import shutil
import subprocess
import sys
import time
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = Path(sys.executable).parent

# A phase that hangs is stopped at this multiple of its budget. One that is merely slow ends by
# itself before, and its output says what was slow.
PATIENCE = 1.5


@dataclass(frozen=True)
class Phase:
    """One command of the environment that runs this program, or else of the system, and its budget.

    Attributes:
        name: what it is called on the command line.
        budget: how many seconds it may take.
        command: the program and its arguments.
    """

    name: str
    budget: float
    command: tuple[str, ...]


PYTEST = ("pytest", "--durations=10", "--durations-min=1")
NBVAL = ("--nbval", "--nbval-current-env", "--nbval-sanitize-with=notebooks/sanitize.cfg")
NOTEBOOKS = ("-p", "nbval", *NBVAL)

PHASES = (
    Phase("lint", 30, ("ruff", "check")),
    Phase("format", 30, ("ruff", "format", "--check")),
    Phase("types", 120, ("mypy",)),
    Phase("layers", 60, ("lint-imports", "--no-logo")),
    Phase("circles", 60, ("lint-imports", "--no-logo", "--config", "tools/circles.toml")),
    Phase("docs", 120, ("mkdocs", "build")),
    Phase("front-end", 60, ("npm", "--prefix", "labextension", "test")),
    Phase("tests", 10 * 60, (*PYTEST, "tests")),
    Phase("notebooks", 4 * 60, (*PYTEST, *NOTEBOOKS, "notebooks")),
    Phase("browser", 7 * 60, (*PYTEST, "-m", "browser", "tests/browser")),
)


@dataclass(frozen=True)
class Outcome:
    """How long a phase took, in seconds, and what went wrong with its command, if anything."""

    phase: Phase
    seconds: float
    failure: str | None

    @property
    def verdict(self) -> str:
        """The last word on the phase: "ok", or why it fails."""
        if self.failure is not None:
            return f"FAILED: {self.failure}"
        if self.seconds > self.phase.budget:
            return "FAILED: over its time budget"
        return "ok"


def run(phase: Phase) -> Outcome:
    """Run a phase's command, with its output going where this program's goes."""
    print(f"\n==> {phase.name}: {' '.join(phase.command)}", flush=True)
    program, *arguments = phase.command
    found = shutil.which(program, path=ENVIRONMENT) or program
    limit = phase.budget * PATIENCE
    start = time.monotonic()
    try:
        status = subprocess.run([found, *arguments], timeout=limit).returncode
        failure = f"exit status {status}" if status else None
    except subprocess.TimeoutExpired:
        failure = f"stopped after {limit:.0f} s"
    return Outcome(phase, time.monotonic() - start, failure)


def main() -> int:
    """Run the phases named on the command line, or all; return the exit status."""
    known = {phase.name: phase for phase in PHASES}
    parser = ArgumentParser(description="Run the phases of `make test`.")
    parser.add_argument("names", nargs="*", metavar="phase", help=", ".join(known))
    names = parser.parse_args().names or list(known)
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no phase named {', '.join(unknown)}; there are {', '.join(known)}")

    outcomes = [run(known[name]) for name in names]
    print("\nphase       seconds  budget")
    for outcome in outcomes:
        phase = outcome.phase
        print(f"{phase.name:<11} {outcome.seconds:7.1f} {phase.budget:7.0f}  {outcome.verdict}")
    return int(any(outcome.verdict != "ok" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
