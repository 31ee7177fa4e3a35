"""Arrays whose elements differ in shape, as ONNX's sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from tests.onnx.exchange import exchanged, inference, types


@pytest.fixture(autouse=True)
def graph() -> Any:
    with fb.Graph().as_default() as graph:
        yield graph


def rows(count: int) -> Any:
    return np.arange(2 * count, dtype=np.float32).reshape(count, 2)


def array(size: Any, element_shape: Any = (None, 2), **how: Any) -> fb.TensorArray:
    how |= {"infer_shape": False, "clear_after_read": False, "element_shape": element_shape}
    return fb.TensorArray(fb.float32, size, **how)


def test_pieces_of_different_lengths_and_their_gradient() -> None:
    x = fb.placeholder(fb.float32, [None, 2])
    pieces = array(3).split(x, [1, 3, 2])
    joined = pieces.concat()
    fetches = [joined * joined, pieces.read(1), pieces.size()]
    made = exchanged([*fetches, *fb.gradients(fetches[0], x)], {x: rows(6)}, gradients_of=x)
    assert {"SplitToSequence", "ConcatFromSequence", "SequenceAt"} <= set(types(made.graph))


def test_lengths_that_only_the_run_knows() -> None:
    x, lengths = fb.placeholder(fb.float32, [None, 2]), fb.placeholder(fb.int32, [None])
    pieces = array(fb.size(lengths)).split(x, lengths)
    made = fb.onnx.save({"y": pieces.concat(), "z": pieces.read(1)}, {"x": x, "lengths": lengths})
    for given in ([1, 3, 2], [2, 2]):
        feeds = {"x": rows(sum(given)), "lengths": np.array(given, np.int32)}
        joined, second = inference(made).run(None, feeds)
        np.testing.assert_array_equal(joined, feeds["x"])
        np.testing.assert_array_equal(second, feeds["x"][given[0] :][: given[1]])
        # What is read is built of as many pieces as there are.
        with pytest.raises(fb.errors.UnimplementedError, match="needs the value of"):
            fb.onnx.load(made, graph=fb.Graph())
        again = fb.onnx.load(made, graph=fb.Graph(), values={"lengths": given})
        with fb.Session(graph=again.graph) as sess:
            joined, second = sess.run([*again.outputs.values()], {again.inputs["x"]: feeds["x"]})
        np.testing.assert_array_equal(second, feeds["x"][given[0] :][: given[1]])


def test_rows_of_an_array_for_elements_of_different_shapes() -> None:
    x = fb.placeholder(fb.float32, [3, 2])
    elements = array(3, [2]).unstack(x)
    exchanged([elements.stack(), elements.read(2)], {x: rows(3)}, gradients_of=x)


@pytest.mark.parametrize("dynamic_size", [False, True])
def test_a_loop_that_writes_more_and_more(dynamic_size: bool) -> None:
    x = fb.placeholder(fb.float32, [2])
    written = array(0 if dynamic_size else 3, dynamic_size=dynamic_size)
    _, found = fb.while_loop(
        lambda i, _: i < 3,
        lambda i, array: (i + 1, array.write(i, fb.fill([i + 1, 2], 1.0) * x)),
        (0, written),
    )
    # Read, it is unrolled: as many elements as a sequence has are known.
    made = exchanged([found.concat(), found.size()], {x: [1, 2]}, gradients_of=x)
    assert types(made.graph).count("Loop") == 1


def test_lengths_of_what_was_written() -> None:
    x = fb.placeholder(fb.float32, [3, 2])
    joined = array(2).write(1, x).write(0, fb.gather(x, [1])).concat()
    again = array(2).split(fb.exp(joined), joined.op.outputs[1])
    exchanged([again.read(1)], {x: rows(3)}, gradients_of=x)


def refused(make: Any, match: str) -> None:
    x = fb.placeholder(fb.float32, [3, 2])
    with pytest.raises(fb.errors.UnimplementedError, match=match):
        fb.onnx.save({"y": make(x)}, {"x": x})


def test_what_has_no_form_is_refused() -> None:
    def slope_of_one(x: fb.Tensor) -> Any:
        return fb.gradients(array(2).split(x, [1, 2]).read(0), x)[0]

    refused(slope_of_one, "the gradient of pieces of which some may not be used")
    refused(lambda x: array(3, [2]).unstack(x).gather([2, 0]), "some elements of an array whose")
    refused(lambda x: array(4, [2]).scatter([2, 0, 1], x).read(0), "rows that are written here and")
