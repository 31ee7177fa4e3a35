"""What holds for every test: a default graph of its own, reproducible examples, no hidden gaps."""

import gc
import os
import signal
import sys
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

# Their matrices and images are small: waking threads for one takes longer than what it computes, a
# hundredfold, and oneDNN's threads do not sleep while they wait for each other. BLAS reads its
# variable when NumPy is imported, and OpenMP, which is oneDNN's, with the first convolution.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Plans do not depend on what was measured of the machine: nothing can be kept there or read.
os.environ["FLOWBOOK_CACHE"] = os.devnull

import flowbook as fb
from flowbook.exec.devices import kinds
from flowbook.graph.model import registry

# How long drawing takes says more of what else the machine does.
TOO_SLOW = HealthCheck.too_slow

# The same examples every time, whatever the machine's speed. `make soak` looks further.
settings.register_profile("ci", derandomize=True, deadline=None, suppress_health_check=[TOO_SLOW])
settings.register_profile("soak", settings.get_profile("ci"), max_examples=5_000, derandomize=False)
settings.load_profile("ci")

# Tests interrupt runs, also where a shell began them in the background and has them ignore that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test has a thread that compiles beside it, unless it is about that.
fb.options.machine_code = "never"

# Nor does a run say that it waits, where the machine is busy.
fb.options.report_waits = None

# nbformat imports jsonschema, and that, where it is installed, a package which takes a second to
# prepare for international addresses. No schema here has any.
sys.modules["rfc3987_syntax"] = None  # type: ignore[assignment]

# Most of what a test makes lives until it ends: to look for garbage as often as Python does, after
# 700 objects, takes a twentieth of the time.
gc.set_threshold(20_000)

Report = pytest.TestReport | pytest.CollectReport

# Set of a file whose tests have begun.
BEGUN = pytest.StashKey[bool]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Start a test on an empty default graph, and a file with nothing of others to collect.

    The examples of one property test share the graph. As fixtures of every test the two would take
    a fifth of the time of the short ones.
    """
    fb.reset_default_graph()
    if BEGUN not in item.parent.stash:
        item.parent.stash[BEGUN] = True
        # The collector, which tests call often, passes by what pytest and other files keep.
        gc.collect()
        gc.freeze()


def fail_if_missing(report: Report) -> None:
    """Where FLOWBOOK_NO_SKIPS is set, make a failure of a skip for want of something."""
    if not (report.skipped and os.environ.get("FLOWBOOK_NO_SKIPS")):
        return
    _, _, reason = report.longrepr
    if reason.startswith("Skipped: missing:"):
        report.outcome = "failed"
        report.longrepr = f"{reason}, and FLOWBOOK_NO_SKIPS allows no skip for that"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Report, Report]:
    """Judge the skip of a test, by a mark or from within."""
    report = yield
    fail_if_missing(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Report, Report]:
    """Judge the skip of a whole file, by `pytest.importorskip(..., reason="missing: ...")`."""
    report = yield
    fail_if_missing(report)
    return report


@pytest.fixture
def own_kinds_of_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the kinds of devices that a test registers be gone afterwards."""
    monkeypatch.setattr(kinds, "_kinds", kinds._kinds.copy())
    monkeypatch.setattr(registry, "_device_kinds", registry._device_kinds.copy())
