"""Sequence examples: records of features that a whole has, and of features of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from flowbook.graph.model.tensor import Tensor
from flowbook.graph.numerics.formats.examples import sequence_example_of
from flowbook.graph.ops.text.examples import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    VarLenFeature,
    check_features,
    parsed_features,
    parsed_steps,
    records_of,
    vector_of,
)

__all__ = [
    "parse_sequence_example",
    "parse_single_sequence_example",
    "serialize_sequence_example",
]


def parse_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor]]:
    """The features of sequence examples, TensorFlow's records of what has steps.

    Args:
        serialized: a string vector, each element a sequence example as bytes.
        context_features: what to read of each as a whole: `FixedLenFeature` or `VarLenFeature`.
        sequence_features: what to read of its steps: `FixedLenSequenceFeature` or `VarLenFeature`.
        name: the operations' name.

    Returns:
        What was read of each as a whole, as by `parse_example`; of the steps: a tensor
        [n, steps, *shape] for each feature of one shape, a SparseTensor [n, steps, values] for the
        others; and int64 [n], how many steps each has, of those of one shape.

    Raises:
        InvalidArgumentError: in the run, if bytes are no such example, or one lacks a feature that
            may not be missing, or has other values of it.

    >>> import flowbook as fb
    >>> texts = [
    ...     fb.serialize_sequence_example({"label": n}, {"word": [[n]] * n}) for n in (1, 3)
    ... ]
    >>> context, steps, lengths = fb.parse_sequence_example(
    ...     texts,
    ...     {"label": fb.FixedLenFeature([], fb.int64)},
    ...     {"word": fb.FixedLenSequenceFeature([], fb.int64)},
    ... )
    >>> with fb.Session() as sess:
    ...     print(sess.run(steps["word"]), sess.run(lengths["word"]), sess.run(context["label"]))
    [[1 0 0]
     [3 3 3]] [1 3] [1 3]
    """
    return _parsed(
        "parse_sequence_example", serialized, context_features, sequence_features, 1, name
    )


def parse_single_sequence_example(
    serialized: Any,
    context_features: Mapping[str, Any] | None = None,
    sequence_features: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """As `parse_sequence_example`, of one: `serialized` is a scalar, and so much less are results.

    Args:
        serialized: a string scalar.
        context_features: as for `parse_sequence_example`.
        sequence_features: as for `parse_sequence_example`.
        name: the operations' name.

    Returns:
        What was read of it as a whole, and of its steps.
    """
    what = "parse_single_sequence_example"
    return _parsed(what, serialized, context_features, sequence_features, 0, name)[:2]


def _parsed(
    what: str, serialized: Any, context: Any, sequences: Any, rank: int, name: str | None
) -> tuple[dict[str, Any], dict[str, Any], dict[str, Tensor]]:
    context, sequences = context or {}, sequences or {}
    check_features(context, (FixedLenFeature, VarLenFeature))
    check_features(sequences, (FixedLenSequenceFeature, VarLenFeature))
    records = records_of(serialized, rank)
    # The features of the whole have in a sequence example the place that they have in an example.
    whole = parsed_features(records, context, f"{name or what}_context")
    steps, lengths = parsed_steps(records, sequences, in_lists=True, name=name or what)
    return (
        {key: whole[key] for key in context},
        {key: steps[key] for key in sequences},
        lengths,
    )


def serialize_sequence_example(
    context: Mapping[str, Any], sequences: Mapping[str, Sequence[Any]]
) -> bytes:
    """A sequence example as bytes, which `parse_sequence_example` and TensorFlow read.

    Args:
        context: the features of the whole, as for `serialize_example`.
        sequences: the features of the steps: for each a list of what one step has.

    Raises:
        InvalidTypeError: if something is neither numbers nor strings.
    """
    return sequence_example_of(
        {name: vector_of(name, value) for name, value in context.items()},
        {name: [vector_of(name, step) for step in steps] for name, steps in sequences.items()},
    )
