"""Rules for writing what draws, prints, checks and reads files."""

from __future__ import annotations

from typing import Any

from flowbook.graph.model.errors import UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.tensorflow.writer import Writer
from flowbook.tensorflow.written.types import Rules, same


def _seeds(op: Operation) -> dict[str, int]:
    """A seed of its own; without one the node draws anew each time."""
    seed = op.attributes["seed"]
    return {"seed": op.attributes["graph_seed"] or 0, "seed2": seed or 0}


def _drawn(type: str) -> Any:
    def rule(w: Writer, op: Operation, dims: str) -> Any:
        given = {"T": op.inputs[0].dtype, "dtype": op.outputs[0].dtype}
        return w.last(type, [dims], **given, **_seeds(op))

    return rule


def _whole(w: Writer, op: Operation, *inputs: str) -> Any:
    given = {"T": op.inputs[0].dtype, "Tout": op.outputs[0].dtype}
    return w.last("RandomUniformInt", inputs, **given, **_seeds(op))


def _assert(w: Writer, op: Operation, *inputs: str) -> Any:
    given = {"T": [t.dtype for t in op.inputs[1:]], "summarize": op.attributes["summarize"]}
    return w.last("Assert", inputs, **given)


def _print(w: Writer, op: Operation, *inputs: str) -> Any:
    how = {k: op.attributes[k] for k in ("message", "first_n", "summarize")}
    given = {"T": op.inputs[0].dtype, "U": [t.dtype for t in op.inputs[1:]]}
    return w.last("Print", inputs, **how, **given)


def _joined(w: Writer, op: Operation, *inputs: str) -> Any:
    if len({t.shape for t in op.inputs if t.shape.rank != 0}) > 1:
        raise UnimplementedError("strings of several shapes that are joined")
    return w.last("StringJoin", inputs, N=len(inputs), separator=op.attributes["separator"])


RULES: Rules = {
    "Assert": _assert,
    "Print": _print,
    "RandomNormal": _drawn("RandomStandardNormal"),
    "RandomShuffle": lambda w, op, x: w.last(
        "RandomShuffle", [x], T=op.inputs[0].dtype, **_seeds(op)
    ),
    "RandomUniform": _drawn("RandomUniform"),
    "RandomUniformInt": _whole,
    "ReadFile": same("ReadFile", dtypes={}),
    "StringJoin": _joined,
    "TruncatedNormal": _drawn("TruncatedNormal"),
}
