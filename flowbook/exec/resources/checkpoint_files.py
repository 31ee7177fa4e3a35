"""The resource behind operations that save and restore tensors: what knows files."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from flowbook.exec.checkpoints.checkpoint import About, checkpoint_at, write_checkpoint
from flowbook.exec.resources.kinds import Birth, makes
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError
from flowbook.graph.model.shape import Shape
from flowbook.graph.model.touch import CHECKPOINT_FILES

# Where kernels that save compute.
_DEVICE = "/job:localhost/task:0/device:cpu:0"


class CheckpointFiles:
    """Writes and reads checkpoints; it keeps nothing."""

    def save(self, path: str, tensors: Mapping[str, Any]) -> None:
        """Write a checkpoint."""
        write_checkpoint(path, {_DEVICE: tensors}, About(time.time()))

    def restore(
        self, path: str, names: Sequence[str], dtypes: Sequence[DType], shapes: Sequence[Shape]
    ) -> list[Any]:
        """Read arrays of a checkpoint, which have to be as they are declared."""
        found = checkpoint_at(path)
        for name, dtype, shape in zip(names, dtypes, shapes, strict=True):
            entry = found.entry(name)
            if entry.dtype is not dtype or not shape.is_compatible_with(entry.shape):
                raise InvalidArgumentError(
                    f"the checkpoint {found.path!r} has {name!r} as {entry}, not as "
                    f"{dtype.name} {shape}"
                )
        values = found.read(names)
        return [values[name] for name in names]


@makes(CHECKPOINT_FILES)
def _checkpoint_files(birth: Birth) -> CheckpointFiles:
    return CheckpointFiles()
