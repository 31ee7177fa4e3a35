"""Whatever ends a process that saves, or its disk: there is a whole checkpoint, the latest one."""

import builtins
import errno
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flowbook as fb

ROOT = Path(__file__).parents[3]


@pytest.fixture
def sess() -> Any:
    W = fb.Variable(np.zeros(5000), name="W")
    with fb.Session() as session:
        session.run(fb.assign(W, np.ones(5000)))
        yield session


def test_killed_or_out_of_space_at_every_point(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.exec.checkpoints.killed", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=110)
    assert done.returncode == 0, done.stderr
    points = dict(line.split() for line in done.stdout.splitlines())
    assert points.keys() == {"killed", "full"}
    assert all(int(count) > 40 for count in points.values())


def test_no_room_for_a_larger_file(sess: Any, tmp_path: Path) -> None:
    saver = fb.train.Saver()
    saver.save(sess, tmp_path / "model", 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
        with pytest.raises(OSError, match=r"too large.*model-2"):
            saver.save(sess, tmp_path / "model", 2)
        assert [path.name for path in tmp_path.iterdir()] == ["model-1"]
        with pytest.raises(OSError, match="too large"):
            saver.save(sess, tmp_path / "model", 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert fb.train.latest_checkpoint(tmp_path) == str(tmp_path / "model-1")
    assert fb.train.load_variable(tmp_path, "W").sum() == 5000
    assert saver.save(sess, tmp_path / "model", 2) == str(tmp_path / "model-2")


def test_a_place_where_nothing_can_be_written(sess: Any) -> None:
    # Whoever runs this, nobody writes there.
    with pytest.raises(OSError, match=r"/proc"):
        fb.train.Saver().save(sess, "/proc/flowbook/model")


def test_a_file_system_that_is_read_only(
    sess: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = fb.train.Saver()
    path = saver.save(sess, tmp_path / "model", 1)
    real_open = builtins.open

    def refused(path: Any, mode: str = "r", *args: Any) -> Any:
        if "x" in mode:
            raise OSError(errno.EROFS, "Read-only file system", path)
        return real_open(path, mode, *args)

    monkeypatch.setattr(builtins, "open", refused)
    with pytest.raises(OSError, match="Read-only"):
        saver.save(sess, tmp_path / "model", 2)
    with pytest.raises(OSError, match="Read-only"):
        saver.save(sess, tmp_path / "model", 1)
    assert fb.train.latest_checkpoint(tmp_path) == path
    assert fb.train.load_variable(path, "W").sum() == 5000
