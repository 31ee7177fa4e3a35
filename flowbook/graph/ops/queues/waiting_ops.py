"""What the definitions of operations have in common that own a resource at which others wait.

Such a resource lives in host memory, and nothing orders the operations of a step at it but what
they take of one another, and control dependencies.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flowbook.graph.definition.inference import nothing, scalar
from flowbook.graph.definition.op_def import HOST, NO_GRADIENT, OpDef
from flowbook.graph.model.touch import ENDS_WAITS, READS, ResourceKind, Touch


def owning_op(
    type: str,
    kind: ResourceKind,
    choices: Mapping[str, tuple[str | None, ...]] | None = None,
    /,
    **attributes: Any,
) -> OpDef:
    """The definition of what owns a resource, and gives its handle.

    Args:
        type: its type.
        kind: the resource's kind.
        choices: as of `OpDef`.
        **attributes: their defaults; those of all such operations are added.
    """
    return OpDef(
        type,
        "-> handle: resource",
        attributes={**attributes, "shared_name": ""},
        choices=choices or {},
        infer=scalar,
        owns=kind.name,
        only_moves=True,
    )


def waiting_op(
    type: str, signature: str, kernel: Any, touches: Touch = ENDS_WAITS, **others: Any
) -> OpDef[Any]:
    """The definition of what waits at a resource, or lets those go on who do.

    Args:
        type: its type.
        signature: as of `OpDef`; the resource's handle comes first.
        kernel: is called with a context to report to, the resource and the other inputs.
        touches: what lets it go on; by default it waits for nothing.
        **others: as of `OpDef`.
    """
    return OpDef(
        type,
        signature,
        kernel=kernel,
        touches=touches,
        is_async=True,
        only_moves="cost" not in others,
        **{**_COMMON, "infer": nothing, **others},
    )


def looking_op(type: str, signature: str, kernel: Any, **others: Any) -> OpDef[Any]:
    """The definition of what tells something about a resource, and waits for nothing.

    Args:
        type: its type.
        signature: as of `OpDef`; the resource's handle is the only input.
        kernel: is called with the array module and the resource.
        **others: as of `OpDef`.
    """
    return OpDef(
        type,
        signature,
        kernel=kernel,
        touches=READS,
        needs_value=False,
        only_moves=True,
        **{**_COMMON, "infer": scalar, **others},
    )


_COMMON: dict[str, Any] = {"kinds": HOST, "grad": NO_GRADIENT, "aliases": {}}
