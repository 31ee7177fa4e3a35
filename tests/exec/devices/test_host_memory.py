"""How much memory a process may use, told by files like the system's."""

from __future__ import annotations

from pathlib import Path

import pytest

from flowbook.exec.devices.host_memory import usable_memory
from tests.exec.devices.test_processors import system

GIB = 1 << 30


@pytest.fixture(autouse=True)
def _eight_gibibytes(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 8 * GIB // 4096}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)


@pytest.mark.parametrize(
    ("limit", "found"), [("max", 8 * GIB), (str(GIB), GIB), (str(16 * GIB), 8 * GIB), ("", 8 * GIB)]
)
def test_a_limit_of_version_2(tmp_path: Path, limit: str, found: int) -> None:
    root = system(tmp_path, "0::/mine\n", {"sys/fs/cgroup/mine/memory.max": limit})
    assert usable_memory(root) == found


def test_a_limit_of_version_1(tmp_path: Path) -> None:
    groups = "5:memory:/docker/a1\n4:cpu,cpuacct:/docker/a1\n"
    files = {
        "sys/fs/cgroup/memory/memory.limit_in_bytes": f"{2 * GIB}\n",
        "sys/fs/cgroup/cpu,cpuacct/memory.limit_in_bytes": "1\n",
    }
    assert usable_memory(system(tmp_path, groups, files)) == 2 * GIB


def test_a_system_that_does_not_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr("os.sysconf", unknown)
    assert usable_memory(tmp_path) is None
