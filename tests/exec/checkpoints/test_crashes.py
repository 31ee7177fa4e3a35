"""Whatever ends a process that saves, or its disk: there is a whole checkpoint, the latest one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import flowbook as fb
from tests.exec.checkpoints import refused

ROOT = Path(__file__).parents[3]


def test_killed_or_out_of_space_at_every_point(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.exec.checkpoints.killed", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=110)
    assert done.returncode == 0, done.stderr
    points = dict(line.split() for line in done.stdout.splitlines())
    assert points.keys() == {"killed", "full"}
    assert all(int(count) > 40 for count in points.values())


def test_a_place_where_nothing_can_be_written() -> None:
    fb.Variable(np.zeros(5), name="W")
    # Whoever runs this, nobody writes there.
    with fb.Session() as sess, pytest.raises(OSError, match=r"/proc"):
        fb.train.Saver().save(sess, "/proc/flowbook/model")


@pytest.mark.parametrize("mounts", [False, True])
def test_a_place_that_refuses_keeps_what_is_there(mounts: bool) -> None:
    refusals = [each for each in refused.REFUSALS if (each in refused.MOUNTING) is mounts]
    command = [sys.executable, "-m", refused.__name__, *refusals]
    if mounts:
        for needed in ("unshare", "mount"):
            if shutil.which(needed) is None:
                pytest.skip(f"nothing can be mounted here: there is no `{needed}`")
        rights = [] if os.geteuid() == 0 else ["--map-root-user"]
        command = ["unshare", "--mount", *rights, *command]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=110)
    if done.returncode == refused.UNABLE or done.stderr.startswith("unshare:"):
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
