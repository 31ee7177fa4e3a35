"""Random graphs to hold executors against each other, and the operations that they need.

All values are integers that float32 holds exactly, so that no order of additions shows.
"""

from __future__ import annotations

import math
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from hypothesis import strategies as st

import flowbook as fb
from flowbook.graph.model.ancestors import ancestors

SHAPES = [(), (2,), (3,), (2, 3), (1, 3), (2, 1)]
LIMIT = 64.0

# What a strategy is made of anew each time, Hypothesis looks at anew, for longer than it draws.
integers = cache(st.integers)
BOOLEANS = st.booleans()
# For as many values as the largest shape has: what is drawn for one fits another.
BYTES = st.binary(min_size=6, max_size=6)

_pool = ThreadPoolExecutor(2)


def _delayed(context: Any, x: Any, how: str) -> Any:
    outputs = (x + np.float32(1), x - np.float32(1))
    if context is np:  # The oracle knows nothing of waiting.
        return outputs
    if how == "thread":
        _pool.submit(context.complete, outputs)
    else:
        context.complete(outputs)
    return None


delayed = fb.OpDef(
    "Delayed",
    "x: float32 -> more: float32, less: float32",
    attributes={"how": "thread"},
    infer=lambda x, how: [x.shape, x.shape],
    kernel=_delayed,
    is_async=True,
)


class Channel:
    """What one operation sends and another, with no edge between them, waits for."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.sent: dict[int, Any] = {}
        self.waiting: dict[int, Any] = {}

    def clear(self) -> None:
        self.sent, self.waiting = {}, {}

    def send(self, xp: Any, value: Any, key: int) -> tuple[()]:
        with self.lock:
            self.sent[key] = value.copy()
            context = self.waiting.pop(key, None)
        if context is not None:
            context.complete((self.sent[key],))
        return ()

    def receive(self, context: Any, key: int, shape: Any) -> Any:
        if context is np:
            return self.sent[key]
        with self.lock:
            if key not in self.sent:
                self.waiting[key] = context
                return None
        context.complete((self.sent[key],))
        return None


channel = Channel()

send = fb.OpDef(
    "TestSend",
    "x: float32 ->",
    attributes={"key": fb.REQUIRED},
    infer=lambda x, key: [],
    kernel=channel.send,
    touches=fb.Touch(fb.Access.OUTSIDE),
)
receive = fb.OpDef(
    "TestReceive",
    "-> y: float32",
    attributes={"key": fb.REQUIRED, "shape": fb.REQUIRED},
    infer=lambda key, shape: shape,
    kernel=channel.receive,
    is_async=True,
)


def is_stateless(tensor: fb.Tensor) -> bool:
    """Whether nothing that leads to a tensor reads or writes a variable."""
    return all(op.op_def.owns != "variable" for op in ancestors(tensor.op, by_control=True))


@dataclass
class Example:
    """A graph, and steps to run on it one after the other.

    Attributes:
        graph: the graph.
        sends: operations that others wait for, to be run in every step.
        steps: (fetches, feeds) each.
        waits: whether anything in it is asynchronous.
        has_fed_variables: whether a step feeds a variable.
    """

    graph: fb.Graph
    sends: list[fb.Operation] = field(default_factory=list)
    steps: list[tuple[list[Any], dict[Any, Any]]] = field(default_factory=list)
    waits: bool = False
    has_fed_variables: bool = False


class _Builder:
    """Draws one operation after the other."""

    def __init__(self, draw: Any, with_waiting: bool, depth: int) -> None:
        self.draw = draw
        self.tensors: list[fb.Tensor] = []
        self.operations: list[fb.Operation] = []
        self.placeholders: list[fb.Tensor] = []
        self.variables: list[fb.Variable] = []
        self.effects: list[fb.Tensor] = []
        self.example = Example(fb.get_default_graph())
        self.kinds = [
            self.constant,
            self.unary,
            self.binary,
            self.product,
            self.reduction,
            self.alias,
            self.alias,
            self.parts,
            self.variable,
            self.read,
            self.read,
            self.read,
            self.write,
            self.write,
            self.write,
            self.function,
            self.random,
        ]
        if with_waiting:
            self.kinds += [self.delay, self.delay, self.exchange]
        self.depth = depth
        if depth:
            self.kinds += [self.branch, self.branch, self.loop, self.by_hand]

    def pick(self, items: Any) -> Any:
        return items[self.draw(integers(0, len(items) - 1))]

    def tensor(self) -> fb.Tensor:
        return self.pick(self.tensors)

    def values(self, shape: Any) -> np.ndarray:
        """Whole numbers from -4 to 4; zeros are the simplest."""
        given = np.frombuffer(self.draw(BYTES), np.uint8)[: math.prod(shape)]
        return ((given + np.float32(4)) % 9 - 4).reshape(shape)

    def step(self) -> None:
        waited = []
        if self.operations and self.draw(integers(0, 2)) == 0:
            effects = [tensor.op for tensor in self.effects]
            waited = [self.pick(effects if effects and self.draw(BOOLEANS) else self.operations)]
        with fb.control_dependencies(waited or None):
            made = self.pick(self.kinds)()
        for tensor in made:
            self.tensors.append(tensor)
            self.operations.append(tensor.op)

    def placeholder(self) -> list[fb.Tensor]:
        made = fb.placeholder(fb.float32, self.pick(SHAPES))
        self.placeholders.append(made)
        return [made]

    def constant(self) -> list[fb.Tensor]:
        return [fb.constant(self.values(self.pick(SHAPES)))]

    def unary(self) -> list[fb.Tensor]:
        return [self.pick([fb.negative, fb.abs, fb.sign, fb.floor])(self.tensor())]

    def binary(self) -> list[fb.Tensor]:
        a, b = self.tensor(), self.tensor()
        try:
            np.broadcast_shapes(tuple(a.shape), tuple(b.shape))
        except ValueError:
            b = a
        made = self.pick([fb.add, fb.subtract, fb.maximum, fb.minimum, fb.multiply])(a, b)
        return [fb.clip_by_value(made, -LIMIT, LIMIT)]

    def product(self) -> list[fb.Tensor]:
        a = fb.reshape(self.tensor(), [1, -1])
        made = fb.matmul(a, a, transpose_a=True)
        return [fb.clip_by_value(made[:2, :2], -LIMIT, LIMIT)]

    def reduction(self) -> list[fb.Tensor]:
        a = self.tensor()
        axis = self.pick([None, *range(a.shape.rank)])
        reduce = self.pick([fb.reduce_sum, fb.reduce_max, fb.reduce_min])
        made = reduce(a, axis, keepdims=self.draw(BOOLEANS))
        return [fb.clip_by_value(made, -LIMIT, LIMIT)]

    def alias(self) -> list[fb.Tensor]:
        a = self.tensor()
        rank = a.shape.rank
        return [
            self.pick(
                [
                    lambda: fb.identity(a),
                    lambda: fb.stop_gradient(a),
                    lambda: fb.reshape(a, [-1]),
                    lambda: fb.transpose(a),
                    lambda: fb.expand_dims(a, 0)[0],
                    lambda: fb.squeeze(a),
                    lambda: fb.broadcast_to(a, [2, *a.shape.as_list()])[1] if rank < 2 else a[::-1],
                    lambda: a[..., :1] if rank else fb.cast(a, fb.float32),
                ]
            )()
        ]

    def parts(self) -> list[fb.Tensor]:
        a = self.tensor()
        if a.shape.rank and self.draw(BOOLEANS):
            return fb.unstack(a)
        flat = fb.reshape(a, [-1])
        size = flat.shape.dims[0]
        return fb.split(flat, [size // 2, size - size // 2] if size > 1 else 1)

    def variable(self) -> list[fb.Tensor]:
        if len(self.variables) == 2:
            return self.read()
        made = fb.Variable(self.values(self.pick(SHAPES)))
        self.variables.append(made)
        return [made.value]

    def read(self) -> list[fb.Tensor]:
        if not self.variables:
            return self.variable()
        made = fb.identity(self.pick(self.variables))
        self.effects.append(made)
        return [made, made.op.inputs[0]]

    def write(self) -> list[fb.Tensor]:
        if not self.variables:
            return self.variable()
        variable = self.pick(self.variables)
        values = [t for t in self.tensors if t.shape == variable.shape]
        value = self.pick(values) if values else fb.constant(self.values(tuple(variable.shape)))
        made = self.pick([fb.assign, fb.assign_add, fb.assign_sub])(variable, value)
        self.effects.append(made)
        return [fb.clip_by_value(made, -LIMIT, LIMIT), made]

    def function(self) -> list[fb.Tensor]:
        a = self.tensor()
        made = fb.py_func(lambda v: v + 1, [a], fb.float32, stateful=False)
        return [fb.reshape(made, a.shape.as_list())]

    def random(self) -> list[fb.Tensor]:
        seed = self.draw(integers(0, 3))
        made = fb.random_uniform(self.pick(SHAPES), -4, 5, dtype=fb.int32, seed=seed)
        return [fb.cast(made, fb.float32)]

    def delay(self) -> list[fb.Tensor]:
        self.example.waits = True
        return list(delayed(self.tensor(), how=self.pick(["thread", "at once"])))

    def exchange(self) -> list[fb.Tensor]:
        self.example.waits = True
        # Nobody but the channel knows that a receive waits for a send: a read behind the one goes
        # before a write that the other waits for, and there would be no answer.
        key, a = len(self.example.sends), self.pick([t for t in self.tensors if is_stateless(t)])
        comes_first = self.draw(BOOLEANS)
        if comes_first:
            self.send(a, key)
        made = receive(key=key, shape=a.shape)
        if not comes_first:
            self.send(a, key)
        return [made]

    def send(self, a: fb.Tensor, key: int) -> None:
        with fb.control_dependencies(None):
            self.example.sends.append(send(a, key=key))

    def branch(self) -> list[fb.Tensor]:
        predicate = fb.reduce_sum(self.tensor()) > float(self.draw(integers(-3, 3)))
        return [fb.cond(predicate, self.inside, self.inside)]

    def loop(self) -> list[fb.Tensor]:
        turns, first = self.draw(integers(0, 3)), fb.reduce_sum(self.tensor())

        def body(i: fb.Tensor, value: fb.Tensor) -> Any:
            return i + 1, self.inside(value)

        return [fb.while_loop(lambda i, _: i < turns, body, (0, first), back_prop=False)[1]]

    def by_hand(self) -> list[fb.Tensor]:
        """A Switch and a Merge; what is written on one side follows that by order alone."""
        predicate = fb.reduce_sum(self.tensor()) > float(self.draw(integers(-3, 3)))
        no, yes = fb.control_flow.switch(fb.reduce_sum(self.tensor()), predicate)
        variable = self.pick(self.variables)
        with fb.control_dependencies([fb.identity(yes)]):
            written = fb.assign_add(variable, self.values(tuple(variable.shape)))
        with fb.control_dependencies([written]):
            acted = fb.identity(yes)
        return [fb.control_flow.merge([no, acted]).output]

    def inside(self, *given: fb.Tensor) -> fb.Tensor:
        """A scalar of what is drawn in a branch or loop, of which nothing else is seen outside."""
        before = (self.tensors, self.operations, self.effects, self.kinds, self.depth)
        # What takes nothing from outside is inside by its control dependencies alone.
        own = self.constant() if self.draw(BOOLEANS) else self.tensors
        self.tensors, self.operations = [*given, *own], [*self.operations]
        self.effects, self.depth = [*self.effects], self.depth - 1
        kinds = [each for each in self.kinds if each not in (self.exchange, self.variable)]
        if not self.depth:
            kinds = [each for each in kinds if each not in (self.branch, self.loop)]
        self.kinds = kinds
        for _ in range(self.draw(integers(0, 4))):
            self.step()
        made = fb.clip_by_value(fb.reduce_sum(self.tensors[-1]), -LIMIT, LIMIT)
        self.tensors, self.operations, self.effects, self.kinds, self.depth = before
        return made

    def steps(self, feed_variables: bool) -> None:
        for _ in range(self.draw(integers(1, 3))):
            feeds: dict[Any, Any] = {p: self.values(tuple(p.shape)) for p in self.placeholders}
            for _ in range(self.draw(integers(0, 2))):
                tensor = self.tensor()
                feeds[tensor] = self.values(tuple(tensor.shape))
            if feed_variables and self.variables and self.draw(BOOLEANS):
                variable = self.pick(self.variables)
                feeds[variable.handle] = self.values(tuple(variable.shape))
                self.example.has_fed_variables = True
            targets = [op for op in self.operations if not any(t in feeds for t in op.outputs)]
            fetched = [self.tensors, targets or self.tensors, self.variables or self.tensors]
            fetches = [self.pick(self.pick(fetched)) for _ in range(self.draw(integers(1, 6)))]
            # All effects together, more often than not: that is what has to be ordered.
            if self.draw(integers(0, 3)):
                fetches += [t for t in self.effects if t not in feeds]
            self.example.steps.append((fetches, feeds))


@st.composite
def examples(
    draw: Any, with_waiting: bool = False, feed_variables: bool = False, depth: int = 0
) -> Example:
    """A graph of up to 24 drawn operations, and one to three steps.

    Args:
        draw: Hypothesis's.
        with_waiting: whether some are asynchronous.
        feed_variables: whether variables are fed.
        depth: how many branches and loops may lie in each other.
    """
    with fb.Graph().as_default():
        builder = _Builder(draw, with_waiting, depth)
        if depth:
            for tensor in [*builder.variable(), *builder.variable()]:
                builder.tensors.append(tensor)
        for _ in range(draw(integers(1, 2))):
            for tensor in builder.placeholder():
                builder.tensors.append(tensor)
        for _ in range(draw(integers(4, 24))):
            builder.step()
        builder.steps(feed_variables)
    return builder.example
