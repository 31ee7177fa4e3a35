"""A sum of products of matrices becomes one product, where the products are larger than factors.

The gradient of a matrix that is used at every step of a recurrent network is the sum of as many
products; written out, each would be as large as the matrix.
"""

from __future__ import annotations

from collections import Counter

from flowbook.graph.ops.linalg.matrix_products import matmul_op
from flowbook.graph.ops.linalg.product_sums import is_larger_than_factors, sum_of_products_op
from flowbook.graph.ops.math.arithmetic import add_n
from flowbook.graph.rewrite.subgraph import Node, Subgraph


def join_products(graph: Subgraph) -> None:
    """Replace sums of products `transpose(a) b` that nothing else uses."""
    sums = [node for node in graph.new if node.op_def is add_n and len(node.inputs) > 2]
    if not sums:
        return
    uses = Counter(graph.fetches)
    for node in graph.nodes:
        uses.update(node.inputs)
    waited = {other for node in graph.nodes for other in (*node.after, *node.behind)}.union(
        graph.targets
    )
    for node in sums:
        products = [graph.producer.get(value) for value in node.inputs]
        if all(
            p is not None
            and uses[p.outputs[0]] == 1
            and p not in waited
            and _pays(p)
            and _is_beside(p, node)
            for p in products
        ):
            pairs = [p.inputs for p in products if p is not None]
            node.inputs = (*(a for a, _ in pairs), *(b for _, b in pairs))
            node.op_def, node.attributes = sum_of_products_op, {}
            for p in products:
                if p is not None:
                    node.joined += (p.operation,)
                    graph.waited[p] = (node,)
                    graph.went[p.operation] = f"joined into the sum {node.operation.name!r}"


def _pays(node: Node) -> bool:
    """Whether a node is a product of matrices, each of them smaller than it.

    What a graph was grown from is computed in any case.
    """
    if node.op_def is not matmul_op or node.after or node.behind or node.number >= 0:
        return False
    return is_larger_than_factors(node.operation)


def _is_beside(node: Node, other: Node) -> bool:
    """Whether two nodes are asked to run on the same device."""
    first, second = node.operation, other.operation
    return first.device == second.device and first.colocation == second.colocation
