"""The graph as pages get it, read back from its bytes."""

import json
import zlib
from typing import Any

import numpy as np

import flowbook as fb
from flowbook.widgets.graphs.graph_view import needed_for
from flowbook.widgets.graphs.name_tree import name_tree
from flowbook.widgets.graphs.payload import graph_payload
from flowbook.widgets.graphs.scope_edges import scope_edges, templates
from flowbook.widgets.graphs.setting_aside import aside


class Read:
    """The columns of a payload, and what they say of operations by name."""

    def __init__(self, packed: bytes) -> None:
        data = zlib.decompress(packed)
        length = int.from_bytes(data[:4], "little")
        self.header = json.loads(data[4 : 4 + length])
        self.strings: list[str] = self.header["strings"]
        start = -(-(4 + length) // 8) * 8
        self.columns: dict[str, np.ndarray[Any, Any]] = {}
        for name, (dtype, offset, count) in self.header["columns"].items():
            assert offset % 8 == 0
            self.columns[name] = np.frombuffer(data, dtype, count, start + offset)

    def texts(self, column: str) -> list[str]:
        return [self.strings[i] if i >= 0 else "" for i in self.columns[column]]

    def names(self) -> list[str]:
        labels, parent = self.texts("label"), self.columns["parent"]
        found = []
        for node in range(len(parent)):
            parts, at = [], node
            while parent[at] >= 0:
                parts.append(labels[at])
                at = parent[at]
            found.append("/".join(reversed(parts)))
        return found


def two_layers() -> fb.Graph:
    with fb.Graph().as_default() as graph:
        h = fb.placeholder(fb.float32, [None, 4], name="x")
        for i in range(2):
            with fb.name_scope(f"layer_{i}"):
                w = fb.Variable(np.ones((4, 4), np.float32), name="w")
                h = fb.tanh(fb.matmul(h, w))
        fb.identity(h, name="end")
    return graph


def test_operations_come_in_order_with_their_scopes() -> None:
    graph = two_layers()
    read = Read(graph_payload(graph))
    count = len(graph.operations)
    assert read.header["operations"] == count
    assert read.texts("type") == [op.type for op in graph.operations]
    names = read.names()
    # The handle of a variable lies in the scope of its name.
    assert names[:count] == [
        f"{op.name}/{op.name.rpartition('/')[2]}" if op.type == "Variable" else op.name
        for op in graph.operations
    ]
    assert {"layer_0", "layer_1", "layer_0/w"} <= set(names[count:])


def test_a_state_of_a_graph_is_written_once() -> None:
    graph = two_layers()
    first = graph_payload(graph)
    assert graph_payload(graph) is first
    with graph.as_default():
        fb.constant(1.0, name="more")
    assert "more" in Read(graph_payload(graph)).names()


def test_tensors_edges_and_parameters() -> None:
    graph = two_layers()
    read = Read(graph_payload(graph))
    matmul = next(i for i, op in enumerate(graph.operations) if op.name == "layer_1/MatMul")
    columns = read.columns
    taken = columns["input"][columns["inputStart"][matmul] : columns["inputStart"][matmul + 1]]
    specs = read.texts("spec")
    assert [specs[t] for t in taken] == ["float32 [?, 4]", "float32 [4, 4]"]
    assert [columns["bytes"][t] for t in taken] == [-1, 64]
    assert columns["parameters"].sum() == 32
    place = read.texts("place")[matmul]
    assert place.startswith("test_graph_payload.py, line ")
    assert read.texts("source")[matmul] == "h = fb.tanh(fb.matmul(h, w))"


def test_scopes_built_alike_have_one_template() -> None:
    graph = two_layers()
    read = Read(graph_payload(graph))
    template = dict(zip(read.names(), read.columns["template"].tolist(), strict=True))
    assert template["layer_0"] == template["layer_1"]
    assert template["layer_0"] != template["layer_0/w"] == template["layer_1/w"]


def test_scopes_joined_otherwise_have_another_template() -> None:
    tree = name_tree(["x", "a/p", "a/q", "b/p", "b/q", "c/p", "c/q"])
    source, target = np.asarray([1, 3, 6], np.int32), np.asarray([2, 4, 5], np.int32)
    found = templates(tree, scope_edges(tree, source, target), [0] * 7)
    assert found[8] == found[9] != found[10]


def test_edges_lie_in_the_innermost_scope_of_both_ends() -> None:
    tree = name_tree(["a/b/c", "a/d", "e"])
    source, target = np.asarray([0, 0, 1], np.int32), np.asarray([1, 2, 2], np.int32)
    edges = scope_edges(tree, source, target)
    root, a, b = 3, 4, 5
    rows = zip(edges.scope.tolist(), edges.source.tolist(), edges.target.tolist(), strict=True)
    assert list(rows) == [(root, a, 2), (a, b, 1)]


def test_what_everything_feeds_is_set_aside() -> None:
    with fb.Graph().as_default() as graph:
        x = fb.placeholder(fb.float32, [2], name="x")
        made = []
        for i in range(20):
            with fb.name_scope(f"s{i}"):
                x = fb.tanh(x)
                made.append(x)
        fb.add_n(made, name="sum")
    read = Read(graph_payload(graph))
    names = read.names()
    assert [names[i] for i in np.flatnonzero(read.columns["aside"])] == ["sum"]


def test_little_is_set_aside_among_few() -> None:
    tree = name_tree([f"s{i}/x" for i in range(6)])
    source, target = np.arange(5, dtype=np.int32), np.full(5, 5, np.int32)
    assert not aside(tree, scope_edges(tree, source, target), []).any()


def test_what_a_run_needs_is_marked() -> None:
    graph = two_layers()
    needed = needed_for(graph, "layer_1/MatMul:0", ["layer_0/Tanh:0"])
    read = Read(graph_payload(graph, needed))
    marks = dict(zip([op.name for op in graph.operations], read.columns["needed"], strict=True))
    assert read.header["marked"]
    assert marks["layer_1/MatMul"] == 1 | 4
    assert marks["layer_0/Tanh"] == 2
    assert marks["layer_1/w"] == 1
    assert marks["x"] == marks["layer_0/MatMul"] == marks["end"] == 0


def test_equal_graphs_give_equal_bytes() -> None:
    assert graph_payload(two_layers()) == graph_payload(two_layers())


def test_an_empty_graph() -> None:
    read = Read(graph_payload(fb.Graph()))
    assert read.header["operations"] == 0
    assert read.names() == [""]


def test_hostile_names_and_values_are_bounded() -> None:
    with fb.Graph().as_default() as graph:
        x = fb.constant(np.asarray([np.nan, np.inf], np.float32), name="x")
        y = fb.constant(b"z" * 1_000_000, name="y")
        deep = fb.identity(x, name="deep")
    y.op.name = "<script>\ud800\x00" * 100_000
    deep.op.name = "a/" * 3_000 + "b"
    packed = graph_payload(graph)
    assert len(packed) < 20_000
    read = Read(packed)
    assert any(text.startswith("<script>\ud800\x00") for text in read.strings)
    assert "float32 [2] [nan, inf]" in read.strings
    assert max(map(len, read.strings)) < 500


def test_redefined_operations_that_are_referred_to_are_there() -> None:
    with fb.Graph().as_default() as graph:
        x = fb.constant(1.0, name="x")
        fb.identity(x, name="y")
    graph.members.retire(x.op)
    read = Read(graph_payload(graph))
    assert read.names()[:2] == ["x@1", "y"]
    assert read.columns["retired"].tolist() == [1, 0]
    assert "built from" in read.texts("stale")[1]
