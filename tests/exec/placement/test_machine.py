"""What was measured of a machine is kept, and read on that machine alone."""

import json

import pytest

from flowbook.exec.placement import machine as machines
from flowbook.exec.placement.machine import COMMON, Figures, Link, Machine, keep, machine

MEASURED = Machine(Figures(2e10, 3e9, 4e-7), Link(1e-5, 5e9))


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
