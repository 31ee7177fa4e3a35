"""Kernels beside the definitions' own: a user's, and Flowbook's own for some operations."""

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model import registry
from flowbook.graph.model.registry import (
    asked_of,
    kernel_for,
    op_named,
    register_kernel,
    special_kernel,
)


@pytest.fixture(autouse=True)
def _own_kernels(monkeypatch):
    for op_def in registry.op_definitions().values():
        monkeypatch.setattr(op_def, "registered", {})


def single(dtypes, shapes, how):
    return dtypes[0] is fb.float32


def test_a_special_kernel_is_chosen_by_dtypes_shapes_and_attributes():
    def suits(dtypes, shapes, how):
        return dtypes[0] is fb.float32 and shapes[0].dims == (2, 3) and how["axis"] == -1

    special = special_kernel("LogSoftmax", "cpu", suits)(lambda xp, logits, axis: logits)
    op_def = op_named("LogSoftmax")
    for dtype, dims, axis, is_for in (
        (fb.float32, [2, 3], -1, True),
        (fb.float64, [2, 3], -1, False),
        (fb.float32, [2, None], -1, False),
        (fb.float32, [2, 3], 0, False),
    ):
        y = fb.nn.log_softmax(fb.placeholder(dtype, dims), axis)
        assert kernel_for(op_def, "cpu", asked_of(y.op)) is (special if is_for else op_def.kernel)
    assert kernel_for(op_def, "cpu") is op_def.kernel
    assert kernel_for(op_def, "simulated", asked_of(y.op)) is op_def.kernel


@pytest.mark.parametrize("is_users_first", [False, True])
def test_a_users_kernel_goes_before_a_special_one(is_users_first):
    registrations = [
        lambda: special_kernel("Erf", "cpu", single)(lambda xp, x: x - 1),
        lambda: register_kernel("Erf", "cpu")(lambda xp, x: x - 2),
    ]
    for register in reversed(registrations) if is_users_first else registrations:
        register()
    x = fb.placeholder(fb.float32, [])
    with fb.Session() as sess:
        assert sess.run(fb.erf(x), {x: 5.0}) == 3.0
        register_kernel("Erf", "cpu")(lambda xp, x: x - 3)
        assert sess.run(fb.erf(x), {x: 5.0}) == 2.0


def test_of_special_kernels_the_first_that_suits_runs():
    special_kernel("Erf", "cpu", single)(lambda xp, x: x - 1)
    special_kernel("Erf", "cpu", lambda dtypes, shapes, how: True)(lambda xp, x: x - 2)
    x, y = fb.placeholder(fb.float32, []), fb.placeholder(fb.float64, [])
    with fb.Session() as sess:
        assert sess.run([fb.erf(x), fb.erf(y)], {x: 5.0, y: 5.0}) == [4.0, 3.0]


def test_flowbooks_own_kernels_are_trusted_and_users_are_not():
    given = []

    def negative(xp, x):
        given.append(x.flags.writeable)
        return xp.negative(x)

    special_kernel("Erf", "cpu", single)(negative)
    x = fb.placeholder(fb.float32, [3])
    feeds = {x: np.ones(3, np.float32)}
    with fb.Session() as sess:
        for _ in range(3):
            sess.run(fb.erf(x, name="trusted"), feeds)
        assert given == [True] * 3
        register_kernel("Erf", "cpu")(negative)
        for _ in range(3):
            sess.run(fb.erf(x, name="watched"), feeds)
        assert given[3:] == [False] * 3


def test_what_is_folded_takes_the_special_kernel_too():
    special_kernel("Erf", "cpu", single)(lambda xp, x: x - xp.float32(1))
    y = fb.placeholder(fb.float32, [])
    with fb.Session() as sess:
        assert sess.run([fb.erf(fb.constant(3.0)), fb.erf(y)], {y: 3.0}) == [2.0, 2.0]


def test_a_special_kernel_is_for_a_type_that_there_is():
    with pytest.raises(fb.errors.NotFoundError, match="Errf"):
        special_kernel("Errf", "cpu", single)
