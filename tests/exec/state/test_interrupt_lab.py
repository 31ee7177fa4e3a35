"""The interrupt button of a real kernel, through the protocol that JupyterLab speaks."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("jupyter_client", reason="missing: jupyter_client")
pytest.importorskip("ipykernel", reason="missing: ipykernel")

from jupyter_client.manager import start_new_kernel

pytestmark = pytest.mark.lab

SECONDS = 120


class Kernel:
    """A kernel in which cells run; `interrupted` presses the button at a cell's first output."""

    def __init__(self, manager: Any, client: Any) -> None:
        self.manager = manager
        self.client = client

    def run(self, source: str) -> str:
        """Run a cell that must succeed, and return what it printed."""
        reply, printed = self._run(source, lambda: None)
        assert reply["status"] == "ok", reply
        return printed

    def interrupted(self, source: str) -> None:
        """Run a cell, and interrupt it once it has printed."""
        pressed: list[bool] = []

        def press() -> None:
            if not pressed:
                pressed.append(True)
                self.manager.interrupt_kernel()

        reply, _ = self._run(source, press)
        assert reply["status"] == "error", reply
        assert reply["ename"] == "KeyboardInterrupt", reply

    def _run(self, source: str, on_output: Any) -> tuple[dict[str, Any], str]:
        request = self.client.execute(source)
        printed = ""
        while True:
            message = self.client.get_iopub_msg(timeout=SECONDS)
            if message["parent_header"].get("msg_id") != request:
                continue
            if message["msg_type"] == "stream":
                printed += message["content"]["text"]
                on_output()
            elif message["content"].get("execution_state") == "idle":
                break
        while True:
            reply = self.client.get_shell_msg(timeout=SECONDS)
            if reply["parent_header"].get("msg_id") == request:
                return reply["content"], printed


@pytest.fixture(scope="module")
def kernel() -> Iterator[Kernel]:
    # BLAS threads that spin while they wait starve the kernel's own on a busy machine.
    env = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    manager, client = start_new_kernel(kernel_name="python3", startup_timeout=SECONDS, env=env)
    try:
        kernel = Kernel(manager, client)
        kernel.run(SETUP)
        yield kernel
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


SETUP = """
import numpy as np
import flowbook as fb

W = fb.Variable(np.zeros((300, 300)), name="W")
add = fb.assign_add(W, np.ones((300, 300)))
sess = fb.Session()

def whole():
    found = sess.run(W)
    assert found.min() == found.max()
    return found[0, 0]
"""


def test_training_loop_is_interrupted_and_goes_on(kernel: Kernel) -> None:
    for _ in range(3):
        kernel.interrupted(
            """
            before = whole()
            steps = 0
            while True:
                sess.run(add.op)
                steps += 1
                if steps == 50:
                    print("going", flush=True)
            """
        )
        kernel.run(
            """
            assert before + steps <= whole() <= before + steps + 1
            now = whole()
            assert sess.run(add)[0, 0] == now + 1
            """
        )


def test_one_long_step_is_interrupted_between_its_kernels(kernel: Kernel) -> None:
    kernel.run(
        """
        def say():
            print("going", flush=True)

        with fb.control_dependencies([fb.py_func(say, [], [])]):
            y = fb.random_uniform([500, 500])
        for _ in range(4_000):
            y = fb.matmul(y, y)
        total = fb.assign(W, fb.fill([300, 300], fb.cast(fb.reduce_sum(y), fb.float64)))
        """
    )
    for _ in range(2):
        kernel.interrupted("before = whole()\nsess.run(total)")
        kernel.run("assert whole() == before")


def test_wait_is_interrupted(kernel: Kernel) -> None:
    kernel.run(
        """
        def never(context, x):
            context.on_cancel(lambda: cancelled.append(x))
            print("waiting", flush=True)

        wait = fb.OpDef("LabNever", "x: T -> y: T", T=(fb.float64,), kernel=never,
                        infer=lambda x: x.shape, is_async=True)
        cancelled = []
        waited = wait(W + 1.0)
        """
    )
    for count in (1, 2, 3):
        kernel.interrupted("sess.run(waited)")
        kernel.run(f"assert len(cancelled) == {count}; now = whole()")
        kernel.run("assert sess.run(add)[0, 0] == now + 1")
