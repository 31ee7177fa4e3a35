from __future__ import annotations

import pytest

import flowbook as fb
from tests.explain.models import classifier


def test_scopes_add_up() -> None:
    classifier()
    counts = fb.parameter_counts()
    assert counts["hidden"].parameters == 8 * 16 + 16
    assert counts["output/"].parameters == 16 * 3 + 3
    assert counts["hidden/w"].variables == 1
    assert counts.total.parameters == 8 * 16 + 16 + 16 * 3 + 3
    assert counts.total.bytes == 4 * counts.total.parameters


def test_slots_count_among_what_is_not_trainable() -> None:
    classifier()
    assert fb.parameter_counts(trainable=False).total.parameters == 8 * 16 + 16 + 16 * 3 + 3
    assert fb.parameter_counts(trainable=None).total.variables == 8


def test_children_follow_their_parents() -> None:
    for name in ("a/x", "b", "a/y/z", "c/d"):
        fb.Variable(fb.zeros([2]), name=name)
    assert list(fb.parameter_counts().scopes) == ["", "a", "a/x", "a/y", "a/y/z", "b", "c", "c/d"]
    assert list(fb.parameter_counts(depth=1).scopes) == ["", "a", "b", "c"]


def test_an_empty_graph_has_none() -> None:
    assert fb.parameter_counts().total.parameters == 0
    assert "0 parameters" in repr(fb.parameter_counts())


def test_a_negative_depth_is_refused() -> None:
    with pytest.raises(fb.errors.InvalidArgumentError, match="depth"):
        fb.parameter_counts(depth=-1)
