"""Programs for TensorFlow 1 that are ported, run, and learn."""

import sys
from pathlib import Path
from typing import Any

import pytest

import flowbook as fb
from tests.need import requires

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))


def run(name: str, text: str, monkeypatch: Any) -> dict[str, Any]:
    """The names that a program has given values to."""
    monkeypatch.setattr(sys, "argv", [name])
    fb.reset_default_graph()
    found: dict[str, Any] = {"__name__": "__main__"}
    # What a function main() learns it keeps in its own names.
    source = text.replace("    print(first, last)", "    globals().update(locals())")
    exec(compile(source, name, "exec"), found)
    return found


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
    found = run(path.stem, result.text, monkeypatch)
    assert found["last"] < found["first"] / 2


# Programs of which a little is left to a person: on which lines, and what makes them run.
BY_HAND: dict[str, tuple[list[int], list[tuple[str, str]]]] = {
    "seq2seq_char_rnn": (
        [35],
        [
            (
                "fb.contrib.legacy_seq2seq.rnn_decoder(inputs, self.initial_state, cell,",
                "fb.nn.static_rnn(cell, inputs, initial_state=self.initial_state,",
            ),
            ("loop_function=loop if infer else None, ", ""),
            ("scope=", "name="),
        ],
    ),
    "dcgan_of_2016": (
        [154, 154, 168, 168],
        [
            ("        if reuse:\n            fb.get_variable_scope().reuse_variables()\n", ""),
            ("        fb.get_variable_scope().reuse_variables()\n", ""),
            ("image, reuse=False)", "image)"),
            ("    def discriminator(", "    @fb.template\n    def discriminator("),
            ("self.discriminator(self.G, reuse=True)", "self.discriminator(self.G)"),
            ("    def generator(", "    @fb.template\n    def generator("),
            ("self.sampler(self.z)", "self.generator(self.z)"),
        ],
    ),
    "ptb": (
        [145, 151],
        [
            ('with fb.variable_scope("Model", reuse=None, initializer=initializer)', "if True"),
            ('with fb.variable_scope("Model", reuse=True, initializer=initializer)', "if True"),
            (" = PTBModel(is", " = build(is"),
            (
                "        initializer = fb",
                '        build = fb.template(PTBModel, "Model")\n        initializer = fb',
            ),
        ],
    ),
}


@requires(module="libcst")
@pytest.mark.parametrize("name", BY_HAND)
def test_a_program_runs_and_learns_once_a_person_has_done_what_is_listed(
    name: str, monkeypatch: Any
) -> None:
    from flowbook.port.program import ported

    lines, edits = BY_HAND[name]
    result = ported((PROGRAMS[0].parent / "by_hand" / f"{name}.py").read_text(encoding="utf-8"))
    assert [each.line for each in result.left] == lines
    text = result.text
    for before, after in edits:
        assert before in text
        text = text.replace(before, after)
    found = run(name, text, monkeypatch)
    assert found["last"] < found["first"] / 2
