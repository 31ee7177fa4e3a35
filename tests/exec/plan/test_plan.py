"""A plan is plain data: it names no object of the graph, so that another process could run it."""

from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np

import flowbook as fb
from flowbook.exec.devices.local_devices import local_devices
from flowbook.exec.plan.pipeline import prepare
from flowbook.exec.signature.signature import Signature

PLAIN = (type(None), bool, int, float, str, bytes, fb.DType, fb.Shape, np.ndarray, Enum)


def parts_of(value: Any) -> list[Any]:
    """The leaves of nested tuples and mappings."""
    if isinstance(value, Mapping):
        return [leaf for item in value.items() for leaf in parts_of(item)]
    if isinstance(value, tuple):
        return [leaf for item in value for leaf in parts_of(item)]
    return [value]


def test_a_node_names_all_operations_that_it_stands_for() -> None:
    feeds = [fb.placeholder(fb.float32, [2, 5]) for _ in range(3)]
    products = [fb.matmul(x, x, transpose_a=True) for x in feeds]
    total = fb.add_n(products)
    prepared = prepare(Signature((total,), (), tuple(feeds)), local_devices())
    [node] = prepared.program.parts[0].nodes
    operations = [total.op, *[product.op for product in products]]
    assert node.sources == tuple([operation.id for operation in operations])
    assert [prepared.sources[source] for source in node.sources] == operations


def test_a_training_step_is_plain_data() -> None:
    x = fb.placeholder(fb.float32, [None, 4])
    W = fb.Variable(fb.random_normal([4, 2]))
    loss = fb.reduce_mean(fb.square(fb.nn.relu(x @ W)[:, 0]))
    train = fb.train.AdamOptimizer().minimize(loss)
    program = prepare(Signature((loss,), (train,), (x,)), local_devices()).program
    assert len(program.parts[0].nodes) > 20
    assert [leaf for leaf in parts_of(tuple(program)) if not isinstance(leaf, PLAIN)] == []
