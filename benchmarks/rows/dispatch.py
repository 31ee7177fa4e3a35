"""What dispatch alone costs: chains of 10,000 operations whose kernels do nothing.

Flowbook's kernel is a Python function that returns its argument, so its figure includes that
call; the hand-generated function of the same calls shows what remains.  TensorFlow's is `Identity`
with rewriting off (it would remove the chain).
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks import tf1
from benchmarks.case import AtMost, Case, Row
from benchmarks.graphs import flowbook_session, running
from benchmarks.straight_line import straight_line

_LENGTH = 10_000
_VALUE = np.asarray(1.5, dtype=np.float32)


def _no_ops(fb: Any) -> tuple[Any, dict[Any, Any]]:
    no_op = fb.OpDef(
        "BenchNoOp",
        "x: T -> y: T",
        T=(fb.float32,),
        infer=lambda x: x.shape,
        kernel=lambda xp, x: x,
    )
    return _chained(fb, no_op)


def _identities(tf: Any) -> tuple[Any, dict[Any, Any]]:
    return _chained(tf, tf.identity)


def _chained(lib: Any, operation: Any) -> tuple[Any, dict[Any, Any]]:
    x = end = lib.placeholder(lib.float32, [], name="x")
    for _ in range(_LENGTH):
        end = operation(end)
    return end, {x: _VALUE}


def _reference_flowbook(fb: Any) -> Case:
    """Below the public API, where the reference executor runs only what waits or comes late."""
    from flowbook.exec.devices.local_devices import local_devices
    from flowbook.exec.engine.engine import Engine
    from flowbook.exec.engine.runner import Runner
    from flowbook.exec.plan.pipeline import prepare
    from flowbook.exec.resources.session_stores import SessionStores
    from flowbook.exec.signature.signature import Signature

    with fb.Graph().as_default():
        end, (x,) = _no_ops(fb)
    devices = local_devices()
    prepared = prepare(Signature((end,), (), (x,)), devices)
    runner = Runner(prepared.program, devices[0], Engine(SessionStores(entropy=0)))
    return Case(
        step=lambda: runner.run_reference([_VALUE]), value=runner.run_reference([_VALUE])[0]
    )


_TF1 = running(_identities, partial(tf1.session, rewrite=False))


def _python(np: Any) -> Case:
    names = {"kernel": lambda xp, x: x, "xp": np}
    run = straight_line("x = kernel(xp, x)", _LENGTH, names)
    return Case(step=lambda: run(_VALUE), value=run(_VALUE))


ROWS = (
    Row(
        name="dispatch_generated",
        title="dispatch alone (no-op kernels), generated code, per operation",
        cases={"flowbook": running(_no_ops, flowbook_session), "tf1": _TF1, "numpy": _python},
        target=AtMost(30e-9),
        unit="ns",
        divisor=_LENGTH,
        notes=(
            "By hand: a generated function of 10,000 lines `x = kernel(xp, x)`. "
            "TF1: `Identity`, rewriting off.",
        ),
    ),
    Row(
        name="dispatch_reference",
        title="dispatch alone (no-op kernels), reference executor, per operation",
        cases={"flowbook": _reference_flowbook, "tf1": _TF1},
        target=AtMost(2e-6),
        unit="us",
        divisor=_LENGTH,
        notes=("Flowbook: a prepared plan, kernel by kernel. TF1: its one executor, as above.",),
    ),
)
