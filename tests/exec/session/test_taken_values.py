"""Values of variables go from session to session, without a checkpoint."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb

FailedPrecondition = fb.errors.FailedPreconditionError


def model(width: int = 2, dtype: Any = fb.float32) -> dict[str, fb.Variable]:
    return {
        "W": fb.Variable(fb.zeros([width], dtype), name="W"),
        "b": fb.Variable(0.0, name="b"),
        "never": fb.Variable(0.0, name="never"),
    }


def trained(variables: dict[str, fb.Variable]) -> fb.Session:
    sess = fb.Session()
    sess.run([fb.assign(variables["W"], np.ones(2)), fb.assign(variables["b"], 5.0)])
    return sess


def test_values_are_copies() -> None:
    variables = model()
    W, b, _ = variables.values()
    add = fb.assign_add(W, np.ones(2)).op
    with trained(variables) as one, fb.Session() as other:
        assert other.take_values(one) == ["W", "b"]
        for _ in range(3):
            one.run(add)
        assert other.run(W).tolist() == [1.0, 1.0]
        other.run(add)
        assert one.run(W).tolist() == [4.0, 4.0]
        assert other.run(b) == 5.0


def test_variables_of_another_graph_are_found_by_name() -> None:
    one = trained(model())
    with fb.Graph().as_default(), fb.Session() as other:
        variables = model(width=3)
        assert other.take_values(one) == ["b"]
        assert other.run(variables["b"]) == 5.0
        assert other.run(variables["W"]).tolist() == [0.0, 0.0, 0.0]
    with fb.Graph().as_default(), fb.Session() as other:
        model(dtype=fb.float64)
        assert other.take_values(one) == ["b"]


def test_values_are_there_without_automatic_initialisation() -> None:
    variables = model()
    one = trained(variables)
    with fb.Session(auto_initialize=False) as other:
        other.take_values(one)
        assert other.run(variables["b"]) == 5.0
        with pytest.raises(FailedPrecondition, match="uninitialized value 'never'"):
            other.run(variables["never"])


def test_values_of_named_containers_are_everyones() -> None:
    with fb.container("taken"):
        shared = fb.Variable(1.0, name="shared")
    own = fb.Variable(1.0, name="own")
    with fb.Session() as one, fb.Session() as other:
        one.run([shared, own])
        assert other.take_values(one) == ["own"]


def test_what_has_no_values_is_refused() -> None:
    variables = model()
    one, other = trained(variables), fb.Session()
    with pytest.raises(FailedPrecondition, match="no variable has a value in <Session of"):
        one.take_values(other)
    one.close()
    with pytest.raises(FailedPrecondition, match="no variable has a value in <closed Session"):
        other.take_values(one)
    with pytest.raises(FailedPrecondition, match="say whose"):
        other.take_values()
    with pytest.raises(fb.errors.InvalidTypeError, match="of a session, not 3"):
        other.take_values(3)  # type: ignore[arg-type]
    other.close()
    with pytest.raises(FailedPrecondition, match="this session is closed"):
        other.take_values(one)


def test_open_sessions() -> None:
    graph = fb.Graph()
    before = fb.open_sessions()
    with fb.Session() as one, fb.Session(graph) as other:
        assert fb.open_sessions()[len(before) :] == [one, other]
        assert fb.open_sessions(graph) == [other]
        assert "made at test_taken_values.py, line" in repr(other).rpartition(">, ")[2]
    assert fb.open_sessions() == before
