"""Session handles: what stays in a session between runs, and when it is let go of."""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.ops.state.session_tensors import keepers


def kept(handle: fb.TensorHandle) -> dict[int, Any]:
    """What the session of a handle keeps."""
    keeper: Any = keepers[handle.handle]
    return keeper._values


def test_a_later_run_takes_up_what_stayed_without_a_copy() -> None:
    x = fb.placeholder(fb.float32, [None])
    keep = fb.get_session_handle(x * 2.0)
    with fb.Session() as sess:
        handle = sess.run(keep, {x: [1.0, 2.0, 3.0]})
        assert (handle.dtype, handle.shape) == (fb.float32, [3])
        where, value = fb.get_session_tensor(handle)
        assert sess.run(fb.reduce_sum(value), {where: handle.handle}) == 12.0
        assert sess.run(fb.reduce_sum(value), {where: handle}) == 12.0
        assert sess.make_callable(value, [where])(handle).tolist() == [2.0, 4.0, 6.0]
        array = np.asarray(handle)
        assert not array.flags.writeable
        assert np.shares_memory(array, kept(handle)[handle.handle])
        # Fed where an array is wanted, it is the value.
        assert sess.run(x + 1.0, {x: handle}).tolist() == [3.0, 5.0, 7.0]
        found = sess.run(value, {where: handle.handle})
        found[:] = 0.0  # What is fetched is the caller's.
        assert np.asarray(handle).tolist() == [2.0, 4.0, 6.0]


def test_what_stays_is_not_what_was_fed_or_assigned() -> None:
    x = fb.placeholder(fb.float32, [2])
    v = fb.Variable([1.0, 2.0])
    fed = np.array([5.0, 6.0], np.float32)
    with fb.Session() as sess:
        of_feed, of_variable = sess.run(
            [fb.get_session_handle(x), fb.get_session_handle(v)], {x: fed}
        )
        fed[:] = 0.0
        sess.run(fb.assign(v, [0.0, 0.0]))
        assert np.asarray(of_feed).tolist() == [5.0, 6.0]
        assert np.asarray(of_variable).tolist() == [1.0, 2.0]


def test_a_value_is_let_go_of_with_its_handle_or_by_deletion() -> None:
    keep = fb.get_session_handle(fb.range(3))
    with fb.Session() as sess:
        first, second, third = (sess.run(keep) for _ in range(3))
        values = kept(first)
        assert len(values) == 3
        del second
        gc.collect()
        assert len(values) == 2
        third.delete()
        assert list(values) == [first.handle]
        where, delete = fb.delete_session_tensor(first)
        sess.run(delete, {where: first})
        assert not values
        for lost in (first, third):
            with pytest.raises(fb.errors.FailedPreconditionError, match="was let go of"):
                np.asarray(lost)
        with pytest.raises(fb.errors.FailedPreconditionError, match="no value of the handle"):
            sess.run(delete, {where: first.handle})


def test_errors_say_whose_a_handle_is() -> None:
    keep = fb.get_session_handle(fb.range(3))
    where, value = fb.get_session_tensor(None, fb.int32)
    _, as_float = fb.get_session_tensor(None, fb.float32)
    with fb.Session() as sess:
        with fb.Session() as other:
            handle = other.run(keep)
            own = sess.run(keep)
            with pytest.raises(fb.errors.InvalidArgumentError, match="by another session"):
                sess.run(value, {where: handle.handle})
            with pytest.raises(fb.errors.InvalidArgumentError, match="is int32, not float32"):
                sess.run(as_float, {as_float.op.inputs[1]: own.handle})
        with pytest.raises(fb.errors.FailedPreconditionError, match="its session closed"):
            sess.run(value, {where: handle.handle})
        with pytest.raises(fb.errors.FailedPreconditionError, match="its session closed"):
            np.asarray(handle)
        with pytest.raises(fb.errors.InvalidTypeError, match="dtype"):
            fb.get_session_tensor(None)
    handle.delete()  # Nothing is left to let go of.


@pytest.mark.parametrize("place", ["cpu:1", "simulated:0"])
def test_a_value_stays_on_the_device_that_was_asked_for(place: str) -> None:
    with fb.device(place):
        keep = fb.get_session_handle(fb.cast(fb.range(3), fb.float32))
    elsewhere = fb.get_session_handle(fb.range(4))
    with fb.Session(devices=["cpu:0", place]) as sess:
        handle, other = sess.run([keep, elsewhere])
        assert (handle.device, other.device) == (f"/device:{place}", "")
        assert np.asarray(handle).tolist() == [0.0, 1.0, 2.0]
        where, value = fb.get_session_tensor(handle)
        where_other, value_other = fb.get_session_tensor(other)
        feeds = {where: handle.handle, where_other: other.handle}
        both = fb.reduce_sum(value) + fb.cast(fb.reduce_sum(value_other), fb.float32)
        assert sess.run(both, feeds) == 9.0
        plan = sess.explain(value, {where: handle.handle})
        lies = f"/job:localhost/task:0/device:{place}"
        assert lies in {each.device for each in plan.operations.values()}
        with pytest.raises(fb.errors.InvalidArgumentError, match="another device"):
            sess.run(value, {where: other.handle})
