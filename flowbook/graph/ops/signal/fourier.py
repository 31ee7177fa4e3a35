"""Discrete Fourier transforms over the last one, two or three dimensions; the others are a batch.

A forward transform is not scaled and its inverse is divided by the number of elements, as
everywhere. The gradient of a transform is its adjoint: the other direction, scaled the other way,
which `norm` says. Real transforms keep the half of the spectrum that determines the other; their
adjoints weigh what stands for two frequencies twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2, prod
from typing import Any

import numpy as np

from flowbook.graph.definition.axes import as_axis, settled
from flowbook.graph.definition.inference import shape_from
from flowbook.graph.definition.op_def import REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import COMPLEX, INDICES, complex64, complex128, float32, float64
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import UNKNOWN, Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.shaping import check_vector, dims_of, shape_of

__all__ = [
    "fft",
    "fft2d",
    "fft3d",
    "ifft",
    "ifft2d",
    "ifft3d",
    "irfft",
    "irfft2d",
    "irfft3d",
    "rfft",
    "rfft2d",
    "rfft3d",
]

_TO_COMPLEX = {float32: complex64, float64: complex128}
_TO_REAL = {c: r for r, c in _TO_COMPLEX.items()}

# The opposite scaling, in NumPy's words.
_ADJOINT = {"backward": "forward", "forward": "backward", "ortho": "ortho"}

Lengths = tuple[int, ...] | None


def _check_rank(dims: Any, count: int) -> None:
    if dims is not None and len(dims) < count:
        raise InvalidArgumentError(
            f"a transform over {counted(count, 'dimension')} does not fit the shape {Shape(dims)}"
        )


def _axes(count: int) -> tuple[int, ...]:
    return tuple(range(-count, 0))


def transform_flops(shape: Shape, lengths: Sequence[int | None]) -> int:
    """5 n log2(n) for each transform of n elements (Cooley and Tukey), of so many by each axis."""
    if shape.size is None or shape.dims is None or None in lengths:
        return 0
    n = prod(d or 0 for d in lengths)
    count = prod(d or 0 for d in shape.dims[: -len(lengths)])
    return round(5 * count * n * log2(n)) if n else 0


def _complex_flops(count: int) -> Callable[[Operation], int]:
    def cost(op: Operation) -> int:
        shape = op.inputs[0].shape
        return transform_flops(shape, shape.dims[-count:] if shape.dims else ())

    return cost


def _real_flops(op: Operation) -> int:
    """Half of what a complex transform takes; the signal's lengths, not its spectrum's, count."""
    [signal] = [t.shape for t in (op.inputs[0], op.outputs[0]) if not t.dtype.is_complex]
    rank, lengths = op.attributes["rank"], op.attributes["fft_length"]
    if lengths is None:
        lengths = signal.dims[-rank:] if signal.dims else ()
    return transform_flops(signal, lengths) // 2


def _complex_transform(
    type: str, function: str, inverse: Callable[[], OpDef], count: int, doc: str
) -> OpDef:
    def infer(input: Tensor, norm: str) -> Shape:
        _check_rank(input.shape.dims, count)
        return input.shape

    def kernel(xp: Any, input: Any, norm: str) -> Any:
        _check_rank(input.shape, count)
        if not input.size:
            return xp.zeros(input.shape, input.dtype)
        return getattr(xp.fft, function)(input, axes=_axes(count), norm=norm)

    return OpDef(
        type,
        "input: T -> output: T",
        T=COMPLEX,
        attributes={"norm": "backward"},
        choices={"norm": tuple(_ADJOINT)},
        after_name=("norm",),
        infer=infer,
        kernel=kernel,
        grad=lambda op, dy: inverse()(dy, norm=_ADJOINT[op.attributes["norm"]]),
        cost=_complex_flops(count),
        doc=doc,
        function=type.lower(),
    )


fft = _complex_transform(
    "FFT",
    "fftn",
    lambda: ifft,
    1,
    """The discrete Fourier transform over the last dimension.

    Args:
        input: [..., n] of complex64 or complex128.
        norm: "backward" scales the inverse alone, by 1 / n; "forward" this one alone; "ortho"
            either by the root of that.

    Returns:
        A tensor of the input's shape and dtype.
    """,
)

ifft: OpDef = _complex_transform(
    "IFFT",
    "ifftn",
    lambda: fft,
    1,
    "The inverse of `fft` with the same `norm`: by default scaled by 1 / n.",
)

fft2d = _complex_transform(
    "FFT2D", "fftn", lambda: ifft2d, 2, "As `fft`, over the last two dimensions."
)

ifft2d: OpDef = _complex_transform(
    "IFFT2D", "ifftn", lambda: fft2d, 2, "As `ifft`, over the last two dimensions."
)

fft3d = _complex_transform(
    "FFT3D", "fftn", lambda: ifft3d, 3, "As `fft`, over the last three dimensions."
)

ifft3d: OpDef = _complex_transform(
    "IFFT3D", "ifftn", lambda: fft3d, 3, "As `ifft`, over the last three dimensions."
)


# Real transforms


def _half(length: int | None) -> int | None:
    """How many frequencies a real signal's spectrum keeps."""
    return None if length is None else length // 2 + 1 if length else 0


def _whole(frequencies: int | None) -> int | None:
    """How long a signal is whose spectrum has so many frequencies, if it is even."""
    return None if frequencies is None else max(2 * (frequencies - 1), 0)


def _spectrum_dims(dims: Any, lengths: Lengths, count: int) -> tuple[Any, ...]:
    *inner, last = lengths if lengths is not None else dims[-count:]
    return (*dims[:-count], *inner, _half(last))


def _signal_dims(dims: Any, lengths: Lengths, count: int) -> tuple[Any, ...]:
    if lengths is not None:
        return (*dims[:-count], *lengths)
    return (*dims[:-1], _whole(dims[-1]))


def _rfft_shape(input: Tensor, fft_length: Lengths, rank: int, **_: Any) -> Shape:
    dims = input.shape.dims
    _check_rank(dims, rank)
    return UNKNOWN if dims is None else Shape.of(_spectrum_dims(dims, fft_length, rank))


def _irfft_shape(input: Tensor, fft_length: Lengths, rank: int, **_: Any) -> Shape:
    dims = input.shape.dims
    _check_rank(dims, rank)
    return UNKNOWN if dims is None else Shape.of(_signal_dims(dims, fft_length, rank))


def _rfft(xp: Any, input: Any, fft_length: Lengths, rank: int, norm: str = "backward") -> Any:
    _check_rank(input.shape, rank)
    dims = _spectrum_dims(input.shape, fft_length, rank)
    if not input.size or not _size(dims):
        return xp.zeros(dims, np.result_type(input.dtype, np.complex64))
    return xp.fft.rfftn(input, fft_length, _axes(rank), norm)


def _irfft(xp: Any, input: Any, fft_length: Lengths, rank: int, norm: str = "backward") -> Any:
    _check_rank(input.shape, rank)
    dims = _signal_dims(input.shape, fft_length, rank)
    if not input.size or not _size(dims):
        return xp.zeros(dims, input.real.dtype)
    # Given all lengths, since NumPy takes an axis's own for those that are not.
    return xp.fft.irfftn(input, dims[-rank:], _axes(rank), norm)


def _size(dims: tuple[int, ...]) -> int:
    result = 1
    for d in dims:
        result *= d
    return result


def _weights(xp: Any, spectrum: Any, length: int, doubled: float, alone: float) -> Any:
    """Factors for the frequencies of a half spectrum: of those that stand for two, and others."""
    weights = xp.full(spectrum.shape[-1], doubled, dtype=spectrum.real.dtype)
    weights[0] = alone
    if length % 2 == 0:
        weights[-1] = alone
    return weights


def _fitted(xp: Any, array: Any, dims: tuple[int, ...]) -> Any:
    """An array cut, or filled up with zeros, to a shape."""
    if array.shape == dims:
        return array
    result = xp.zeros(dims, array.dtype)
    part = tuple(slice(min(m, n)) for m, n in zip(array.shape, dims, strict=True))
    result[part] = array[part]
    return result


def _given_shape(dy: Tensor, shape: Tensor, **_: Any) -> Shape:
    check_vector("shape", shape)
    return shape_from(shape)


def _rfft_adjoint(xp: Any, dy: Any, shape: Any, fft_length: Lengths, rank: int) -> Any:
    dims = dims_of(shape)
    lengths = fft_length if fft_length is not None else dims[-rank:]
    if not dy.size or not _size(dims):
        return xp.zeros(dims, dy.real.dtype)
    weighted = dy * _weights(xp, dy, lengths[-1], 0.5, 1.0)
    whole = xp.fft.irfftn(weighted, lengths, _axes(rank), "forward")
    return _fitted(xp, whole, dims)


def _irfft_adjoint(xp: Any, dy: Any, shape: Any, fft_length: Lengths, rank: int) -> Any:
    dims = dims_of(shape)
    if not dy.size or not _size(dims):
        return xp.zeros(dims, np.result_type(dy.dtype, np.complex64))
    spectrum = xp.fft.rfftn(dy, axes=_axes(rank), norm="forward")
    weighted = spectrum * _weights(xp, spectrum, dy.shape[-1], 2.0, 1.0)
    return _fitted(xp, weighted, dims)


_ATTRIBUTES = {"fft_length": None, "rank": 1, "Tout": REQUIRED}

rfft_op: OpDef = OpDef(
    "RFFT",
    "input: T -> output: Tout",
    T=tuple(_TO_COMPLEX),
    attributes=_ATTRIBUTES,
    infer=_rfft_shape,
    kernel=_rfft,
    grad=lambda op, dy: rfft_gradient_op(
        dy, shape_of(op.inputs[0]), **{**op.attributes, "Tout": op.inputs[0].dtype}
    ),
    cost=_real_flops,
)

irfft_op: OpDef = OpDef(
    "IRFFT",
    "input: T -> output: Tout",
    T=COMPLEX,
    attributes=_ATTRIBUTES,
    infer=_irfft_shape,
    kernel=_irfft,
    grad=lambda op, dy: irfft_gradient_op(
        dy, shape_of(op.inputs[0]), **{**op.attributes, "Tout": op.inputs[0].dtype}
    ),
    cost=_real_flops,
)

rfft_gradient_op: OpDef = OpDef(
    "RFFTGrad",
    "dy: T, shape: I -> dx: Tout",
    T=COMPLEX,
    I=INDICES,
    attributes=_ATTRIBUTES,
    infer=_given_shape,
    kernel=_rfft_adjoint,
    host_args=("shape",),
    grad=lambda op, dz: (rfft_op(dz, **{**op.attributes, "Tout": op.inputs[0].dtype}), None),
    cost=_real_flops,
)

irfft_gradient_op: OpDef = OpDef(
    "IRFFTGrad",
    "dy: T, shape: I -> dx: Tout",
    T=tuple(_TO_COMPLEX),
    I=INDICES,
    attributes=_ATTRIBUTES,
    infer=_given_shape,
    kernel=_irfft_adjoint,
    host_args=("shape",),
    grad=lambda op, dz: (irfft_op(dz, **{**op.attributes, "Tout": op.inputs[0].dtype}), None),
    cost=_real_flops,
)


def _lengths(fft_length: Any, rank: int) -> Lengths:
    if fft_length is None:
        return None
    fft_length = settled(fft_length, "fft_length")
    if isinstance(fft_length, np.ndarray):
        fft_length = fft_length.tolist()
    given = fft_length if isinstance(fft_length, Sequence) else [fft_length]
    lengths = tuple(as_axis(n) for n in given)
    if len(lengths) != rank or any(n < 0 for n in lengths):
        raise InvalidArgumentError(
            f"fft_length has a length for each of {counted(rank, 'dimension')}, not {list(lengths)}"
        )
    return lengths


def _real(
    op_def: OpDef, input: Any, fft_length: Any, rank: int, dtypes: Any, name: str | None
) -> Tensor:
    input = convert_to_tensor(input)
    lengths = _lengths(fft_length, rank)
    return op_def(
        input, fft_length=lengths, rank=rank, Tout=dtypes.get(input.dtype, complex64), name=name
    )


@rfft_op.front
def rfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The discrete Fourier transform of real signals, over the last dimension.

    Args:
        input_tensor: [..., n] of float32 or float64.
        fft_length: the signals are cut to this length, or filled up with zeros; an int or a
            sequence of one, by default n.

    Returns:
        complex64 or complex128 [..., fft_length // 2 + 1]: the other half of the spectrum is the
        conjugate of this one.

    >>> import flowbook as fb
    >>> fb.rfft(fb.zeros([5, 8]))
    <Tensor 'RFFT:0' shape=[5, 5] dtype=complex64>
    """
    return _real(rfft_op, input_tensor, fft_length, 1, _TO_COMPLEX, name)


@irfft_op.front
def irfft(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """The real signals of half spectra: the inverse of `rfft`, over the last dimension.

    Args:
        input_tensor: [..., m] of complex64 or complex128.
        fft_length: how long the signals are, an int or a sequence of one; by default
            `2 * (m - 1)`. Spectra are cut to `fft_length // 2 + 1`, or filled up with zeros.

    Returns:
        float32 or float64 [..., fft_length].
    """
    return _real(irfft_op, input_tensor, fft_length, 1, _TO_REAL, name)


def rfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """As `rfft`, over the last two dimensions; `fft_length` is a pair of ints."""
    return _real(rfft_op, input_tensor, fft_length, 2, _TO_COMPLEX, name)


def irfft2d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """As `irfft`, over the last two dimensions; `fft_length` is a pair of ints."""
    return _real(irfft_op, input_tensor, fft_length, 2, _TO_REAL, name)


def rfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """As `rfft`, over the last three dimensions; `fft_length` is a triple of ints."""
    return _real(rfft_op, input_tensor, fft_length, 3, _TO_COMPLEX, name)


def irfft3d(input_tensor: Any, fft_length: Any = None, name: str | None = None) -> Tensor:
    """As `irfft`, over the last three dimensions; `fft_length` is a triple of ints."""
    return _real(irfft_op, input_tensor, fft_length, 3, _TO_REAL, name)
