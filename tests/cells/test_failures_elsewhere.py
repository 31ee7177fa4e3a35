"""What fails in another process names cell and line at the client."""

from typing import Any

import numpy as np
import pytest

import flowbook as fb
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
