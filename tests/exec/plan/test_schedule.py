"""The order in which one device runs what is ready."""

import numpy as np

import flowbook as fb
from flowbook.exec.devices.local_devices import local_devices
from flowbook.exec.plan.pipeline import prepare
from flowbook.exec.signature.signature import Signature
from tests.exec.held import held


def order(fetches, targets=(), feeds=()):
    signature = Signature(tuple(fetches), tuple(targets), tuple(feeds))
    [part] = prepare(signature, local_devices()).program.parts
    return [node.name for node in part.nodes]


def test_without_writes_the_order_is_that_of_construction():
    x = fb.placeholder(fb.float32, [2])
    a = fb.exp(x, name="a")
    b = fb.sin(x, name="b")
    c = fb.cos(a, name="c")
    assert order([c, b, a], feeds=[x]) == ["a", "b", "c"]


def test_writes_wait_for_the_uses_of_what_was_read():
    v = fb.Variable(np.zeros(2), name="v")
    update = fb.assign_add(v, np.ones(2), name="update")
    use = fb.exp(v, name="use")
    late = fb.sin(use, name="late")
    found = order([late], [update.op])
    assert found == ["v", "v/read", "use", "late", "update"]


def test_a_buffer_that_nothing_refers_to_any_more_is_written_in_place():
    v = fb.Variable(np.zeros(1000), name="v")
    step = fb.assign_add(v, fb.exp(v) * 0.1)
    with fb.Session() as sess:
        resource = held(sess, v)
        sess.run(step.op)
        buffer = resource._buffer.ctypes.data
        for timeout in (None, None, 100.0):
            sess.run(step.op, timeout=timeout)
            assert resource._buffer.ctypes.data == buffer
