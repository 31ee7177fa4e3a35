"""oneDNN is loaded when it is needed, serves many threads, and may be missing."""

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from unittest import mock

import numpy as np
import pytest

import flowbook as fb
from flowbook.exec.kernels import onednn
from tests.need import requires

with_library = requires(distribution="onednn-cpu-gomp")


@pytest.fixture
def unloaded(monkeypatch):
    """As in a process that has not looked for the library yet."""
    monkeypatch.setattr(onednn, "_found", None)


class Convolving:
    """A convolution and its gradients, of whole numbers."""

    def __init__(self):
        self.x, self.f = (
            fb.placeholder(fb.float32, [None] * 4),
            fb.placeholder(fb.float32, [None] * 4),
        )
        y = fb.nn.conv2d(self.x, self.f, 1, "SAME")
        self.fetched = [y, *fb.gradients(fb.reduce_sum(y * y), [self.x, self.f])]
        self.session = fb.Session()

    def __call__(self, *shape):
        random = np.random.default_rng(0)
        images, filters = (
            random.integers(-3, 4, dims).astype(np.float32)
            for dims in (shape, (3, 3, shape[-1], 4))
        )
        return self.session.run(self.fetched, {self.x: images, self.f: filters})


@pytest.fixture
def convolved():
    convolving = Convolving()
    with convolving.session:
        yield convolving


def test_without_the_library_values_are_the_same(unloaded, convolved, monkeypatch):
    expected = convolved(2, 5, 6, 3)
    monkeypatch.setattr(onednn, "_found", None)
    monkeypatch.setattr(onednn, "_candidates", list)
    for found, wanted in zip(convolved(2, 5, 6, 3), expected, strict=True):
        np.testing.assert_array_equal(found, wanted)
    told = fb.special_kernels()["Convolution"]
    assert told == "NumPy: oneDNN is not installed: pip install onednn-cpu-gomp"


def test_a_library_that_cannot_be_loaded_is_told(unloaded, monkeypatch, tmp_path):
    broken = tmp_path / "libdnnl.so.3"
    broken.write_text("no library")
    monkeypatch.setattr(onednn, "_candidates", lambda: [str(broken)])
    assert fb.special_kernels()["MaxPool"].startswith(f"NumPy: OSError: {broken}")


@with_library
def test_which_library_is_told():
    assert set(fb.special_kernels().values()) == {f"oneDNN {onednn.library().version}"}
    assert onednn.library().version.startswith("3.")


@with_library
@pytest.mark.parametrize("given", [{}, {"OMP_WAIT_POLICY": "ACTIVE"}, {"GOMP_SPINCOUNT": "7"}])
def test_loading_leaves_the_environment_as_it_was(unloaded, monkeypatch, given):
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    monkeypatch.delenv("GOMP_SPINCOUNT", raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    before, seen = dict(os.environ), []

    def record(self, path):
        seen.append(dict(os.environ))

    with mock.patch.object(onednn.Library, "__init__", record):
        onednn.library()
    assert dict(os.environ) == before
    assert seen == [before if given else {**before, "OMP_WAIT_POLICY": "PASSIVE"}]


@with_library
def test_many_threads_compute_the_same_and_different_shapes(convolved):
    shapes = [(2, 9, 8, 3), (2, 9, 8, 3), (1, 4, 4, 16), (3, 7, 5, 1)]
    expected = [convolved(*shape) for shape in shapes]
    together = Barrier(8)

    def compute(number):
        together.wait()
        return [convolved(*shape) for shape in shapes[number % 4 :] * 5]

    with ThreadPoolExecutor(8) as pool:
        for number, found in enumerate(pool.map(compute, range(8))):
            for values, wanted in zip(found, expected[number % 4 :] * 5, strict=True):
                for one, other in zip(values, wanted, strict=True):
                    np.testing.assert_array_equal(one, other)


@with_library
@requires(module="threadpoolctl")
def test_it_uses_as_many_threads_as_the_option_says(convolved):
    limits = []

    def run(self, addresses, compute=onednn._Call.run):
        limits.append(onednn.library().quick.omp_get_max_threads())
        compute(self, addresses)

    before = onednn.library().quick.omp_get_max_threads()
    with mock.patch.object(onednn._Call, "run", run):
        try:
            for threads in (1, 3):
                fb.options.intra_op_threads = threads
                convolved(2, 6, 6, 3)
        finally:
            fb.options.intra_op_threads = None
    assert limits == [1, 1, 1, 3, 3, 3]
    assert onednn.library().quick.omp_get_max_threads() == before


@with_library
def test_it_uses_no_more_threads_than_there_are_processors_for(monkeypatch):
    limited = onednn.library().limited
    monkeypatch.setattr(onednn, "processors", lambda: 4)
    assert limited(3, onednn.threads) == 3
    monkeypatch.setattr(onednn, "processors", lambda: 2)
    assert limited(3, onednn.threads) == 2


@with_library
def test_what_is_no_longer_kept_is_destroyed():
    destroyed = []
    library = onednn.library()
    handle = library.make("stream", "stream_create", library.engine, 1)
    destroy = handle.destroy

    def record(handle):
        destroyed.append(handle.value)
        return destroy(handle)

    handle.destroy, place = record, handle.value
    del handle
    assert destroyed == [place]


@with_library
def test_what_it_does_not_make_is_unsupported():
    made = onednn.Computation(onednn.library(), 1)
    with pytest.raises(onednn.Unsupported, match="memory_desc_create_with_strides gave the status"):
        made.plain([-1], [0])
    with pytest.raises(onednn.Unsupported, match="convolution_forward"):
        made.describe("convolution_forward", onednn.FORWARD, 0, *[None] * 8)


@with_library
def test_a_failing_primitive_is_an_error_of_its_operation(convolved):
    with (
        mock.patch.object(onednn.library(), "execute", return_value=5),
        pytest.raises(fb.errors.InternalError, match="oneDNN gave the status 5") as caught,
    ):
        convolved(2, 3, 4, 3)
    assert caught.value.operation.type == "Convolution"


def program(text):
    """What a Python program prints."""
    command = [sys.executable, "-c", textwrap.dedent(text)]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return ran.stdout


LOADED = """
    import numpy as np, os, warnings
    import flowbook as fb
    def is_loaded():
        return "libdnnl" in open("/proc/self/maps").read()
    x = fb.placeholder(fb.float32, [2, 5, 5, 3])
    y = fb.nn.conv2d(x, np.ones([3, 3, 3, 4], np.float32), 1, "SAME")
    session = fb.Session()
    images = np.ones([2, 5, 5, 3], np.float32)
"""


@with_library
@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux tells of a process")
def test_it_is_loaded_when_it_is_first_needed():
    text = """
    session.run(x + 1, {x: images})
    before = is_loaded()
    session.run(y, {x: images})
    print(before, is_loaded())
    """
    assert program(LOADED + text) == "False True\n"


@with_library
@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not fork")
def test_a_forked_process_goes_on_without_it():
    text = """
    # Python warns of forking beside any thread: OpenMP's, here.
    warnings.simplefilter("ignore", DeprecationWarning)
    expected = session.run(y, {x: images})
    if not (child := os.fork()):
        same = np.array_equal(session.run(y, {x: images}), expected)
        os._exit(7 if same and "fork" in fb.special_kernels()["Convolution"] else 1)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    print(fb.special_kernels()["Convolution"].split()[0])
    """
    assert program(LOADED + text) == "7\noneDNN\n"
