"""What fails in another process names cell and line at the client."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.signature.signature import Signature
from tests.exec.plan.elsewhere import prepared_for, run_elsewhere


def test_its_errors_name_the_operation_and_its_line_at_the_client(notebook: Any) -> None:
    notebook.run("a", "import flowbook as fb\nx = fb.placeholder(fb.float32, name='x')")
    notebook.run("b", "y = fb.placeholder(fb.float32, name='y')\n\nz = fb.matmul(x, y, name='z')")
    step = prepared_for([notebook["z"]], [], [notebook["x"], notebook["y"]])
    wrong = [np.ones((2, 3), np.float32), np.ones((4, 5), np.float32)]
    [error] = run_elsewhere([(step, wrong)])
    with fb.Session(notebook.graph) as sess, pytest.raises(fb.errors.OpError) as caught:
        sess.run(notebook["z"], {notebook["x"]: wrong[0], notebook["y"]: wrong[1]})
    assert type(error) is type(caught.value) is fb.errors.InvalidArgumentError
    assert str(error) == str(caught.value)
    assert "defined at cell [" in str(error)
    assert "line 3:  z = fb.matmul(x, y, name='z')" in str(error)
    assert "given [2, 3]" in str(error)
    assert error.operation is notebook["z"].op


MODELS = {
    "straight": "y = fb.reduce_sum(2.0 * fb.log(fb.maximum(x, mask), name='logs'))",
    "loop": """y = fb.while_loop(
    lambda i, v: i < 3,
    lambda i, v: (i + 1, fb.log(fb.maximum(v, mask), name='logs')),
    (0, x))[1]""",
}


@pytest.mark.parametrize("model", MODELS)
def test_a_guard_names_them_too(model: str, notebook: Any) -> None:
    notebook.run("a", "import flowbook as fb\nx = fb.placeholder(fb.float32, [2], name='x')")
    notebook.run("b", "mask = fb.log(fb.nn.relu(x), name='mask')")
    notebook.run("c", MODELS[model])
    x, y = notebook["x"], notebook["y"]
    fed = np.array([-2.0, 1.0], np.float32)
    with fb.Session(notebook.graph) as sess, sess.guard(allow="mask") as guard:
        step = sess._master.prepare(Signature((y,), (), (x,)), [guard])
        [error] = run_elsewhere([(step, [fed])])
        with pytest.raises(fb.errors.InvalidArgumentError) as caught:
            sess.run(y, {x: fed})
    assert str(error) == str(caught.value)
    assert error.operation is caught.value.operation
    assert error.operation.name.endswith("logs")
    assert "logs': it gave 1 NaN" in error.message
    assert "defined at cell [" in str(error)
    assert "the step changed no variable" in str(error)
