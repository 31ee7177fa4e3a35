"""The limit on the threads of a matrix product."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

import flowbook as fb
from tests.need import requires


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    yield
    fb.options.intra_op_threads = None


def used() -> set[int]:
    from threadpoolctl import threadpool_info

    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


@requires(module="threadpoolctl")
def test_it_holds_for_every_blas_and_ends() -> None:
    fb.options.intra_op_threads = 1
    assert used() == {1}
    fb.options.intra_op_threads = None
    before = used()
    fb.options.intra_op_threads = 3
    assert used() == {3}
    # The second limit replaces the first: what comes back is what was there before both.
    fb.options.intra_op_threads = 2
    assert used() == {2}
    assert "intra_op_threads=2" in repr(fb.options)
    fb.options.intra_op_threads = None
    assert used() == before


@pytest.mark.parametrize("value", [0, -1, 1.0, "2", True, float("nan")])
def test_what_is_no_number_of_threads_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="intra_op_threads"):
        fb.options.intra_op_threads = value
    assert fb.options.intra_op_threads is None


def test_without_threadpoolctl_the_error_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with pytest.raises(fb.errors.UnimplementedError, match="OPENBLAS_NUM_THREADS"):
        fb.options.intra_op_threads = 1
    assert fb.options.intra_op_threads is None


def test_the_names_of_options_are_listed() -> None:
    with pytest.raises(
        AttributeError, match="full_tracebacks, intra_op_threads, machine_code, report_waits, stale"
    ):
        fb.options.threads = 1  # type: ignore[attr-defined]
