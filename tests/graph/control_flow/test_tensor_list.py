"""Every version of a list stays as it was, held against dicts that are copied by each write."""

from __future__ import annotations

import gc
import weakref
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowbook.graph.control_flow.tensor_list import Rules, TensorList
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import UNKNOWN, Shape


def number(value):
    return np.array(float(value))


def values(version, count):
    found = {}
    for index in range(count):
        with suppress(InvalidArgumentError):
            found[index] = float(version.read(index))
    return found


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 7), st.booleans()), max_size=40))
def test_any_version_can_be_read_and_written(steps):
    """Each step takes a version made before, and reads it or writes it."""
    versions = [(TensorList(Rules("a"), 8, UNKNOWN), {})]
    for number_of_step, (which, index, is_write) in enumerate(steps):
        version, known = versions[which % len(versions)]
        if not is_write or index in known:
            if index in known:
                assert version.read(index) == known[index]
            continue
        newer = version.written({index: number(number_of_step)})
        versions.append((newer, {**known, index: number_of_step}))
    for version, known in versions:
        assert values(version, 8) == known
    for version, known in reversed(versions):
        assert values(version, 8) == known


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 7), st.booleans()), max_size=40))
def test_of_any_version_an_element_is_replaced_or_left_out(steps):
    versions = [(TensorList(Rules("a"), 8, UNKNOWN), {})]
    for number_of_step, (which, index, is_left_out) in enumerate(steps):
        version, known = versions[which % len(versions)]
        if is_left_out:
            others = {i: value for i, value in known.items() if i != index}
            versions.append((version.without(index), others))
        else:
            newer = version.written({index: number(number_of_step)}, replaces=True)
            versions.append((newer, {**known, index: number_of_step}))
    for version, known in (*versions, *reversed(versions)):
        assert values(version, 8) == known


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 4)), max_size=30))
def test_sums_of_any_versions(steps):
    rules = Rules("gradient", adds_up=True)
    versions = [(TensorList(rules, 0, UNKNOWN), np.zeros(5))]
    for value, (one, other, index) in enumerate(steps):
        first, known = versions[one % len(versions)]
        second, known_too = versions[other % len(versions)]
        if value % 2:
            versions.append((first.plus(second), known + known_too))
        else:
            changed = known.copy()
            changed[index] += value
            versions.append((first.written({index: number(value)}), changed))
    for version, known in versions:
        found = [version.read(i) for i in range(5)]
        assert [0.0 if v is None else float(v) for v in found] == known.tolist()


def test_a_sum_takes_as_long_as_the_shorter_list():
    nothing = TensorList(Rules("gradient", adds_up=True), 0, UNKNOWN)
    long = nothing.written({index: number(1) for index in range(100)})
    elements = long._elements
    total = long.plus(nothing.written({3: number(1)}))
    total = nothing.written({3: number(1)}).plus(total)
    assert total._elements is elements
    assert (total.read(3), total.read(5)) == (3, 1)


def test_reading_an_old_version_again_and_again_takes_a_copy_once():
    first = TensorList(Rules("a"), 1000, UNKNOWN).written({0: number(7)})
    newest = first
    for index in range(1, 1000):
        newest = newest.written({index: number(index)})
        assert first.read(0) == 7
    assert first._newer is None
    assert first._steps == 0
    assert values(first, 3) == {0: 7}
    assert values(newest, 3) == {0: 7, 1: 1, 2: 2}


def test_what_was_read_is_let_go_of():
    version = TensorList(Rules("a", lets_go=True), 3, UNKNOWN)
    version = version.written({0: np.ones(3)}).written({1: np.ones(3)})
    newest = version.written({2: np.ones(3)})
    held = weakref.ref(newest.read(1))
    gc.collect()
    assert held() is None
    for each in (newest, version):
        with pytest.raises(InvalidArgumentError, match=r"index 1 .* 'a' was let go of"):
            each.read(1)
    with pytest.raises(InvalidArgumentError, match="has been written and read already"):
        newest.written({1: np.ones(3)})
    assert newest.read(0).tolist() == [1, 1, 1]


def test_what_no_version_holds_is_let_go_of():
    version = TensorList(Rules("a", is_dynamic=True), 0, UNKNOWN)
    first = np.ones(3)
    held = weakref.ref(first)
    version = version.written({0: first})
    del first
    for index in range(1, 5000):
        version = version.written({index: number(index)})
    assert held() is not None
    del version
    assert held() is None


def test_a_long_chain_of_versions_goes_without_recursion():
    first = version = TensorList(Rules("a", adds_up=True), 0, UNKNOWN)
    for index in range(200_000):
        version = version.written({index: 1.0})
    del version
    del first


def test_elements_of_one_shape():
    uniform = TensorList(Rules("a", is_uniform=True), 3, Shape([None, 2]))
    with pytest.raises(InvalidArgumentError, match=r"shape \[\?, 2\], and not \[3\]"):
        uniform.written({0: np.ones(3)})
    once = uniform.written({0: np.ones((4, 2))})
    assert once.element_shape == Shape([4, 2])
    with pytest.raises(InvalidArgumentError, match=r"\[4, 2\], and not \[5, 2\].* at index 1"):
        once.written({1: np.ones((5, 2))})
    free = TensorList(Rules("a"), 3, Shape([None, 2])).written({0: np.ones((4, 2))})
    assert free.written({1: np.ones((5, 2))}).element_shape == Shape([None, 2])


def test_indices_that_there_are_not():
    fixed = TensorList(Rules("a"), 2, UNKNOWN)
    for index in (-1, 2):
        with pytest.raises(InvalidArgumentError, match=f"no index {index} .* 'a' of size 2"):
            fixed.written({index: number(0)})
        with pytest.raises(InvalidArgumentError, match=f"no index {index} .* 'a' of size 2"):
            fixed.read(index)
    dynamic = TensorList(Rules("a", is_dynamic=True), 0, UNKNOWN)
    assert dynamic.written({6: number(0)}).size == 7
    with pytest.raises(InvalidArgumentError, match="no index -1"):
        dynamic.written({-1: number(0)})
    with pytest.raises(InvalidArgumentError, match=r"index 0 .* has been written already"):
        fixed.written({0: number(0)}).written({0: number(1)})
