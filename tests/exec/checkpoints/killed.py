"""Saves checkpoints over and over, and is killed on the way: at a point after the other.

A point is a call that changes a file system. Each time a child process is forked that saves twice,
and kills itself before the n-th such call; or lets it fail, as a full disk would. It is run as

    python -m tests.exec.checkpoints.killed FOLDER

and prints how many points there were.
"""

import builtins
import itertools
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import flowbook as fb
from flowbook.exec.checkpoints import checkpoint as checkpoints

_CALLS = ("fsync", "replace", "unlink", "mkdir", "rmdir")


def count_calls(before: Callable[[], None]) -> None:
    """Have something called before every call that changes a file system."""

    def counted(function: Any) -> Any:
        def call(*args: Any, **kwargs: Any) -> Any:
            before()
            return function(*args, **kwargs)

        return call

    for name in _CALLS:
        setattr(os, name, counted(getattr(os, name)))
    real_open = builtins.open

    class Stream:
        """A file whose writes are counted, and go to the disk one by one."""

        def __init__(self, file: Any) -> None:
            self._file = file

        def write(self, data: Any) -> int:
            before()
            half = len(data) // 2
            self._file.write(data[:half])
            self._file.flush()
            before()
            self._file.write(data[half:])
            self._file.flush()
            return len(data)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

    def opened(path: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
        if "x" not in mode:
            return real_open(path, mode, *args, **kwargs)
        before()
        return Stream(real_open(path, mode, *args, **kwargs))

    builtins.open = opened


def save(sess: fb.Session, folder: str, values: Iterable[float]) -> None:
    """Save values, each as the step that it is cut off to."""
    saver = fb.train.Saver(max_to_keep=2)
    for value in values:
        sess.run("assign", {"value:0": np.full([8], value)})
        saver.save(sess, f"{folder}/model", int(value))


def assert_whole(folder: str) -> int:
    """That the latest checkpoint loads, and all others that there are; the latest one's step."""
    found = checkpoints.found_in(checkpoints.folder_at(folder))
    for each in found:
        values = each.read(["W", "b"])
        (value,) = set(values["W"].tolist())
        assert int(value) == each.about.step
        assert values["b"].tolist() == [b"text"]
    assert len(found) >= 2
    return found[-1].about.step or 0


# New checkpoints, in whose favour old ones go, and one again.
_AGAIN = (3.0, 3.5, 4.0)


def run_point(sess: fb.Session, folder: str, number: int, act: Callable[[], None]) -> int:
    """Save in a child that acts before the n-th call; its wait status."""
    child = os.fork()
    if child == 0:
        numbers = itertools.count(1)

        def before() -> None:
            if next(numbers) == number:
                act()

        try:
            count_calls(before)
            save(sess, folder, _AGAIN)
        except OSError:
            os._exit(3)
        except BaseException:
            os._exit(4)
        os._exit(5 if next(numbers) > number else 0)
    return os.waitpid(child, 0)[1]


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise OSError(28, "No space left on device")


def main(folder: Path) -> None:
    # What a killed process has written, the system keeps: that it is on the disk takes time alone.
    os.fsync = lambda file: None
    W = fb.Variable(np.zeros([8]), name="W")
    value = fb.placeholder(fb.float64, [8], name="value")
    fb.assign(W, value, name="assign")
    fb.Variable(np.array([b"text"], object), name="b")
    sess = fb.Session()
    # A full disk keeps what is saved from being there, but not because nothing can be removed.
    for name, act, statuses in (("killed", kill, {signal.SIGKILL}), ("full", fail, {768, 1280})):
        where = folder / name
        seen = set()
        for number in itertools.count(1):
            root = str(where / str(number))
            save(sess, root, (1.0, 2.0))
            ended = run_point(sess, root, number, act)
            seen.add(assert_whole(root))
            if ended == 0:
                break
            assert ended in statuses, (name, number, ended)
            # What goes on from there leaves nothing behind of what was killed.
            save(sess, root, _AGAIN)
            assert assert_whole(root) == 4
            left = sorted(path.name.split(".")[0] for path in Path(root).glob("model-[34]/*"))
            assert left == ["cpu-0", "cpu-0", "index", "index"], left
        assert seen == {2, 3, 4}, seen
        print(name, number)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
