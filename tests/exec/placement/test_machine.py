"""What was measured of a machine is kept, and read on that machine alone."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowbook.exec.devices.figures import Figures, Link
from flowbook.exec.placement import machine as machines
from flowbook.exec.placement.machine import (
    COMMON,
    Machine,
    along,
    curve_of,
    keep,
    machine,
)

CURVE = [(1e-6, 4e-6), (4e-6, 8e-6)]
MEASURED = Machine(Figures(2e10, 3e9, 4e-7), Link(1e-5, 5e9), {"Exp": CURVE})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where figures are kept during a test; afterwards those from before are known again."""
    monkeypatch.setenv("FLOWBOOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(machines, "_known", None)
    return tmp_path / "cache"


def forget(monkeypatch):
    """Be another process."""
    monkeypatch.setattr(machines, "_known", None)


def test_without_a_measurement_common_figures_hold(folder):
    assert machine() == COMMON


def test_a_measurement_holds_now_and_later(folder, monkeypatch):
    assert machine() == COMMON
    path = keep(MEASURED)
    assert path.parent == folder
    assert machine() == MEASURED
    forget(monkeypatch)
    assert machine() == MEASURED
    assert list(folder.iterdir()) == [path]


def test_a_folder_that_cannot_be_made(folder, monkeypatch):
    folder.write_text("a file")
    assert keep(MEASURED) is None
    assert machine() == MEASURED
    forget(monkeypatch)
    assert machine() == COMMON


def test_another_machine_is_not_believed(folder, monkeypatch):
    path = keep(MEASURED)
    said = json.loads(path.read_text())
    path.write_text(json.dumps({**said, "of": ["another", "x86_64", "2", "1.0"]}))
    forget(monkeypatch)
    assert machine() == COMMON


@pytest.mark.parametrize(
    "wrong",
    [
        {"cpu": [1e10, 1e9]},
        {"cpu": ["a", "b", "c"]},
        {"cpu": [0, 1e9, 1e-6]},
        {"link": [1e-5, float("nan")]},
        {"link": None},
        {"kernels": [1]},
        {"kernels": {"Exp": []}},
        {"kernels": {"Exp": [[1e-6, 0]]}},
        {"kernels": {"Exp": [[4e-6, 1e-6], [1e-6, 1e-6]]}},
    ],
)
def test_a_damaged_file_is_not_believed(folder, monkeypatch, wrong):
    path = keep(MEASURED)
    path.write_text(json.dumps({**json.loads(path.read_text()), **wrong}))
    forget(monkeypatch)
    assert machine() == COMMON
    path.write_text("{")
    forget(monkeypatch)
    assert machine() == COMMON


def test_the_folder_of_caches(monkeypatch, tmp_path):
    monkeypatch.delenv("FLOWBOOK_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(machines, "_known", None)
    assert keep(MEASURED) == tmp_path / "flowbook" / "calibration.json"


@pytest.mark.parametrize(
    ("expected", "seconds"),
    [(0.0, 4e-6), (1e-6, 4e-6), (2e-6, 32e-12**0.5), (4e-6, 8e-6), (40e-6, 80e-6)],
)
def test_a_curve_rises_by_powers_between_its_points(expected, seconds):
    assert along(CURVE, expected) == pytest.approx(seconds)


# Expected seconds, and by how much longer it takes: kernels cost a call at least.
samples = st.lists(
    st.tuples(st.floats(0, 1.0), st.floats(1.0, 100.0)).map(lambda s: (s[0], s[0] * s[1] + 1e-7)),
    min_size=1,
)


@given(samples)
def test_a_curve_goes_through_what_was_measured(found):
    curve = curve_of(found)
    assert all(left[0] < right[0] for left, right in pairwise(curve))
    least, most = min(s for _, s in found), max(s for _, s in found)
    assert all(least * 0.999 <= along(curve, at) <= most * 1.001 for at, _ in curve)


def test_what_is_much_alike_is_one_point_of_a_curve():
    assert curve_of([(1.0e-6, 2e-6), (1.1e-6, 3e-6), (1.2e-6, 9e-6)]) == [(1.1e-6, 3e-6)]
    assert len(curve_of([(1e-6, 2e-6), (8e-6, 9e-6)])) == 2
