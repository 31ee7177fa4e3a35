"""Functions that build several operations do so under a scope, in the graph of what they take."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.building.graph import get_default_graph
from flowbook.graph.building.scopes import name_scope
from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.public import public


@composed
def halved(x: Any, by: float = 2.0, name: str | None = None) -> Any:
    """Halve."""
    return fb.divide(fb.convert_to_tensor(x), fb.constant(by, name="by"), name=name)


@composed("pair")
def both(first: Any, second: Any = None, *rest: Any, name: str | None = None) -> Any:
    """Name nothing after the scope."""
    return fb.constant(1, name="one"), fb.constant(2)


@composed
def unnamed(x: Any) -> Any:
    """Take no name."""
    return fb.identity(x, name="same")


def test_what_a_function_builds_lies_in_a_scope_of_its_name() -> None:
    x = fb.placeholder(fb.float32, [], name="x")
    y = halved(x)
    assert (y.op.name, [t.op.name for t in y.op.inputs]) == ("halved", ["x", "halved/by"])
    assert halved(x).op.name == "halved_1"
    assert unnamed(x).op.name == "unnamed/same"
    assert [t.op.name for t in both(x)] == ["pair/one", "pair/Const"]


@pytest.mark.parametrize(
    "call",
    [
        lambda x: halved(x, name="h"),
        lambda x: halved(x, 2.0, "h"),
        lambda x: halved(name="h", x=x),
    ],
    ids=["by-name", "by-place", "all-by-name"],
)
def test_a_name_that_is_given_is_the_scopes(call: Callable[[fb.Tensor], fb.Tensor]) -> None:
    with name_scope("outer"):
        y = call(fb.placeholder(fb.float32, []))
    assert y.op.name == "outer/h"
    assert y.op.inputs[1].op.name == "outer/h/by"


def test_what_stands_where_a_name_would_among_further_arguments_is_none() -> None:
    assert both(1, 2, 3, "fourth")[0].op.name == "pair/one"
    assert both(1, 2, 3, name="named")[0].op.name == "named/one"


STRUCTURES: dict[str, Callable[[fb.Tensor], Any]] = {
    "tensor": lambda x: x,
    "nested": lambda x: [1.0, (x, None)],
    "mapping": lambda x: {"a": {"b": x}},
    "sparse": lambda x: fb.SparseTensor([[0]], fb.reshape(x, [1]), [1]),
    "rows": lambda x: fb.IndexedSlices(fb.reshape(x, [1]), fb.constant([0])),
}


@pytest.mark.parametrize("structure", STRUCTURES)
def test_it_builds_in_the_graph_of_what_it_is_given(structure: str) -> None:
    with fb.Graph().as_default() as graph:
        given = STRUCTURES[structure](fb.placeholder(fb.float32, []))
    for built in (*both(given), *both(0, given), *both(0, 0, given), *both(0, second=given)):
        assert built.graph is graph
    assert get_default_graph() is not graph


def test_a_list_that_holds_itself_belongs_to_no_graph() -> None:
    endless: list[Any] = []
    endless.append(endless)
    assert both(endless)[0].graph is get_default_graph()


IMAGE = [4, 6, 3]
MATRIX = [3, 3]

# Functions that build constants beside what they take, and tensors of which shapes to give them.
CALLS: dict[str, tuple[Callable[..., Any], list[list[int]]]] = {
    "assert_near": (lambda x, y: fb.assert_near(x, y), [MATRIX, MATRIX]),
    "assert_positive": (fb.assert_positive, [MATRIX]),
    "assert_rank": (lambda x: fb.assert_rank(x, 2), [MATRIX]),
    "bidirectional_dynamic_rnn": (
        lambda x: fb.nn.bidirectional_dynamic_rnn(_summing, _summing, x, dtype=fb.float32)[0],
        [[2, 3, 4]],
    ),
    "case": (
        lambda x: fb.case([(x > 0.0, lambda: fb.constant(1))], default=lambda: fb.constant(2)),
        [[]],
    ),
    "clip_by_global_norm": (lambda x: fb.clip_by_global_norm([x], 1.0)[0], [MATRIX]),
    "cond": (lambda x: fb.cond(x > 0.0, lambda: fb.constant(1), lambda: fb.constant(2)), [[]]),
    "count_nonzero": (fb.count_nonzero, [MATRIX]),
    "crop_and_resize": (
        lambda x: fb.image.crop_and_resize(x, [[0.0, 0.0, 1.0, 1.0]], [0], [2, 2]),
        [[1, *IMAGE]],
    ),
    "dense": (lambda x: fb.layers.dense(x, 2), [MATRIX]),
    "exponential_decay": (lambda x: fb.train.exponential_decay(0.5, x, 10, 0.9), [[]]),
    "foldl": (lambda x: fb.foldl(lambda a, b: a + b * 2.0, x), [[3]]),
    "frame": (lambda x: fb.signal.frame(x, 4, 2), [[2, 8, 2]]),
    "gelu": (lambda x: fb.nn.gelu(x, approximate=False), [MATRIX]),
    "huber_loss": (lambda x: fb.losses.huber_loss(np.zeros(MATRIX, "f"), x), [MATRIX]),
    "isclose": (lambda x: fb.isclose(x, 1.0), [MATRIX]),
    "lbeta": (fb.lbeta, [MATRIX]),
    "lstm_cell": (
        lambda x, c, h, k, b: fb.nn.lstm_cell(x, (c, h), k, b)[0],
        [[2, 3], [2, 4], [2, 4], [7, 16], [16]],
    ),
    "mdct": (lambda x: fb.signal.mdct(x, 4), [[16]]),
    "moments": (lambda x: fb.nn.moments(x, [0])[1], [MATRIX]),
    "norm": (lambda x: fb.norm(x, 1), [MATRIX]),
    "per_image_standardization": (fb.image.per_image_standardization, [IMAGE]),
    "polyval": (lambda x: fb.polyval([1.0, 2.0, 3.0], x), [MATRIX]),
    "psnr": (lambda x: fb.image.psnr(x, x, 1.0), [[1, *IMAGE]]),
    "resize_image_with_pad": (lambda x: fb.image.resize_image_with_pad(x, 8, 8), [IMAGE]),
    "rot90": (fb.image.rot90, [IMAGE]),
    "sampled_softmax_loss": (
        lambda w, b, x: fb.nn.sampled_softmax_loss(w, b, [[0], [1]], x, 2, 3),
        [[3, 4], [3], [2, 4]],
    ),
    "stft": (lambda x: fb.signal.stft(x, 4, 2), [[16]]),
    "switch_case": (
        lambda x: fb.switch_case(fb.cast(x, fb.int32), [lambda: fb.constant(1)] * 2),
        [[]],
    ),
    "total_variation": (fb.image.total_variation, [IMAGE]),
    "zero_fraction": (fb.nn.zero_fraction, [MATRIX]),
}


def _summing(x: fb.Tensor, state: fb.Tensor, name: str | None = None) -> Any:
    return (x + 1.0, state + 1.0)


_summing.state_size = 4  # type: ignore[attr-defined]


@pytest.mark.parametrize("function", CALLS)
def test_public_functions_build_in_the_graph_of_their_tensors(function: str) -> None:
    call, shapes = CALLS[function]
    with fb.Graph().as_default() as graph:
        given = [fb.placeholder(fb.float32, shape) for shape in shapes]
    built = call(*given)
    assert {t.graph for t in (built if isinstance(built, tuple | list) else [built])} == {graph}
    assert not get_default_graph().operations


def test_tensors_of_two_graphs_are_refused_with_the_place_of_each() -> None:
    with fb.Graph().as_default():
        x = fb.placeholder(fb.float32, [], name="x")
    y = fb.placeholder(fb.float32, [], name="y")
    with pytest.raises(fb.errors.InvalidArgumentError, match=r"graphs: x:0.*; y:0") as e:
        fb.isclose(x, y)
    assert str(e.value).startswith("isclose: ")


def test_it_looks_as_it_was_written() -> None:
    assert list(inspect.signature(fb.nn.moments).parameters) == ["x", "axes", "keepdims", "name"]
    assert pickle.loads(pickle.dumps(fb.nn.moments)) is fb.nn.moments
    assert halved.__doc__ == "Halve."
    assert halved.__name__ == "halved"


def test_a_misspelt_argument_is_explained() -> None:
    asked = public(halved)
    with pytest.raises(TypeError, match="halved") as caught:
        asked(1.0, scope="h")
    assert "name" in str(caught.value)
