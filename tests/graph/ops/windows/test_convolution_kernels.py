"""A convolution's gradient by its input is the same as a convolution and as sums of places."""

from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from flowbook.graph.ops.windows import convolution_kernels as kernels

AXIS = st.tuples(
    st.integers(1, 9),  # elements
    st.integers(1, 4),  # of a window
    st.integers(1, 3),  # apart
    st.tuples(st.integers(0, 4), st.integers(0, 4)),  # padding
).filter(lambda axis: axis[0] + sum(axis[3]) > (axis[1] - 1) * axis[2])


@given(
    st.lists(AXIS, min_size=1, max_size=2),
    st.sampled_from(["SAME", "VALID", "pairs"]),
    st.sampled_from([np.float16, np.float32, np.float64]),
)
def test_the_gradient_by_the_input_either_way(axes, padding, dtype):
    lengths, sizes, dilations, pairs = (tuple(axis[i] for axis in axes) for i in range(4))
    extents = [(size - 1) * d + 1 for size, d in zip(sizes, dilations, strict=True)]
    if padding == "VALID" and any(n < e for n, e in zip(lengths, extents, strict=True)):
        lengths = tuple(n + e for n, e in zip(lengths, extents, strict=True))
    random = np.random.default_rng(0)
    dims, ones = (2, *lengths, 3), (1,) * len(axes)
    how = (ones, pairs if padding == "pairs" else padding, dilations)
    filters = random.integers(-3, 4, (*sizes, 3, 2)).astype(dtype)
    output = kernels.convolve(np, np.zeros(dims, dtype), filters, *how)
    slopes = random.integers(-3, 4, output.shape).astype(dtype)

    found = []
    for thin in (1, 100):
        with mock.patch.object(kernels, "_THIN", thin):
            found.append(kernels.input_gradient(np, np.array(dims), filters, slopes, *how))
    assert found[0].shape == dims
    assert found[0].dtype == dtype
    # Sums of small whole numbers are exact.
    np.testing.assert_array_equal(*found)
