"""How many processors a process may keep busy, told by files like the system's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from flowbook.exec.devices import processors
from flowbook.exec.devices.processors import usable_processors


@pytest.fixture(autouse=True)
def _eight_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "_allowed", lambda: 8)


def system(root: Path, groups: str, files: Mapping[str, str]) -> Path:
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return root


@pytest.mark.parametrize(
    ("quota", "found"),
    [
        ("max 100000", 8),
        ("200000 100000", 2),
        ("250000 100000", 2),
        ("50000 100000", 1),
        ("1600000 100000", 8),
        ("-1 100000", 8),
        ("100000 0", 8),
        ("nonsense", 8),
        ("", 8),
    ],
)
def test_a_share_of_version_2(tmp_path: Path, quota: str, found: int) -> None:
    root = system(tmp_path, "0::/\n", {"sys/fs/cgroup/cpu.max": quota})
    assert usable_processors(root) == found


def test_the_least_share_of_the_groups_around_counts(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/cpu.max": "max 100000",
        "sys/fs/cgroup/pods/cpu.max": "300000 100000",
        "sys/fs/cgroup/pods/mine/cpu.max": "600000 100000",
        "sys/fs/cgroup/pods/other/cpu.max": "100000 100000",
    }
    assert usable_processors(system(tmp_path, "0::/pods/mine\n", files)) == 3


def test_a_share_of_version_1(tmp_path: Path) -> None:
    groups = "5:memory:/docker/a1\n4:cpu,cpuacct:/docker/a1\n1:name=systemd:/docker/a1\n0::/\n"
    # Inside of a container its group is the topmost.
    files = {
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "400000\n",
        "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
        "sys/fs/cgroup/memory/cpu.cfs_quota_us": "100000\n",
        "sys/fs/cgroup/memory/cpu.cfs_period_us": "100000\n",
    }
    assert usable_processors(system(tmp_path, groups, files)) == 4


def test_no_share_of_version_1(tmp_path: Path) -> None:
    files = {
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    }
    assert usable_processors(system(tmp_path, "4:cpu:/\n", files)) == 8


def test_without_groups_what_the_process_may_run_on_counts(tmp_path: Path) -> None:
    assert usable_processors(tmp_path) == 8


def test_those_that_the_process_may_run_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {1, 3, 5}, raising=False)
    assert usable_processors(tmp_path) == 3
