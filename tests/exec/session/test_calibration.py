"""Measuring this machine."""

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.placement import machine as machines
from flowbook.exec.session import calibration


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """A calibration of one step for each figure."""
    monkeypatch.setenv("FLOWBOOK_CACHE", str(tmp_path))
    monkeypatch.setattr(machines, "_known", None)
    monkeypatch.setattr(calibration, "_PATIENCE", 0.0)
    return fb.calibrate()


def test_all_figures_are_positive_and_kept(measured, tmp_path):
    figures = [measured.flops, measured.bytes, measured.overhead]
    figures += [measured.latency, measured.transferred]
    assert all(0 < each < float("inf") for each in figures)
    assert measured.kept.parent == tmp_path
    assert len(measured.table.rows) == 5
    assert "cannot be kept" not in str(measured)


def test_plans_are_made_by_them(measured):
    x = fb.placeholder(fb.float32, [1000, 100])
    y = fb.matmul(x, np.ones((100, 500), np.float32))
    with fb.Session() as sess:
        plan = sess.explain(y, {x: (1000, 100)})
    by_flops = 2 * 1000 * 100 * 500 / measured.flops
    by_bytes = 4 * (1000 * 100 + 100 * 500 + 1000 * 500) / measured.bytes
    assert plan.seconds == pytest.approx(max(by_flops, by_bytes) + measured.overhead)


def test_it_builds_nothing_in_the_default_graph(measured):
    assert not fb.get_default_graph().operations


def test_what_cannot_be_kept_is_said(monkeypatch):
    monkeypatch.setattr(machines, "_known", None)
    monkeypatch.setattr(calibration, "_PATIENCE", 0.0)
    found = fb.calibrate()
    assert found.kept is None
    assert "It cannot be kept for later processes." in str(found)
