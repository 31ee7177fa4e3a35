"""Attributes and arguments that are one of a few strings: what is none of them is refused."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.registry import op_definitions
from flowbook.graph.ops.outside.printing import print_text_op
from flowbook.graph.storing.graph_pb2 import GraphDef
from tests.op_cases import CASES
from tests.op_checks import built

BUILTIN = {t: d for t, d in op_definitions().items() if d.is_builtin}
CHOOSING = {t: d for t, d in BUILTIN.items() if d.choices}
ROWS = {case.type: case for case in reversed(CASES)}
# How to build those that have no row.
OTHERS: dict[str, Callable[[], Any]] = {
    "ConditionalAccumulator": lambda: fb.ConditionalAccumulator(fb.float32),
    "EncodeJpeg": lambda: fb.image.encode_jpeg(np.zeros([2, 2, 3], np.uint8)),
    "FixedLengthRecordReader": lambda: fb.FixedLengthRecordReader(1),
    "IdentityReader": fb.IdentityReader,
    "NpzReader": fb.NpzReader,
    "ParquetReader": fb.ParquetReader,
    "PrintText": lambda: print_text_op("text"),
    "SparseConditionalAccumulator": lambda: fb.SparseConditionalAccumulator(fb.float32),
    "TFRecordReader": fb.TFRecordReader,
    "TextLineReader": fb.TextLineReader,
    "WholeFileReader": fb.WholeFileReader,
}


def made(type: str) -> Operation:
    """An operation of the type, in a graph of its own."""
    if type in ROWS:
        outputs, _ = built(ROWS[type], ROWS[type].inputs)
        graph = outputs[0].graph
    else:
        with fb.Graph().as_default() as graph:
            OTHERS[type]()
    return next(op for op in graph.operations if op.type == type)


# Attributes that are any string.
FREE = {
    *("end", "equation", "field_delim", "initial_digest", "message", "na_value", "separator"),
    *("shared_name", "tag", "tensor_array_name", "var_name", "variable"),
}


def strings(op_def: fb.OpDef[Any]) -> list[str]:
    """The attributes without choices that are strings, in the type's row or by default."""
    given = made(op_def.type).attributes if op_def.type in ROWS else op_def.attributes
    return [n for n, v in given.items() if isinstance(v, str) and n not in op_def.choices]


def stored_with(op: Operation, name: str, text: str) -> bytes:
    """The operation's graph as bytes, in which an attribute is another string."""
    message = GraphDef.FromString(op.graph.to_bytes())
    [stored] = [o for o in message.operations if o.name == op.name]
    [attribute] = [a for a in stored.attributes if a.name == name]
    attribute.value.text = text
    return message.SerializeToString()


@pytest.mark.parametrize(("type", "name"), [(t, n) for t, d in CHOOSING.items() for n in d.choices])
def test_an_attribute_that_is_none_of_its_choices_is_refused(type: str, name: str) -> None:
    op = made(type)
    known = ", ".join(map(repr, op.op_def.choices[name]))
    refused = re.escape(f"{name!r} is one of {known}, not 'neither'")
    arguments = op.op_def.grouped(op.inputs, op.attributes)
    with (
        op.graph.as_default(),
        pytest.raises(fb.errors.InvalidArgumentError, match=f"^{type}: {refused}"),
    ):
        op.op_def(*arguments, **{**op.attributes, name: "neither"})
    fb.Graph.from_bytes(op.graph.to_bytes())
    with pytest.raises(fb.errors.InvalidArgumentError, match=f"^{type} '{op.name}': {refused}"):
        fb.Graph.from_bytes(stored_with(op, name, "neither"))


def test_an_attribute_that_is_a_string_has_choices_or_is_free() -> None:
    for type, op_def in BUILTIN.items():
        for name in {*strings(op_def)} - FREE:
            # It may be pairs of numbers as well.
            assert name == "padding", f"{type}: {name}"
            with pytest.raises(fb.errors.InvalidArgumentError, match="one of 'SAME', 'VALID', not"):
                fb.Graph.from_bytes(stored_with(made(type), name, "neither"))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: fb.pad([1], [[1, 1]], "wrap"),
            "'mode' is one of 'CONSTANT', 'REFLECT', 'SYMMETRIC', not 'WRAP'",
        ),
        (
            lambda: fb.sort([1, 2], direction="UP"),
            "'direction' is one of 'ASCENDING', 'DESCENDING', not 'UP'",
        ),
        (lambda: fb.meshgrid([1], [2], indexing="ji"), "'indexing' is one of 'xy', 'ij', not 'ji'"),
        (
            lambda: fb.gradients([], [], unconnected_gradients="one"),
            "'unconnected_gradients' is one of 'none', 'zero', not 'one'",
        ),
        (
            lambda: fb.nn.embedding_lookup(fb.zeros([2, 3]), [0], "rem"),
            "'partition_strategy' is one of 'mod', 'div', not 'rem'",
        ),
        (
            lambda: fb.nn.embedding_lookup_sparse(fb.zeros([2, 3]), None, None, combiner="max"),
            "'combiner' is one of 'sum', 'mean', 'sqrtn', not 'max'",
        ),
        (
            lambda: fb.image.crop_and_resize(None, None, None, None, "area"),
            "'method' is one of 'bilinear', 'nearest', not 'area'",
        ),
        (
            lambda: fb.FixedLengthRecordReader(1, encoding="zip"),
            "'encoding' is one of None, 'gzip', 'zlib', not 'zip'",
        ),
        (
            lambda: fb.train.RecordWriter("memory://file", "zip"),
            "'compression' is one of None, '', 'gzip', 'zlib', not 'zip'",
        ),
        (
            lambda: fb.losses.compute_weighted_loss([1.0], reduction="median"),
            "'reduction' is one of 'none', 'weighted_sum', .*, not 'median'",
        ),
        (lambda: fb.metrics.auc([0], [0.5], curve="F1"), "'curve' is one of 'ROC', 'PR', not 'F1'"),
    ],
)
def test_an_argument_that_is_none_of_its_choices_is_refused(build: Any, message: str) -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match=message):
        build()


def test_a_choice_in_other_letters_is_told_how_to_be_written() -> None:
    x, filters = fb.zeros([1, 4, 4, 1]), fb.zeros([2, 2, 1])
    with pytest.raises(fb.errors.InvalidArgumentError, match="hint: write 'SAME'"):
        fb.nn.dilation2d(x, filters, 1, 1, "same")
    with pytest.raises(fb.errors.InvalidArgumentError) as caught:
        fb.nn.dilation2d(x, filters, 1, 1, "full")
    assert "hint" not in str(caught.value)


def test_what_is_no_string_is_no_choice() -> None:
    check_choice("norm", None, (None, "ortho"))
    for wrong in (None, 1, ["ortho"], np.array(["ortho", "none"])):
        with pytest.raises(
            fb.errors.InvalidArgumentError, match="'norm' is one of 'ortho', 'none'"
        ):
            check_choice("norm", wrong, ("ortho", "none"))
