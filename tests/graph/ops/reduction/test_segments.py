"""Rows combined by segment, where all rows are computed at once."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flowbook.exec.devices.simulated import Simulated
from flowbook.graph.ops.reduction.segments import combined


@given(
    ids=st.lists(st.integers(0, 6), max_size=40),
    how=st.sampled_from([("add", 0), ("multiply", 1), ("maximum", -9), ("minimum", 9)]),
    columns=st.sampled_from([(), (1,), (3,)]),
)
def test_devices_that_compute_all_rows_at_once_combine_the_same(
    ids: list[int], how: tuple[str, int], columns: tuple[int, ...]
) -> None:
    rows = np.arange(1, 1 + len(ids) * math.prod(columns)).reshape(len(ids), *columns) % 7 - 3
    device = Simulated()
    (ufunc, initial), known = how, np.array(ids, int)
    found = combined(device.xp, ufunc, device.own(rows), device.own(known), 8, initial)
    wanted = combined(np, ufunc, rows, known, 8, initial)
    np.testing.assert_array_equal(device.fetch(found), wanted)
    assert not device.waits
