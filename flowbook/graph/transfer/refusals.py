"""What writers of graphs for other systems refuse, in the same words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from flowbook.graph.model.errors import OpError, UnimplementedError
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor


def rank_of(tensor: Tensor) -> int:
    """The rank of a tensor.

    Raises:
        UnimplementedError: if it is not known.
    """
    if tensor.shape.rank is None:
        raise UnimplementedError(f"the rank of {tensor.name} is not known")
    return tensor.shape.rank


def refuse_types(missing: Counter[str], how: str) -> None:
    """Refuse types of operations that have no rule, all of them at once.

    Args:
        missing: how many operations there are of each; if of none, all is well.
        how: what they would be written as, such as "as ONNX".

    Raises:
        UnimplementedError: if there are any.
    """
    if missing:
        listed = ", ".join(f"{t} ({n})" if n > 1 else t for t, n in sorted(missing.items()))
        raise UnimplementedError(
            f"these operation types cannot be written {how}: {listed}",
            hint="cut the graph at inputs behind them, or fetch what comes before",
        )


def refusal(problems: Sequence[tuple[Operation, OpError]], how: str) -> UnimplementedError:
    """The error of operations that could not be written, all of them at once.

    Args:
        problems: each with its own error; at least one.
        how: as for `refuse_types`.
    """
    listed = "; ".join(f"{e.message} ({op.type} {op.name!r})" for op, e in problems)
    op, first = problems[0]
    return UnimplementedError(f"this cannot be written {how}: {listed}", op, hint=first.hint)
