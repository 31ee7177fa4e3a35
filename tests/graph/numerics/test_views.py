"""Views against NumPy's own functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowbook.graph.numerics.views import broadcast_view

sizes = st.integers(0, 3)


@given(st.lists(sizes, max_size=4), st.lists(sizes, max_size=2), st.data())
def test_broadcast_view_is_numpys(dims: list[int], ahead: list[int], data: st.DataObject) -> None:
    """Of arrays that lie in any way, to any shape that they fit."""
    turned = data.draw(st.permutations(range(len(dims))))
    x = np.arange(np.prod(dims), dtype=np.int32).reshape(dims).transpose(turned)
    if x.ndim and data.draw(st.booleans()):
        x = x[::-1]
    wanted = (*ahead, *[data.draw(sizes) if size == 1 else size for size in x.shape])
    expected, found = np.broadcast_to(x, wanted), broadcast_view(np, x, wanted)
    np.testing.assert_array_equal(found, expected, strict=True)
    assert found.strides == expected.strides
    assert not found.flags.writeable
    assert not x.size or found.size == 0 or np.shares_memory(found, x)


@pytest.mark.parametrize("wanted", [(), (2,), (3, 1), (2, -1), (-1, 3), (0,)])
def test_what_does_not_broadcast(wanted: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="broadcast"):
        broadcast_view(np, np.ones(3), wanted)


def test_strings() -> None:
    x = np.array([["a"], ["b"]], object)
    assert broadcast_view(np, x, (2, 2)).tolist() == [["a", "a"], ["b", "b"]]
