"""The driver's end of one worker process."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy.typing as npt

from benchmarks import protocol
from benchmarks.case import Row
from benchmarks.systems import limited_environment, system_of

_ROOT = Path(__file__).parent.parent
_SECONDS_TO_END = 10


class CaseUnavailableError(Exception):
    """A case cannot be timed; the message is what the table says."""


class RemoteCase:
    """One case, open in a process of its own; made by `open_case`."""

    def __init__(self, label: str, process: subprocess.Popen[str], log: IO[str]) -> None:
        self.label = label
        self.value: npt.NDArray[Any]
        self.versions: dict[str, str] = {}
        self.predicted: float | None = None
        self.samples: list[list[float]] = []
        self.beside: list[list[float]] = []
        self._process = process
        self._log = log
        self._resident_at_start: int | None = None

    def open(self, row: str, *, quick: bool) -> None:
        """Build the case over there; sets its value, versions and prediction."""
        answer = self._ask({"do": "open", "row": row, "label": self.label, "quick": quick})
        self.value = protocol.decode_array(answer["value"])
        self.versions = answer["versions"]
        self.predicted = answer["predicted"]

    def warm_up(self) -> None:
        """Bring it to its steady state."""
        self._ask({"do": "warm_up"})
        self._resident_at_start = self._ask({"do": "resident"})["bytes"]

    def sample(self) -> None:
        """Let it take its turn; the seconds per step go to `samples`, and to `beside`."""
        answer = self._ask({"do": "sample"})
        self.samples.append(answer["seconds"])
        self.beside.append(answer["beside"])

    def growth(self) -> int | None:
        """Bytes by which its resident memory grew since the warm-up, where known."""
        resident = self._ask({"do": "resident"})["bytes"]
        if resident is None or self._resident_at_start is None:
            return None
        return int(resident) - self._resident_at_start

    def _ask(self, request: protocol.Message) -> protocol.Message:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            protocol.send(self._process.stdin, request)
            answer = protocol.receive(self._process.stdout)
        except BrokenPipeError:
            answer = None
        if answer is None:
            self._log.seek(0)
            raise CaseUnavailableError(f"its process ended:\n{self._log.read()[-2000:]}")
        if "missing" in answer:
            raise CaseUnavailableError("not installed")
        if "error" in answer:
            raise CaseUnavailableError(f"failed:\n{answer['error']}")
        return answer


@contextmanager
def open_case(row: Row, label: str, *, quick: bool) -> Iterator[RemoteCase]:
    """Start a worker with one case; it ends with the context.

    Raises CaseUnavailableError where its system is not installed or the case cannot be built.
    """
    interpreter = system_of(label).interpreter()
    if not interpreter.exists():
        raise CaseUnavailableError("not installed")
    with (
        tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace") as log,
        subprocess.Popen(
            [str(interpreter), "-m", "benchmarks.worker"],
            cwd=_ROOT,
            env=limited_environment(row.threads),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as process,
    ):
        try:
            case = RemoteCase(label, process, log)
            case.open(row.name, quick=quick)
            yield case
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """End the process: politely by closing its input, then by force."""
    if process.stdin is not None:
        with suppress(BrokenPipeError):
            process.stdin.close()
    try:
        process.wait(timeout=_SECONDS_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
