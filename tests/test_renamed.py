"""Names that are spelt differently in Flowbook: each error names something that there is."""

import copy
import inspect
import pickle
import re
from typing import Any

import pytest

import flowbook as fb
from flowbook import _renamed
from flowbook.graph.definition import keywords
from flowbook.graph.definition.public import public
from flowbook.graph.model.elsewhere import Elsewhere

TABLES = {"": _renamed.INSTEAD, **_renamed.INSTEAD_IN}
OF_PARTS = {"contrib": _renamed.IN_CONTRIB, "GraphKeys": _renamed.OF_COLLECTIONS}
IN_PARTS = [
    ("", f"{part}.{name}", hint)
    for part, table in OF_PARTS.items()
    for name, hint in table.items()
    if name
]
HINTS = [(space, name, hint) for space, table in TABLES.items() for name, hint in table.items()]


def reached(path: str) -> Any:
    found: Any = fb
    for part in path.split(".")[1:]:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize(("space", "name", "hint"), HINTS + IN_PARTS, ids=lambda v: v)
def test_a_hint_is_needed_and_names_what_exists(space: str, name: str, hint: str) -> None:
    assert name not in dir(reached(f"fb.{space}" if space else "fb"))
    for path in re.findall(r"\bfb(?:\.\w+)+", hint):
        reached(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("fb.mul", "flowbook has no mul: use fb.multiply"),
        ("fb.nn.max_pool2d", "flowbook.nn has no max_pool2d: use fb.nn.max_pool"),
        ("fb.nn.sigmoid", "flowbook.nn has no sigmoid: use fb.sigmoid"),
        ("fb.conv2d", "use fb.layers.conv2d or fb.nn.conv2d"),
        ("fb.string_split", "use fb.strings.split"),
        ("fb.sparse_tensor_to_dense", "use fb.sparse.to_dense"),
        ("fb.sparse.cross", "use fb.strings.to_hash_bucket_fast"),
        ("fb.zeros_initializer", "use fb.initializers.zeros"),
        ("fb.nn.Linear", "use fb.layers.dense, a function"),
        ("fb.optim", "use fb.train, such as fb.train.AdamOptimizer"),
        ("fb.train.AdamOptimiser", "did you mean AdamOptimizer"),
        ("fb.nn.sofmax", "did you mean softmax"),
    ],
)
def test_a_name_from_elsewhere_says_where_it_is(path: str, message: str) -> None:
    with pytest.raises(AttributeError, match=message):
        reached(path)


@pytest.mark.parametrize("name", _renamed.OF_RNN_CELL)
def test_a_cell_of_tensorflow_says_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError, match=f"flowbook.nn has no {name}: use fb."):
        getattr(fb.nn.rnn_cell, name)(8, state_is_tuple=True)


def test_private_names_are_plainly_missing() -> None:
    assert not hasattr(fb.nn, "__path__")
    assert not hasattr(fb, "_add")


@pytest.mark.parametrize(
    ("of", "name", "message"),
    [
        ("tensor", "T", r"fb.transpose\(tensor\)"),
        ("tensor", "astype", "fb.cast"),
        ("tensor", "backward", r"fb.gradients\(tensor, variables\)"),
        ("tensor", "view", "fb.reshape"),
        ("variable", "assign", r"Variable has no assign: use fb.assign\(variable, value\)"),
        ("variable", "get_shape", "variable.shape"),
        ("variable", "is_initialized", "fb.is_variable_initialized"),
        ("variable", "sparse_read", r"fb.gather\(variable, indices\)"),
        ("variable", "read_value", r"fb.identity\(variable\)"),
        ("variable", "count_up_to", "fb.count_up_to"),
        ("variable", "nonsense", "'Variable' object has no attribute 'nonsense'$"),
        ("graph", "get_operations", "graph.operations"),
        ("graph", "nonsense", "'Graph' object has no attribute 'nonsense'$"),
        ("session", "partial_run_setup", "sess.partial_run"),
        ("session", "as_default", "sess.run"),
        ("session", "eval", "sess.run"),
        ("saver", "last_checkpoints", "fb.train.latest_checkpoint"),
        ("runner", "create_threads", "fb.train.start_queue_runners"),
        ("queue", "queue_ref", "FIFOQueue has no queue_ref: use queue.handle"),
        ("stack", "queue_ref", "queue.handle"),
        ("stack", "push", "stack.enqueue"),
        ("barrier", "barrier_ref", "barrier.handle"),
        ("accumulator", "accumulator_ref", "accumulator.handle"),
        ("reader", "reader_ref", "reader.handle"),
        ("table", "table_ref", "table.handle"),
        ("array", "append", r"array.write\(array.size\(\), value\)"),
        ("optimizer", "zero_grad", "AdamOptimizer has no zero_grad"),
        ("slices", "shape", "slices.dense_shape"),
        ("sparse", "eval", r"sess.run\(sparse, feeds\)"),
    ],
)
def test_a_method_of_tensorflow_says_what_to_write(of: str, name: str, message: str) -> None:
    queue = fb.FIFOQueue(1, fb.int32)
    made: dict[str, Any] = {
        "accumulator": fb.ConditionalAccumulator(fb.float32),
        "array": fb.TensorArray(fb.float32, 1),
        "barrier": fb.Barrier([fb.int32], [[]]),
        "optimizer": fb.train.AdamOptimizer(),
        "queue": queue,
        "reader": fb.WholeFileReader(),
        "runner": fb.train.QueueRunner(queue, [queue.enqueue(1)]),
        "slices": fb.IndexedSlices([1.0], [0]),
        "sparse": fb.SparseTensor([[0]], [1.0], [2]),
        "stack": fb.Stack(1, fb.int32),
        "table": fb.lookup.MutableHashTable(fb.int64, fb.int64, 0),
        "saver": fb.train.Saver(),
        "tensor": fb.constant(1.0),
        "variable": fb.Variable(1.0),
        "graph": fb.get_default_graph(),
        "session": fb.Session(),
    }
    with pytest.raises(AttributeError, match=message):
        getattr(made[of], name)
    assert name not in dir(made[of])


def test_what_to_write_instead_of_attributes_exists() -> None:
    classes = {getattr(fb, name) for name in dir(fb)} | {fb.errors.OpError}
    for space in _renamed.NAMESPACES:
        classes |= {getattr(reached(f"fb.{space}"), name) for name in dir(reached(f"fb.{space}"))}
    hints = [
        hint
        for each in classes
        if isinstance(each, type)
        for _, hint in inspect.getmembers_static(each, lambda m: isinstance(m, Elsewhere))
    ]
    assert len(hints) > 100
    for hint in hints:
        for path in re.findall(r"\bfb(?:\.\w+)+", hint.instead):
            reached(path)


@pytest.mark.parametrize(
    "kind", [fb.Graph, fb.Operation, fb.Tensor, fb.Shape, fb.DType, fb.Session, fb.Variable]
)
def test_attributes_are_looked_up_without_code_of_ours(kind: type) -> None:
    assert not hasattr(kind, "__getattr__")  # It would make building a graph a third slower.


@pytest.mark.parametrize(
    ("path", "arguments", "message"),
    [
        ("fb.reduce_sum", {"keep_dims": True}, "it is called keepdims"),
        ("fb.reduce_all", {"reduction_indices": 0}, "it is called axis"),
        ("fb.nn.moments", {"keep_dims": True}, "it is called keepdims"),
        ("fb.argmax", {"dimension": 0}, "it is called axis"),
        ("fb.nn.dilation2d", {"rates": [1, 1, 1, 1]}, "it is called dilations"),
        ("fb.image.decode_jpeg", {"dct_method": "INTEGER_FAST"}, "in one way"),
        ("fb.squeeze", {"squeeze_dims": 0}, "it is called axis"),
        ("fb.expand_dims", {"dim": 0}, "it is called axis"),
        ("fb.nn.softmax", {"dim": 0}, "it is called axis"),
        ("fb.sparse.concat", {"concat_dim": 0}, "it is called axis"),
        ("fb.nn.conv2d", {"filter": 0}, "it is called filters"),
        ("fb.strings.split", {"delimiter": ","}, "it is called sep"),
        ("fb.nn.moments", {"shift": 0.0}, "leave it out: moments"),
        ("fb.convert_to_tensor", {"preferred_dtype": fb.float64}, "give dtype"),
        ("fb.nn.avg_pool", {"value": 0}, "it is called input"),
        ("fb.nn.dropout", {"keep_prob": 0.5}, "rate=1 - keep_prob"),
        ("fb.assign", {"use_locking": True}, "leave it out: writes"),
        ("fb.Variable", {"collections": []}, "graph.variables"),
        ("fb.Session", {"config": None}, "takes itself"),
        ("fb.nn.relu", {"fetures": 1}, "did you mean features"),
        ("fb.nn.relu", {"nonsense": 1}, "'nonsense'; it takes features, name\n"),
        ("fb.erf", {"input": 1}, "'input'; it takes x, name"),
        ("fb.train.AdamOptimizer", {"use_locking": True}, "it takes learning_rate, beta1"),
        ("fb.summary.scalar", {"family": "a"}, "family/name"),
    ],
)
def test_a_keyword_from_elsewhere_says_what_to_write(
    path: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(fb.errors.InvalidTypeError, match=message) as caught:
        reached(path)(**arguments)
    assert isinstance(caught.value, TypeError)
    assert "reached(path)(**arguments)" in str(caught.value)


def test_a_keyword_of_a_method_says_what_to_write() -> None:
    x = fb.Variable(1.0)
    optimizer = fb.train.GradientDescentOptimizer(0.1)
    with pytest.raises(fb.errors.InvalidTypeError, match="partial gradients are added up"):
        optimizer.minimize(x * x, aggregation_method=2)  # type: ignore[call-arg]
    with fb.Session() as sess, pytest.raises(fb.errors.InvalidTypeError, match="called feeds"):
        sess.run(x, feed_dict={})


def test_errors_from_within_a_function_stay_as_they_are() -> None:
    def wrong(x: Any) -> None:
        raise TypeError("from within")

    with pytest.raises(TypeError, match="from within"):
        public(wrong)(x=1)


def test_what_a_keyword_is_called_instead_is_one() -> None:
    taken: set[str] = set()
    for space in ("", *_renamed.NAMESPACES):
        module = reached(f"fb.{space}" if space else "fb")
        for name in dir(module):
            member = getattr(module, name)
            if callable(member) and member is not fb.OpDef and not isinstance(member, fb.DType):
                taken.update(inspect.signature(member).parameters)
    assert {new for names in keywords.RENAMED.values() for new in names} <= taken


def test_functions_are_pickled_by_name_and_copied_as_themselves() -> None:
    namespaces = [fb, *(reached(f"fb.{space}") for space in _renamed.NAMESPACES)]
    for namespace in namespaces:
        for name in dir(namespace):
            member = getattr(namespace, name)
            if inspect.isfunction(member):
                assert pickle.loads(pickle.dumps(member)) is member
                assert copy.deepcopy(member) is member


def test_an_argument_that_has_to_be_named_says_so() -> None:
    x = fb.zeros([2, 3])
    with pytest.raises(
        fb.errors.InvalidTypeError, match="takes labels, logits, axis, name by name"
    ):
        fb.nn.softmax_cross_entropy_with_logits(x, x)
    with pytest.raises(fb.errors.InvalidTypeError, match=r"write for example dropout\(..., rate="):
        fb.nn.dropout(x, 0.5)
