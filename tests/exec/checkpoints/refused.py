"""Saves to places that refuse it: by what the system really does, and not in its stead.

It is run as

    python -m tests.exec.checkpoints.refused REFUSAL ...

where nothing is shared that is mounted (`unshare --mount`), for those refusals that mount. It ends
with UNABLE, and says why, where the system does not let it make such a place.
"""

import itertools
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

import flowbook as fb

# Makes a folder refuse what is written; what it yields, the errors say.
Refusal = Callable[[Path], AbstractContextManager[str]]

UNABLE = 77
_NOBODY = 65534


@contextmanager
def folder_without_rights(folder: Path) -> Iterator[str]:
    """A folder in which only reading is allowed, and somebody who is bound by that."""
    everything = [folder, *folder.rglob("*")]
    for each in everything:
        each.chmod(0o555 if each.is_dir() else 0o444)
    user = os.geteuid()
    if user == 0:
        os.seteuid(_NOBODY)
    yield "Permission denied"
    os.seteuid(user)
    for each in everything:
        each.chmod(0o755)


@contextmanager
def read_only_disk(folder: Path) -> Iterator[str]:
    """A file system that is mounted so that nobody writes there."""
    _mount("-o", "remount,ro", str(folder))
    yield "Read-only file system"
    _mount("-o", "remount,rw", str(folder))


@contextmanager
def full_disk(folder: Path) -> Iterator[str]:
    """A file system that has room for less than half of a checkpoint."""
    others = folder / "others"
    disk = os.statvfs(folder)
    with others.open("wb") as file:
        file.write(bytes(disk.f_bavail * disk.f_frsize - 100_000))
    yield "No space left on device"
    others.unlink()


@contextmanager
def no_larger_files(folder: Path) -> Iterator[str]:
    """A process that writes no file of more than half of a checkpoint's."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    yield "File too large"
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


REFUSALS: dict[str, Refusal] = {
    each.__name__: each
    for each in (folder_without_rights, read_only_disk, full_disk, no_larger_files)
}
MOUNTING = ("read_only_disk", "full_disk")


def _mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stderr)
        sys.exit(UNABLE)


def all_in(folder: Path) -> set[str]:
    """The names of all files and folders in a folder, but for what fills the disk."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*")} - {"others"}


class Training:
    """Adds one to a variable of some 200 kB in each step."""

    def __init__(self, sess: fb.Session, folder: Path) -> None:
        self.sess = sess
        self.folder = folder
        x = fb.Variable(np.zeros(50_000, np.float32), name="x")
        self.step = fb.assign(x, x + 1.0)
        self.steps = 0

    def run(self) -> None:
        """Train for a step, which is to be seen."""
        self.steps += 1
        assert self.sess.run(self.step)[-1] == self.steps

    def refused(self, write: Callable[[], object], why: str, before: set[str]) -> None:
        """That something cannot be written, and says so; there is what was there before."""
        with pytest.raises(OSError, match=f"{why}.*{self.folder}"):
            write()
        assert all_in(self.folder) == before


def save(training: Training, refusal: Refusal) -> None:
    """Save while the training waits."""
    sess, folder = training.sess, training.folder
    saver = fb.train.Saver(max_to_keep=1)
    training.run()
    path = saver.save(sess, folder / "step", 1)
    before = all_in(folder)
    with refusal(folder) as why:
        for number in (2, 1):
            training.run()
            training.refused(lambda n=number: saver.save(sess, folder / "step", n), why, before)
            assert fb.train.latest_checkpoint(folder) == path
            assert set(fb.train.load_variable(path, "x").tolist()) == {1.0}
    training.run()
    path = saver.save(sess, folder / "step", 2)
    assert set(fb.train.load_variable(path, "x").tolist()) == {float(training.steps)}


def save_behind(training: Training, refusal: Refusal) -> None:
    """Save behind the training, which hears of it in a later step or where it waits for that."""
    sess, folder = training.sess, training.folder
    with sess.checkpoint(folder, every=1, saver=fb.train.Saver(max_to_keep=1)) as made:
        training.run()
        made.flush()
        path = made.latest
        assert path == str(folder / "step-1")
        before = all_in(folder)
        with refusal(folder) as why:
            for _ in range(2):
                training.run()
                training.refused(made.flush, why, before)
                assert fb.train.latest_checkpoint(folder) == path == made.latest
                assert set(fb.train.load_variable(path, "x").tolist()) == {1.0}
        training.run()
        made.flush()
        assert made.latest == str(folder / "step-4")
    with fb.Session(checkpoint=folder) as again:
        assert again.run(training.step)[-1] == training.steps + 1


def main(refusals: Sequence[str]) -> None:
    for refusal, way in itertools.product(refusals, (save, save_behind)):
        with fb.Graph().as_default():
            try_way(way, refusal)


def try_way(way: Callable[..., None], refusal: str) -> None:
    """Save in one of the ways, in a new folder."""
    # One's own: nobody else may look into those of pytest.
    folder = Path(tempfile.mkdtemp(prefix="flowbook-refused-"))
    try:
        if refusal in MOUNTING:
            _mount("-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder))
        with fb.Session() as sess:
            way(Training(sess, folder), REFUSALS[refusal])
    finally:
        if refusal in MOUNTING:
            subprocess.run(["umount", str(folder)], capture_output=True)
        with suppress(OSError):
            shutil.rmtree(folder)


if __name__ == "__main__":
    main(sys.argv[1:])
