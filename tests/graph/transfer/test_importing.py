"""`fb.import_graph_def` adds a stored graph to another, whole or not at all."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import flowbook as fb
from flowbook.graph.building import verify
from flowbook.graph.building.members import Members
from flowbook.graph.storing.graph_pb2 import GraphDef

HERE = "test_importing.py"


def model() -> fb.Graph:
    """A model that trains, with seeds, noise, a loss and an update."""
    with fb.Graph().as_default() as graph:
        graph.seed = 5
        x = fb.placeholder(fb.float32, [None, 2], name="x")
        with fb.name_scope("layer"):
            W = fb.Variable(fb.random_normal([2, 1]), name="W")
            y = fb.matmul(x, W, name="y")
        frozen = fb.Variable(1.0, trainable=False, name="frozen")
        with fb.control_dependencies([y]):
            loss = fb.reduce_sum(fb.square(y) + frozen, name="loss")
        [gradient] = fb.gradients(loss, [W])
        fb.assign_sub(W, 0.01 * gradient, name="train")
        fb.random_uniform([3], name="noise")
        with fb.colocate_with(W), fb.device("/device:cpu:0"):
            fb.identity(y, name="placed")
    return graph


@pytest.fixture
def stored():
    return model()


def summary(graph: fb.Graph):
    """All that an import that fails leaves as it was."""
    variables = [v.name for v in graph.variables()]
    return graph.to_bytes(), variables, graph.members.scope_names(), graph.retirements


def train(graph: fb.Graph, prefix: str = ""):
    data = {f"{prefix}x:0": np.arange(6, dtype=np.float32).reshape(3, 2)}
    names = [f"{prefix}{n}:0" for n in ("loss", "train", "noise")]
    with fb.Session(graph=graph) as sess:
        return [sess.run(names, data) for _ in range(3)]


def as_path(graph, folder):
    graph.save(folder / "model.graph")
    return folder / "model.graph"


SOURCES = {
    "graph": lambda graph, folder: graph,
    "bytes": lambda graph, folder: graph.to_bytes(),
    "message": lambda graph, folder: GraphDef.FromString(graph.to_bytes()),
    "path": as_path,
    "text": lambda graph, folder: str(as_path(graph, folder)),
    "file's bytes": lambda graph, folder: bytearray(as_path(graph, folder).read_bytes()),
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_everything_stands_under_the_name(stored, source, tmp_path):
    with fb.Graph().as_default() as graph:
        x = fb.constant(1.0, name="x")
        assert fb.import_graph_def(source(stored, tmp_path)) is None
    assert [op.name for op in graph.operations] == [
        "x",
        *(f"import/{op.name}" for op in stored.operations),
    ]
    assert x.op is graph.operations[0]
    verify.check(graph)
    assert fb.Graph.from_bytes(graph.to_bytes()).to_bytes() == graph.to_bytes()


def test_an_imported_graph_trains_like_the_original(stored):
    with fb.Graph().as_default() as graph:
        fb.random_normal([2], name="other")
        fb.import_graph_def(stored, name="m")
    for ours, theirs in zip(train(graph, "m/"), train(stored), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_operations_have_is_carried_over(stored):
    with fb.Graph().as_default() as graph:
        fb.import_graph_def(stored)
    W, frozen = graph.variables()
    assert (W.trainable, frozen.trainable) == (True, False)
    assert W.initial_value.name.startswith("import/")
    assert W.initializer.name == "import/layer/W/Assign"
    assert W.value.name == "import/layer/W/read:0"
    placed = graph.get_operation_by_name("import/placed")
    assert placed.device == "/device:cpu:0"
    assert placed.colocation == (W.op,)
    loss = graph.get_operation_by_name("import/loss")
    assert [o.name for o in loss.inputs[0].op.control_inputs] == ["import/layer/y"]


def test_only_what_draws_numbers_is_given_a_seed() -> None:
    told = fb.OpDef(
        "ToldOfSeeds",
        "-> y: int32",
        attributes={"graph_seed": 5, "seed": None},
        infer=lambda **_: fb.Shape([]),
        kernel=lambda xp, seed: xp.asarray(-1 if seed is None else seed, "int32"),
    )
    with fb.Graph().as_default() as graph:
        graph.seed = 5
        told(name="told")
        fb.RandomShuffleQueue(10, 2, fb.float32, [()], name="shuffled")
        fb.random_uniform([3], name="noise")
    with fb.Graph().as_default() as other, fb.Session() as sess:
        fb.import_graph_def(graph.to_bytes(), name="imported")
        assert sess.run("imported/told:0") == -1
    seeds = {op.name: op.attributes["seed"] for op in other.operations if "seed" in op.attributes}
    assert seeds.pop("imported/told") is None
    assert len(seeds) == 2
    assert None not in seeds.values()


def test_an_imported_graph_is_differentiated_like_the_original(stored):
    with fb.Graph().as_default() as graph:
        [loss] = fb.import_graph_def(stored, return_elements=["loss:0"])
        [ours] = fb.gradients(loss, graph.variables(trainable=True))
    [theirs] = fb.gradients(stored.get_tensor_by_name("loss:0"), stored.variables(trainable=True))
    data = np.ones([1, 2], np.float32)
    with fb.Session(graph=graph) as a, fb.Session(graph=stored) as b:
        np.testing.assert_array_equal(
            a.run(ours, {"import/x:0": data}), b.run(theirs, {"x:0": data})
        )


def test_optimizers_find_imported_variables(stored):
    with fb.Graph().as_default() as graph:
        [loss] = fb.import_graph_def(stored, return_elements=["loss:0"])
        step = fb.train.GradientDescentOptimizer(0.01).minimize(loss)
    data = {"import/x:0": np.ones([1, 2], np.float32)}
    with fb.Session(graph=graph) as sess:
        first = sess.run(loss, data)
        for _ in range(5):
            sess.run(step, data)
        assert sess.run(loss, data) < first


def test_names_are_made_unique_by_scope(stored):
    with fb.Graph().as_default() as graph:
        fb.import_graph_def(stored)
        fb.import_graph_def(stored)
        with fb.name_scope("outer"):
            fb.import_graph_def(stored, name="inner")
            fb.import_graph_def(stored, name="")
        fb.import_graph_def(stored, name="")
    names = {op.name for op in graph.operations}
    assert {"import/x", "import_1/x", "outer/inner/x", "outer/x", "x"} <= names
    assert len(names) == 5 * len(stored.operations)
    assert len(graph.variables()) == 10
    with graph.as_default(), fb.name_scope("layer") as prefix:
        assert prefix == "layer_1/"


def test_without_a_name_nothing_may_be_there_already(stored):
    with fb.Graph().as_default() as graph:
        fb.no_op(name="loss")
        before = summary(graph)
        with pytest.raises(
            fb.errors.AlreadyExistsError, match="operation 'loss' already"
        ) as caught:
            fb.import_graph_def(stored, name="")
        assert f"defined at {HERE}, line " in str(caught.value)
        assert summary(graph) == before


def test_the_device_around_is_completed_by_the_graphs_own(stored):
    with fb.Graph().as_default() as graph, fb.device("/job:localhost"):
        fb.import_graph_def(stored)
    assert graph.get_operation_by_name("import/x").device == "/job:localhost"
    placed = graph.get_operation_by_name("import/placed")
    assert placed.device == "/job:localhost/device:cpu:0"


def test_a_graph_is_imported_into_itself(stored):
    with stored.as_default():
        fb.import_graph_def(stored, name=None)
        fb.import_graph_def(stored, name="twice")
    assert stored.has_operation("import/x")
    assert stored.has_operation("twice/import/x")
    assert len(stored.variables()) == 8
    verify.check(stored)


# Elements


def test_elements_are_returned_by_their_names_in_the_imported_graph(stored):
    with fb.Graph().as_default() as graph:
        y, train, x = fb.import_graph_def(
            stored, return_elements=["layer/y:0", "train", "x:0"], name="m"
        )
        assert fb.import_graph_def(stored, return_elements=[]) == []
    assert y is graph.get_tensor_by_name("m/layer/y:0")
    assert train is graph.get_operation_by_name("m/train")
    assert x.name == "m/x:0"


# Mapped inputs


def test_tensors_stand_for_others(stored):
    with fb.Graph().as_default() as graph:
        data = fb.constant([[1.0, 2.0], [3.0, 4.0]], name="data")
        scale = fb.Variable(2.0, name="scale")
        y, x, loss = fb.import_graph_def(
            stored, {"x": data, "frozen/read_1:0": scale}, ["layer/y:0", "x:0", "loss:0"]
        )
        assert x is data
        assert y.shape == [2, 1]
        gradient = fb.gradients(loss, [scale])[0]
    verify.check(graph)
    with fb.Session(graph=graph) as sess:
        assert sess.run(gradient) == 2.0


def test_a_variable_may_stand_for_another(stored):
    with fb.Graph().as_default() as graph:
        shared = fb.Variable([[1.0], [2.0]], name="shared")
        [y] = fb.import_graph_def(stored, {"layer/W:0": shared}, ["layer/y:0"])
        assert [v.op.name for v in graph.variables()] == ["shared", "import/frozen"]
        data = {"import/x:0": [[10.0, 1.0]]}
        with fb.Session() as sess:
            assert sess.run(y, data) == 12.0
            sess.run("import/train", data)
            assert sess.run(shared)[0] < 1.0


def test_an_operation_may_be_waited_for_instead_of_another(stored):
    with fb.Graph().as_default() as graph:
        ready = fb.no_op(name="ready")
        fb.import_graph_def(stored, {"^layer/y": ready})
    loss = graph.get_operation_by_name("import/loss")
    assert loss.control_inputs == (ready,)


WRONG = {
    "name": ({"z:0": 1}, None, fb.errors.NotFoundError, "no operation 'z'"),
    "port": ({"x:1": 1}, None, fb.errors.NotFoundError, "has 1 output"),
    "key": ({0: 1}, None, fb.errors.InvalidTypeError, "from names to tensors"),
    "no dict": ([1], None, fb.errors.InvalidTypeError, "from names to tensors"),
    "value": ({"x:0": 1.0}, None, fb.errors.InvalidTypeError, "fb.constant"),
    "dtype": (
        lambda: {"x:0": fb.constant([[1, 2]], name="data")},
        None,
        fb.errors.InvalidTypeError,
        "data:0 is int32, but 'x:0', which it stands for, is float32",
    ),
    "shape": (
        lambda: {"x:0": fb.zeros([3, 4])},
        None,
        fb.errors.InvalidArgumentError,
        "MatMul 'layer/y': inner dimensions differ",
    ),
    "twice": (
        lambda: {"x:0": fb.zeros([3, 2]), "x": fb.zeros([3, 2])},
        None,
        fb.errors.InvalidArgumentError,
        "in input_map twice",
    ),
    "another graph's": (
        lambda: {"x:0": fb.Graph.from_bytes(model().to_bytes()).get_tensor_by_name("x:0")},
        None,
        fb.errors.InvalidArgumentError,
        "different graphs",
    ),
    "another variable": (
        lambda: {"layer/W:0": fb.Variable([1.0])},
        None,
        fb.errors.InvalidArgumentError,
        r"a Variable float32 \[1\], cannot stand for 'layer/W:0', a Variable float32 \[2, 1\]",
    ),
    "a handle's dtype": (
        lambda: {"layer/W:0": fb.zeros([2, 1])},
        None,
        fb.errors.InvalidTypeError,
        "is float32, but 'layer/W:0', which it stands for, is resource",
    ),
    "element": (None, ["lost:0"], fb.errors.NotFoundError, "did you mean 'loss'"),
    "elements": (None, "loss:0", fb.errors.InvalidTypeError, "a list of names"),
    "kind of element": (None, [3], fb.errors.InvalidTypeError, "named by a string"),
}


@pytest.mark.parametrize(("mapped", "elements", "error", "match"), WRONG.values(), ids=WRONG)
def test_an_import_that_fails_leaves_the_graph_as_it_was(stored, mapped, elements, error, match):
    with fb.Graph().as_default() as graph:
        fb.Variable(1.0, name="mine")
        mapped = mapped() if callable(mapped) else mapped
        before = summary(graph)
        with pytest.raises(error, match=match) as caught:
            fb.import_graph_def(stored, mapped, elements)
        assert f"{HERE}, line " in str(caught.value)
        assert summary(graph) == before
        fb.import_graph_def(stored, name="import")
        assert graph.has_operation("import/x")


@pytest.mark.parametrize("source", [3, None, ["x"], object()])
def test_only_graphs_are_imported(source):
    with pytest.raises(fb.errors.InvalidTypeError, match="a path, bytes or a Graph"):
        fb.import_graph_def(source)


def test_a_damaged_graph_changes_nothing(stored, tmp_path):
    with fb.Graph().as_default() as graph:
        fb.no_op()
        before = summary(graph)
        for data in (stored.to_bytes()[:-3], b"", as_path(stored, tmp_path).read_bytes()[:-3]):
            with pytest.raises(fb.errors.DataLossError):
                fb.import_graph_def(data)
        with pytest.raises(fb.errors.NotFoundError, match="no file"):
            fb.import_graph_def(tmp_path / "none.graph")
        assert summary(graph) == before


def test_a_finalized_graph_takes_nothing(stored):
    with fb.Graph().as_default() as graph:
        graph.finalize()
        with pytest.raises(RuntimeError, match="finalized"):
            fb.import_graph_def(stored)
        assert not graph.operations
        assert not graph.members.scope_names()


def test_an_interrupt_leaves_nothing_half_built(stored, monkeypatch):
    with fb.Graph().as_default() as graph:
        fb.no_op()
        before = summary(graph)
        join, count = Members.join, iter(range(100))

        def interrupted(self, *args):
            if next(count) == 5:
                raise KeyboardInterrupt
            return join(self, *args)

        monkeypatch.setattr(Members, "join", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fb.import_graph_def(stored)
        monkeypatch.undo()
        assert summary(graph) == before
        fb.import_graph_def(stored)
        assert graph.has_operation("import/x")
        verify.check(graph)


# Retired operations


def test_retired_operations_come_along():
    with fb.Graph().as_default() as stored:
        W = fb.Variable([1.0, 2.0], name="W")
        fb.multiply(W, 2.0, name="y")
        for op in stored.operations:
            if op.name.startswith("W"):
                stored.members.retire(op)
        fb.Variable([7.0, 8.0], name="W")
    with fb.Graph().as_default() as graph:
        for name in ("", "import", "import"):
            fb.import_graph_def(stored, name=name)
            if not name:
                for op in graph.operations:
                    graph.members.retire(op)
        verify.check(graph)
        fb.import_graph_def(stored, name="")
        loaded = fb.Graph.from_bytes(graph.to_bytes())
    assert [v.op.name for v in graph.variables()] == ["import/W", "import_1/W", "W"]
    assert loaded.to_bytes() == graph.to_bytes()
    for g in (graph, loaded):
        for y in ("import_1/y:0", "y:0"):
            with fb.Session(graph=g) as sess, pytest.warns(fb.errors.StaleDefinitionWarning):
                np.testing.assert_array_equal(sess.run(y), [2.0, 4.0])


# Where operations came from


def test_sites_name_the_import_and_the_original(stored):
    with fb.Graph().as_default() as graph:
        fb.import_graph_def(stored)
    site, original = (
        g.get_operation_by_name(n).site for g, n in ((graph, "import/x"), (stored, "x"))
    )
    assert site.place.startswith(f"imported by {HERE}, line ")
    assert site.place.endswith(f", from {original.place}")
    assert site.source == original.source
    again = fb.Graph.from_bytes(graph.to_bytes())
    assert str(again.get_operation_by_name("import/x").site) == str(site)


def test_errors_of_imported_operations_name_both(stored):
    with fb.Graph().as_default() as graph:
        fb.import_graph_def(stored)
        with fb.Session() as sess, pytest.raises(fb.errors.InvalidArgumentError) as caught:
            sess.run("import/loss:0")
    line = stored.get_operation_by_name("x").site.line
    assert f"from {HERE}, line {line}" in str(caught.value)
    assert graph.finalized is False


def test_imports_of_several_threads_stay_apart(stored):
    graph, found = fb.Graph(), []

    def work():
        with graph.as_default():
            found.append(fb.import_graph_def(stored, return_elements=["loss:0"])[0].name)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == ["import/loss:0", *(f"import_{i}/loss:0" for i in (1, 2, 3))]
    verify.check(graph)


def test_a_value_stands_for_reads_of_a_variable():
    with fb.Graph().as_default() as trained:
        fb.multiply(fb.Variable([1.0, 2.0], name="W"), 3.0, name="y")
    frozen = fb.constant([5.0, 6.0])
    with pytest.raises(fb.errors.InvalidTypeError, match="reads of the variable: 'W/read:0'"):
        fb.import_graph_def(trained, {"W": frozen})
    [y] = fb.import_graph_def(trained, {"W/read": frozen}, ["y:0"])
    with fb.Session() as sess:
        assert sess.run(y).tolist() == [15, 18]


def test_a_loop_is_imported_with_its_way_round():
    with fb.Graph().as_default() as source:
        x = fb.placeholder(fb.float32, [], name="x")
        _, y = fb.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), (0, x))
        fb.identity(fb.cond(y > 1, lambda: y, lambda: -y), name="y")
    x = fb.placeholder(fb.float32, [])
    powers = [
        fb.import_graph_def(source, {"x:0": factor * x}, return_elements=["y:0"], name=name)[0]
        for name, factor in (("same", 1.0), ("doubled", 2.0))
    ]
    slopes = [fb.gradients(power, x)[0] for power in powers]
    with fb.Session() as sess:
        assert sess.run([*powers, *slopes], {x: 2.0}) == [16, 256, 32, 512]
        assert sess.run([*powers, *slopes], {x: 0.5}) == [-0.0625, -1, -0.5, -8]
