"""Values as text, and text printed while a graph runs.

Printing happens in the order of construction within a step, on the thread that runs it, to what
`sys.stderr` or `sys.stdout` is at that moment: in a notebook, to the output of the cell.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from flowbook.graph.definition.composed import composed
from flowbook.graph.definition.inference import nothing, same_as_input, scalar
from flowbook.graph.definition.op_def import HOST, REQUIRED, OpDef
from flowbook.graph.model.counted import counted
from flowbook.graph.model.dtypes import MOVABLE
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Arithmetic, Tensor
from flowbook.graph.model.touch import OUTSIDE
from flowbook.graph.numerics.tensor_text import text_of
from flowbook.graph.ops.basis.constants import convert_to_tensor
from flowbook.graph.ops.basis.sparse_tensor import SparseTensor

__all__ = ["Print", "print"]


def _format(xp: Any, *inputs: Any, template: tuple[str, ...], summarize: int) -> Any:
    if len(template) != len(inputs) + 1:
        raise InvalidArgumentError(
            f"{len(template)} texts do not enclose {counted(len(inputs), 'value')}"
        )
    parts = [template[0]]
    for value, text in zip(inputs, template[1:], strict=True):
        parts += text_of(value, summarize), text
    result = np.empty((), object)
    result[()] = "".join(parts).encode()
    return result


format_op = OpDef(
    "StringFormat",
    "inputs: *inputs -> output: string",
    attributes={"template": REQUIRED, "summarize": 3},
    infer=scalar,
    kernel=_format,
    kinds=HOST,
    only_moves=True,
)


@format_op.front
def format(
    template: str,
    inputs: Any,
    placeholder: str = "{}",
    summarize: int = 3,
    name: str | None = None,
) -> Tensor:
    """A text with the values of tensors in it.

    Args:
        template: the text; each `placeholder` in it stands for one of the inputs.
        inputs: a tensor, or a list of them, of any dtypes.
        placeholder: what stands for an input.
        summarize: how many elements at the beginning and the end of each dimension are shown; -1
            shows all.

    Returns:
        A string scalar. Numbers are written as NumPy prints them.

    Raises:
        InvalidArgumentError: if there are not as many placeholders as inputs.

    >>> import flowbook as fb
    >>> with fb.Session() as sess:
    ...     sess.run(fb.strings.format("x is {}.", fb.range(10)))
    b'x is [0 1 2 ... 7 8 9].'
    """
    texts = template.split(placeholder)
    values = list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if len(texts) != len(values) + 1:
        raise InvalidArgumentError(
            f"the template has {len(texts) - 1} placeholders {placeholder!r} for "
            f"{counted(len(values), 'input')}"
        )
    return format_op(values, template=tuple(texts), summarize=summarize, name=name)


def _write(text: Any, stream: str) -> None:
    target = getattr(sys, stream)
    # Python without a console has none.
    if target is not None:
        target.write(text)
        target.flush()


def _print_text(xp: Any, text: Any, stream: str, end: str) -> tuple[()]:
    _write(text.item().decode(errors="replace") + end, stream)
    return ()


_STREAMS = ("stderr", "stdout")

print_text_op: OpDef[Operation] = OpDef(
    "PrintText",
    "text: string ->",
    attributes={"stream": "stderr", "end": "\n"},
    choices={"stream": _STREAMS},
    infer=nothing,
    kernel=_print_text,
    kinds=HOST,
    touches=OUTSIDE,
    only_moves=True,
)


@print_text_op.front
@composed
def print(
    *inputs: Any,
    output_stream: Any = None,
    summarize: int = 3,
    sep: str = " ",
    end: str = "\n",
    name: str | None = None,
) -> Operation:
    """Print values, in every run that includes the operation.

    Args:
        inputs: tensors, sparse tensors, variables, anything that Python prints, and lists, tuples
            and dictionaries of these.
        output_stream: `sys.stderr` (the default) or `sys.stdout`.
        summarize: how many elements at the beginning and the end of each dimension are shown; -1
            shows all.
        sep: what stands between inputs.
        end: what stands behind the last.

    Returns:
        The operation. It runs if it is fetched, or if something waits for it.

    >>> import sys
    >>> import flowbook as fb
    >>> x = fb.constant([1.0, 2.0])
    >>> with fb.control_dependencies([fb.print("x is", x, output_stream=sys.stdout)]):
    ...     y = x * 2.0
    >>> with fb.Session() as sess:
    ...     y_value = sess.run(y)
    x is [1.0 2.0]
    """
    stream = _stream_name(output_stream)
    texts: list[str] = [""]
    tensors: list[Tensor] = []
    for i, item in enumerate(inputs):
        texts[-1] += sep if i else ""
        _collect(item, texts, tensors, inside=False)
    text = format_op(tensors, template=tuple(texts), summarize=summarize)
    result: Operation = print_text_op(text, stream=stream, end=end)
    return result


def _collect(item: Any, texts: list[str], tensors: list[Tensor], inside: bool) -> None:
    """Add an input of `print`: text to the last of the texts, tensors between two of them."""
    if isinstance(item, SparseTensor):
        texts[-1] += "SparseTensor("
        for i, part in enumerate(("indices", "values", "dense_shape")):
            texts[-1] += f"{', ' if i else ''}{part}="
            _collect(getattr(item, part), texts, tensors, inside=True)
        texts[-1] += ")"
    elif isinstance(item, Arithmetic) or hasattr(item, "as_tensor"):
        tensors.append(convert_to_tensor(item))
        texts.append("")
    elif isinstance(item, Mapping):
        texts[-1] += "{"
        for i, (key, value) in enumerate(item.items()):
            texts[-1] += f"{', ' if i else ''}{key!r}: "
            _collect(value, texts, tensors, inside=True)
        texts[-1] += "}"
    elif isinstance(item, list | tuple):
        texts[-1] += "[" if isinstance(item, list) else "("
        for i, value in enumerate(item):
            texts[-1] += ", " if i else ""
            _collect(value, texts, tensors, inside=True)
        texts[-1] += "]" if isinstance(item, list) else ",)" if len(item) == 1 else ")"
    else:
        texts[-1] += repr(item) if inside else str(item)


def _stream_name(stream: Any) -> str:
    for name in _STREAMS:
        if stream is getattr(sys, name) or stream is getattr(sys, f"__{name}__"):
            return name
    if stream is None:
        return "stderr"
    raise InvalidTypeError(f"output_stream is sys.stderr or sys.stdout, not {stream!r}")


def _print(
    xp: Any, counter: Any, input: Any, *data: Any, message: str, first_n: int, summarize: int
) -> Any:
    if first_n < 0 or counter.next() < first_n:
        _write(message + " ".join(text_of(value, summarize) for value in data) + "\n", "stderr")
    return input


print_op = OpDef(
    "Print",
    "input: T, data: *data -> output: T",
    T=MOVABLE,
    attributes={"message": "", "first_n": -1, "summarize": 3},
    infer=same_as_input,
    kernel=_print,
    kinds=HOST,
    grad=lambda op, dy: (dy, *(None,) * (len(op.inputs) - 1)),
    touches=OUTSIDE,
    owns="counter",
    aliases={0: 0},
    only_moves=True,
)


@print_op.front
def Print(
    input_: Any,
    data: Sequence[Any],
    message: str | None = None,
    first_n: int | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> Tensor:
    """The first argument unchanged; its computation prints values, to `sys.stderr`.

    Args:
        input_: of any dtype; gradients flow through.
        data: a list of tensors or values to print.
        message: what is printed before them.
        first_n: print the first so many times in a session only; None prints always.
        summarize: how many elements at the beginning and the end of each dimension are shown, 3 by
            default; -1 shows all.
    """
    if not isinstance(data, list | tuple):
        raise InvalidTypeError(f"what to print is a list of tensors, not {data!r}")
    return print_op(
        input_,
        list(data),
        message=message or "",
        first_n=-1 if first_n is None else first_n,
        summarize=3 if summarize is None else summarize,
        name=name,
    )
