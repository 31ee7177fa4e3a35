"""Drawn programs whose parts are functions, held against the same programs without them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flowbook as fb
from flowbook.graph.building.verify import check
from tests.exec.engine.code.test_lowering import STATE, build, interpret, starts
from tests.exec.engine.code.test_lowering import programs as acting_programs
from tests.graph.gradients.test_loops import OPERATIONS, close, programs, zeros_for

DECORATORS = {
    "inline": fb.function,
    "kept": lambda function: fb.function(function, inline=False),
}
EACH = pytest.mark.parametrize("decorate", DECORATORS.values(), ids=list(DECORATORS))


def built(program: list[Any], state: list[Any], x: Any, w: Any, decorate: Any) -> list[Any]:
    """A program whose branches, and bodies of loops, are functions by a decorator."""
    for statement in program:
        if statement[0] == "set":
            _, target, name, one, other = statement
            state = list(state)
            state[target] = OPERATIONS[name][0](state[one], state[other], x, w)
        elif statement[0] == "if":
            _, one, other, yes, no = statement

            @decorate
            def taken(state: Any, yes: Any = yes) -> Any:
                return built(yes, state, x, w, decorate)

            @decorate
            def otherwise(state: Any = state, no: Any = no) -> Any:
                return built(no, state, x, w, decorate)

            yes_or_no = state[one] < state[other]
            state = fb.cond(yes_or_no, lambda f=taken, state=state: f(state), otherwise)
        else:
            _, count, watched, body = statement

            @decorate
            def goes_on(i: Any, state: Any, count: int = count, watched: int = watched) -> Any:
                return fb.logical_and(i < count, state[watched] < 1.5)

            @decorate
            def following(i: Any, state: Any, body: Any = body) -> Any:
                return i + 1, built(body, state, x, w, decorate)

            _, state = fb.while_loop(
                lambda i, s, f=goes_on: f(i, s), lambda i, s, f=following: f(i, s), (0, state)
            )
    return state


@settings(max_examples=20, deadline=None)
@given(program=programs(1), at=st.sampled_from([-1.3, 0.4, 1.1]))
def test_gradients_are_those_of_the_program_without_functions(program: Any, at: float) -> None:
    program = _hashable(program)

    def twice(decorate: Any, x: Any, w: Any) -> list[Any]:
        """What two calls of the program give, and the derivatives of both orders."""

        @decorate
        def whole(state: Any) -> Any:
            return built(program, state, x, lambda: w, decorate)

        ys = whole(whole([x, x * 0.5, fb.constant(0.25, fb.float64)]))
        loss = fb.add_n([fb.sin(y) for y in ys])
        first = [zeros_for(g) for g in fb.gradients(loss, [x, w])]
        return [loss, *first, *map(zeros_for, fb.gradients(fb.add_n(first), [x, w]))]

    def given_() -> tuple[Any, Any]:
        x = fb.placeholder(fb.float64, [], name="x")
        return x, fb.Variable(0.7, dtype=fb.float64, name="w")

    with fb.Graph().as_default(), fb.Session() as sess:
        x, w = given_()
        wanted = sess.run(twice(_as_it_is, x, w), {x: at})
    with fb.Graph().as_default() as graph, fb.Session() as sess:
        x, w = given_()
        found = [twice(decorate, x, w) for decorate in DECORATORS.values()]
        for _ in range(2):  # By the state machine, and by what is written after it.
            for tensors in found:
                assert close(sess.run(tensors, {x: at}), wanted)
        again = fb.Graph.from_bytes(graph.to_bytes())
        check(again)
    with fb.Session(graph=again) as sess:
        for tensors in found:
            assert close(sess.run([tensor.name for tensor in tensors], {"x:0": at}), wanted)


@EACH
@settings(max_examples=10, deadline=None)
@given(program=acting_programs(), start=starts)
def test_what_acts_acts_in_order_in_each_call(decorate: Any, program: Any, start: Any) -> None:
    state, variable = list(start), [1]
    for _ in range(2):
        interpret(program, state, variable)
    with fb.Graph().as_default() as graph, fb.Session() as sess:
        total = fb.Variable(1)
        whole = decorate(lambda state: build(program, state, total))
        given_ = [fb.placeholder(fb.int32, []) for _ in range(STATE)]
        once = whole(given_)
        # What the second call reads is from before what the first writes, unless it is behind that.
        with fb.control_dependencies(once if "'read'" in str(program) else None):
            found = whole(once)
        feeds = dict(zip(given_, start, strict=True))
        check(graph)
        assert sess.run(found, feeds) == state
        assert sess.run(total) == variable[0]


@EACH
@settings(max_examples=10, deadline=None)
@given(program=acting_programs(), start=starts)
def test_what_acts_acts_in_each_iteration(decorate: Any, program: Any, start: Any) -> None:
    state, variable = list(start), [1]
    for _ in range(3):
        interpret(program, state, variable)
    with fb.Graph().as_default(), fb.Session() as sess:
        total = fb.Variable(1)
        whole = decorate(lambda state: build(program, state, total))
        given_ = [fb.placeholder(fb.int32, []) for _ in range(STATE)]
        found = fb.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, whole(s)), (0, given_))[1]
        assert sess.run(found, dict(zip(given_, start, strict=True))) == state
        assert sess.run(total) == variable[0]


def _as_it_is(function: Any) -> Any:
    return function


def _hashable(program: Any) -> Any:
    if isinstance(program, list | tuple):
        return tuple([_hashable(each) for each in program])
    return program


def test_numbers_of_a_body_are_those_of_each_call() -> None:
    with fb.Session() as sess:
        draw = fb.function(lambda: fb.random_uniform([8]), name="draw")
        once, twice = sess.run([draw(), draw()])
    assert not np.array_equal(once, twice)
