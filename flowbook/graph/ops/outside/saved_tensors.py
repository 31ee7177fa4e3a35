"""Tensors to checkpoints and back, as operations (white paper, section 3.3).

`fb.train.Saver` saves variables between two steps and behind the training. These save and restore
whatever tensors, in the step and at the place in it where they are built: what a run computes, or
values that variables begin with. What files are is not the graph's business: each operation owns a
resource that knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowbook.graph.definition.inference import nothing
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, REQUIRED, OpDef
from flowbook.graph.model.dtypes import DType, as_dtype
from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import OUTSIDE
from flowbook.graph.ops.basis.constants import convert_to_tensor

__all__ = ["restore_tensors", "save_tensors"]


def _save(xp: Any, files: Any, path: Any, *tensors: Any, names: tuple[str, ...]) -> tuple[()]:
    files.save(path.item().decode(), dict(zip(names, tensors, strict=True)))
    return ()


save_op: OpDef[Operation] = OpDef(
    "Save",
    "path: string, tensors: *tensors ->",
    attributes={"names": REQUIRED},
    infer=nothing,
    kernel=_save,
    kinds=HOST,
    touches=OUTSIDE,
    owns="checkpoint_files",
    only_moves=True,
)


@save_op.front
def save_tensors(path: Any, tensors: Mapping[str, Any], name: str | None = None) -> Operation:
    """Save tensors as a checkpoint, in every run that includes the operation.

    Args:
        path: the checkpoint's, a string tensor or a text; one that is there is replaced.
        tensors: by the names that they get.

    Returns:
        The operation. Of variables it saves what its step reads, whatever other steps write
        meanwhile: `fb.train.Saver` saves between steps. Within a run what is saved, restored or
        printed goes in the order of construction.

    Raises:
        InvalidTypeError: if they have no names.
        OSError: in the run, if it cannot be written; what was there is there still.
    """
    if not isinstance(tensors, Mapping) or not all(isinstance(n, str) for n in tensors):
        raise InvalidTypeError(f"tensors are given by their names, not as {tensors!r:.80}")
    values = [convert_to_tensor(tensor) for tensor in tensors.values()]
    return save_op(path, values, names=tuple(tensors), name=name)


def _restored_shapes(path: Tensor, *, shapes: tuple[Shape, ...], **_: Any) -> list[Shape]:
    return list(shapes)


def _restore(
    xp: Any,
    files: Any,
    path: Any,
    names: tuple[str, ...],
    dtypes: tuple[DType, ...],
    shapes: tuple[Shape, ...],
) -> tuple[Any, ...]:
    return tuple(files.restore(path.item().decode(), names, dtypes, shapes))


restore_op: OpDef[list[Tensor]] = OpDef(
    "Restore",
    "path: string -> tensors: *dtypes",
    attributes={"names": REQUIRED, "dtypes": REQUIRED, "shapes": REQUIRED},
    infer=_restored_shapes,
    kernel=_restore,
    kinds=HOST,
    grad=NO_GRADIENT,
    touches=OUTSIDE,
    owns="checkpoint_files",
    only_moves=True,
)


@restore_op.front
def restore_tensors(
    path: Any, tensors: Mapping[str, Any], name: str | None = None
) -> dict[str, Tensor]:
    """Tensors from a checkpoint.

    As the initial value of a variable it is read once, when the variable is first used.

    Args:
        path: the checkpoint's, or that of a folder of checkpoints, whose latest it is; a string
            tensor or a text.
        tensors: for each name in the checkpoint the dtype and the shape, of which dimensions may be
            None; or a tensor or variable that has them.

    Returns:
        The tensors by their names.

    Raises:
        InvalidTypeError: if a dtype is none.
        NotFoundError: in the run, if there is no checkpoint, or it has no such tensor.
        InvalidArgumentError: in the run, if one has another dtype or shape.
        DataLossError: in the run, if it is damaged.

    >>> import tempfile
    >>> import flowbook as fb
    >>> with tempfile.TemporaryDirectory() as folder, fb.Session() as sess:
    ...     sess.run(fb.train.save_tensors(f"{folder}/it", {"a": [1.0, 2.0]}))
    ...     restored = fb.train.restore_tensors(f"{folder}/it", {"a": (fb.float32, [None])})
    ...     print(sess.run(restored["a"]))
    [1. 2.]
    """
    if not isinstance(tensors, Mapping) or not all(isinstance(n, str) for n in tensors):
        raise InvalidTypeError(f"tensors are given by their names, not as {tensors!r:.80}")
    like = [_dtype_and_shape(value) for value in tensors.values()]
    found = restore_op(
        path,
        names=tuple(tensors),
        dtypes=tuple([dtype for dtype, _ in like]),
        shapes=tuple([shape for _, shape in like]),
        name=name,
    )
    return dict(zip(tensors, found, strict=True)) if tensors else {}


def _dtype_and_shape(value: Any) -> tuple[DType, Shape]:
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return as_dtype(value.dtype), Shape(value.shape)
    if not isinstance(value, tuple) or len(value) != 2:
        raise InvalidTypeError(f"this is (dtype, shape), and not {value!r:.80}")
    return as_dtype(value[0]), Shape(value[1])
