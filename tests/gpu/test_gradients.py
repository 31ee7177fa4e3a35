"""Gradients that are computed on a GPU are those of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.model.registry import kernel_for, op_named
from tests.gpu.need import skip_without_gpu
from tests.op_cases import CASES, Case
from tests.op_cases.case import converted, natural
from tests.op_checks import as_list

skip_without_gpu()

# Cases of float64, but those whose dtype is fixed: a step of float32 rounds elsewhere on a GPU.
RTOL = {np.dtype(np.float64): 1e-7, np.dtype(np.float32): 1e-3}


def gradients(case: Case, device: str) -> list[np.ndarray]:
    """By each input that has one, of the sum of the outputs."""
    with fb.Graph().as_default(), fb.device(device):
        feeds, tensors, xs = {}, [], []
        for place, value in enumerate(converted(case, case.inputs, natural(case))):
            tensor = fb.constant(value)
            if place not in case.fixed:
                tensor = fb.placeholder(fb.as_dtype(value.dtype), value.shape)
                feeds[tensor] = value
            if place in case.differentiable:
                xs.append(tensor)
            tensors.append(tensor)
        outputs = [each for each in as_list(case.build(*tensors)) if each.dtype.is_floating]
        found = [fb.convert_to_tensor(each) for each in fb.gradients(outputs, xs)]
        # What has no kernel for GPUs is computed on the CPU.
        with fb.Session(devices=["cpu:0", "gpu:0"], soft_placement=True) as sess:
            sess.run(found, feeds)
            return sess.run(found, feeds)  # As generated code.


@pytest.mark.parametrize(
    "case",
    [
        case
        for case in CASES
        if case.differentiable and kernel_for(op_named(case.type), "gpu") is not None
    ],
    ids=lambda case: case.name,
)
def test_gradients_are_the_cpus(case: Case) -> None:
    for found, wanted in zip(gradients(case, "gpu:0"), gradients(case, "cpu:0"), strict=True):
        assert found.dtype == wanted.dtype
        rtol = RTOL.get(wanted.dtype, 1e-2)
        atol = rtol * np.abs(wanted).max(initial=1, where=np.isfinite(wanted))
        np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)
