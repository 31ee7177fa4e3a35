"""From what a person writes to what is asked for: fetches and the keys of feeds taken apart."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from flowbook.exec.signature.compound_feeds import expanded_keys
from flowbook.exec.signature.feeds import Feed, check_no_duplicates, feedable
from flowbook.exec.signature.fetches import Flat, flatten
from flowbook.exec.signature.signature import Signature
from flowbook.graph.building.graph import Graph
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.redefinition.stale_runs import check_feeds


class Asked(NamedTuple):
    """What is asked for.

    Attributes:
        flat: the fetches, and how their values are put together.
        feeds: how what is fed is checked, in the order of the signature.
        signature: what is to be prepared.
    """

    flat: Flat
    feeds: list[Feed]
    signature: Signature


def asked(
    graph: Graph,
    fetches: Any,
    keys: Sequence[Any],
    arrives_late: bool = False,
    feed_of: Callable[[Tensor], Feed] = Feed,
) -> Asked:
    """What fetches and the keys of feeds ask for.

    Args:
        graph: whose they are.
        fetches: in any structure.
        keys: of what is fed.
        arrives_late: whether that arrives after the step has begun.
        feed_of: what checks the values of a fed tensor, or of a variable's handle.

    Raises:
        InvalidTypeError: if something cannot be fetched or fed.
        InvalidArgumentError: if it is of another graph, fed twice, or redefined.
    """
    flat = flatten(graph, fetches)
    fed = tuple([feedable(graph, key) for key in expanded_keys(keys)])
    check_no_duplicates(fed)
    is_late = (True,) * len(fed) if arrives_late else ()
    signature = Signature(tuple(flat.tensors), tuple(flat.targets), fed, is_late)
    check_feeds(signature.fetches, signature.targets, signature.feeds)
    return Asked(flat, [feed_of(tensor) for tensor in fed], signature)
