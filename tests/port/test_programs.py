"""Programs for TensorFlow 1 that are ported, run, and learn."""

import sys
from pathlib import Path
from typing import Any

import pytest

import flowbook as fb
from tests.need import requires

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


@requires(module="libcst")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_ported_program_runs_and_learns(path: Path, monkeypatch: Any) -> None:
    from flowbook.port.program import ported

    text = path.read_text(encoding="utf-8")
    result = ported(text)
    assert result.left == []
    assert ported(result.text) == (result.text, [])
    for comment in [line.partition("# ")[2] for line in text.splitlines()]:
        assert comment in result.text
    monkeypatch.setattr(sys, "argv", [path.name])
    fb.reset_default_graph()
    found: dict[str, Any] = {"__name__": "__main__"}
    # What a function main() learns it keeps in its own names.
    source = result.text.replace("    print(first, last)", "    globals().update(locals())")
    exec(compile(source, path.name, "exec"), found)
    assert found["last"] < found["first"] / 2
