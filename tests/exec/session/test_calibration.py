"""Measuring this machine."""

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.placement import machine as machines
from flowbook.exec.session import calibration
from flowbook.exec.session.probes import probes


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A calibration of one step for each figure, and for the smallest network."""
    monkeypatch.setenv("FLOWBOOK_CACHE", str(tmp_path))
    monkeypatch.setattr(machines, "_known", None)
    be_quick(monkeypatch)
    return fb.calibrate()


def be_quick(monkeypatch):
    monkeypatch.setattr(calibration, "_PATIENCE", 0.0)
    monkeypatch.setattr(calibration, "probes", lambda: [next(probes())])


def test_all_figures_are_positive_and_kept(measured, tmp_path):
    figures = [measured.flops, measured.bytes, measured.overhead]
    figures += [measured.latency, measured.transferred]
    assert all(0 < each < float("inf") for each in figures)
    assert measured.kept.parent == tmp_path
    assert len(measured.table.rows) == 6
    assert "cannot be kept" not in str(measured)


def test_plans_are_made_by_them(measured):
    assert {"MatMul", "AssignSub", "TensorDotGradient"} <= set(measured.kernels)
    x = fb.placeholder(fb.float32, [1000, 100])
    y = fb.matmul(x, np.ones((100, 500), np.float32))
    with fb.Session() as sess:
        plan = sess.explain(y, {x: (1000, 100)})
    by_flops = 2 * 1000 * 100 * 500 / measured.flops
    by_bytes = 4 * (1000 * 100 + 100 * 500 + 1000 * 500) / measured.bytes
    expected, took = measured.kernels["MatMul"][-1]
    assert plan.seconds == pytest.approx((by_flops + by_bytes) * took / expected)


def test_what_was_not_timed_goes_by_the_figures(measured):
    x = fb.placeholder(fb.float32, [1000])
    y = fb.lgamma(x)
    with fb.Session() as sess:
        plan = sess.explain(y, {x: (1000,)})
    assert y.op.type not in measured.kernels
    by_flops, by_bytes = y.op.op_def.cost(y.op) / measured.flops, 2 * 4000 / measured.bytes
    assert plan.seconds == pytest.approx(by_flops + by_bytes + measured.overhead)


@pytest.mark.parametrize("build", list(probes()))
def test_networks_are_of_sizes_that_rise(build):
    with fb.Graph().as_default() as graph:
        probe = build()
    assert probe.fetches
    assert {tensor.op.graph for tensor in probe.feeds} == {graph}
    assert all(tensor.shape == value.shape for tensor, value in probe.feeds.items())


def test_it_builds_nothing_in_the_default_graph(measured):
    assert not fb.get_default_graph().operations


def test_what_cannot_be_kept_is_said(monkeypatch):
    monkeypatch.setattr(machines, "_known", None)
    be_quick(monkeypatch)
    found = fb.calibrate()
    assert found.kept is None
    assert "It cannot be kept for later processes." in str(found)
