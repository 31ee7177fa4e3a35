"""Nodes that name functions become nodes that name none: `expanded`.

What a function does is finished before anything gets what its call gives, and begins after what
the call waits for. A value that a loop's body gives as it was given, as it does with all that it
takes from outside, does not go round: it enters the loop once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from flowbook.graph.model.errors import (
    InvalidArgumentError,
    OpError,
    ResourceExhaustedError,
)
from flowbook.tensorflow.functions.copies import Copy, Given, copied
from flowbook.tensorflow.functions.library import Body, Library
from flowbook.tensorflow.messages_pb2 import (
    AttrValue,
    DataType,
    GraphDef,
    NameAttrList,
    NodeDef,
    TensorProto,
)
from flowbook.tensorflow.opening import MOST_BYTES, MOST_NODES

# How many functions may call one another, one inside the other.
MOST_DEPTH = 200


def expanded(graph: GraphDef) -> Sequence[NodeDef]:
    """The nodes of a graph, with copies of its functions in the place of what names them.

    Raises:
        InvalidArgumentError: if a function calls itself, is not there, or is not valid.
        ResourceExhaustedError: if there come to be too many nodes, or calls in each other.
        UnimplementedError: if a function takes a list as one argument.
    """
    library = Library(graph)
    if not any(_names_functions(node, library) for node in graph.node):
        return graph.node
    found, budget = [], _Budget(len(graph.node))
    # Nodes to look at, the next one last, with the functions that each is a copy from.
    left: list[tuple[NodeDef, tuple[str, ...]]] = [(node, ()) for node in reversed(graph.node)]
    while left:
        node, within = left.pop()
        if not _names_functions(node, library):
            found.append(node)
            continue
        try:
            left += reversed(_Replacement(library, node, within, budget).nodes)
        except OpError as error:
            error.details.append(f"read from the {node.op} node {node.name!r}")
            raise
    return found


def _names_functions(node: NodeDef, library: Library) -> bool:
    return node.op in _RULES or node.op in library


class _Budget:
    """How many nodes may be added, and how many bytes they may have."""

    def __init__(self, nodes: int) -> None:
        self._nodes = MOST_NODES - nodes
        self._bytes = MOST_BYTES

    def spend(self, node: NodeDef) -> None:
        """Count a node.

        Raises:
            ResourceExhaustedError: if there are too many.
        """
        self._nodes -= 1
        self._bytes -= node.ByteSize()
        if self._nodes < 0 or self._bytes < 0:
            raise ResourceExhaustedError(
                f"with copies of its functions, the graph has more than {MOST_NODES} nodes, or "
                f"{MOST_BYTES} bytes"
            )


class _Replacement:
    """The nodes in the place of one that names functions.

    Attributes:
        nodes: these, with the functions that each is a copy from; some may name functions too.
    """

    def __init__(
        self, library: Library, node: NodeDef, within: tuple[str, ...], budget: _Budget
    ) -> None:
        self.nodes: list[tuple[NodeDef, tuple[str, ...]]] = []
        self._library = library
        self._node = node
        self._within = within
        self._budget = budget
        self._inputs = [text for text in node.input if not text.startswith("^")]
        self._waited = [text for text in node.input if text.startswith("^")]
        _RULES.get(node.op, _Replacement.direct)(self)

    def call(self) -> None:
        """A node that calls a function, which it names."""
        self._called(self._function("f"))

    def direct(self) -> None:
        """A node whose type is a function's name."""
        self._called(NameAttrList(name=self._node.op, attr=self._node.attr))

    def _called(self, function: NameAttrList) -> None:
        copy = self._copied("", self._body(function), map(Given, self._inputs), self._waited)
        self._give(copy.results, [*copy.ends, *self._waited])

    def branch(self) -> None:
        """One of two functions, by a truth value."""
        pred, *given = self._taken(1)
        truth = self._truth("truth", pred, self._waited)
        (no, off), (yes, on) = self._sides("", truth, map(Given, given), self._waited)
        otherwise, then = self._function("else_branch"), self._function("then_branch")
        results = self._merged(
            "", self._outcome("else/", otherwise, no, off), self._outcome("then/", then, yes, on)
        )
        self._give_of(otherwise, results)

    def case(self) -> None:
        """One of several functions, by a number; where there is none of that number, the last."""
        functions = self._node.attr["branches"].list.func
        if not functions:
            raise InvalidArgumentError("there is nothing to choose from")
        *others, last = functions
        given, waited = [Given(text) for text in self._taken(1)], self._waited
        outcomes = []
        for place, function in enumerate(others):
            number = self._constant(f"number_{place}", DataType.DT_INT32, waited, int_val=[place])
            is_it = self._added("Equal", f"is_{place}", given[0].text, number)
            (given, waited), (own, on) = self._sides(f"{place}/", is_it, given, waited)
            outcomes.append(self._outcome(f"branch_{place}/", function, own[1:], on))
        results = self._outcome(f"branch_{len(others)}/", last, given[1:], waited)
        for place, outcome in reversed([*enumerate(outcomes)]):
            results = self._merged(f"{place}/", results, outcome)
        self._give_of(last, results)

    def loop(self) -> None:
        """A function that is called as long as another one gives true."""
        given = self._taken(0)
        cond, body = self._body(self._function("cond")), self._body(self._function("body"))
        if len(body.results) != len(given) or len(cond.results) != 1:
            raise InvalidArgumentError(
                f"the function {body.name!r} gives {len(body.results)} values for {len(given)}, "
                f"and {cond.name!r} {len(cond.results)} for one"
            )
        rounds = dict.fromkeys(p for p, argument in enumerate(body.passed()) if argument != p)
        # What no value goes round of goes on by a value of its own.
        texts = list(given)
        if not rounds:
            rounds[len(texts)] = None
            texts.append(self._constant("goes_on", DataType.DT_BOOL, self._waited, bool_val=[True]))
        entered = [self._entered(place, text, place in rounds) for place, text in enumerate(texts)]
        merged = {
            place: self._added("Merge", f"merge_{place}", entered[place], self._named(f"n_{place}"))
            for place in rounds
        }
        first = next(iter(rounds))
        before = [f"^{merged[first]}"]
        inside = [Given(merged.get(i, text), i in merged) for i, text in enumerate(entered)]
        asked = self._copied("cond/", cond, inside[: len(given)], before)
        truth = self._truth("truth", asked.results[0], [*before, *asked.ends])
        ends = self._added("LoopCond", "goes", truth)
        switched = {
            place: self._added("Switch", f"switch_{place}", text, ends)
            for place, text in merged.items()
        }
        pivot = [f"^{self._added('Identity', 'pivot', f'{switched[first]}:1')}"]
        inside = [
            Given(f"{switched[i]}:1", True) if i in switched else Given(text)
            for i, text in enumerate(entered)
        ]
        done = self._copied("body/", body, inside[: len(given)], pivot)
        following = [*done.results, *(each.text for each in inside[len(given) :])]
        for place in rounds:
            text = self._after(f"body_{place}", following[place], done.ends)
            self._added("NextIteration", f"n_{place}", text)
            texts[place] = self._added("Exit", f"exit_{place}", switched[place])
        results = texts[: len(given)]
        self._give(results, [] if results else [f"^{texts[-1]}"])

    # What the node says

    def _function(self, key: str) -> NameAttrList:
        attribute = self._node.attr[key]
        if attribute.WhichOneof("value") != "func":
            raise InvalidArgumentError(f"it names no function by its attribute {key!r}")
        return attribute.func

    def _body(self, function: NameAttrList) -> Body:
        """The body of a function that the node calls."""
        if function.name in self._within:
            way = " -> ".join((*self._within[self._within.index(function.name) :], function.name))
            raise InvalidArgumentError(f"the function {function.name!r} calls itself: {way}")
        if len(self._within) >= MOST_DEPTH:
            raise ResourceExhaustedError(f"more than {MOST_DEPTH} functions call one another")
        return self._library.body(function.name, function.attr)

    def _taken(self, least: int) -> list[str]:
        if len(self._inputs) < least:
            raise InvalidArgumentError("there is nothing to choose by")
        return self._inputs

    # Nodes in its place

    def _named(self, part: str) -> str:
        return f"{self._node.name}/{part}"

    def _added(self, op: str, part: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; give its name."""
        name = self._named(part)
        self._add(name, op, inputs, attributes)
        return name

    def _add(
        self, name: str, op: str, inputs: Sequence[str], attributes: Mapping[str, Any]
    ) -> None:
        made = {key: AttrValue(**{kind: value}) for key, (kind, value) in attributes.items()}
        node = NodeDef(name=name, op=op, input=inputs, device=self._node.device, attr=made)
        self._keep(node, ())

    def _keep(self, node: NodeDef, within: tuple[str, ...]) -> None:
        self._budget.spend(node)
        self.nodes.append((node, within))

    def _constant(self, part: str, dtype: DataType, waited: Sequence[str], **value: Any) -> str:
        tensor = TensorProto(dtype=dtype, **value)
        return self._added("Const", part, *waited, dtype=("type", dtype), value=("tensor", tensor))

    def _truth(self, part: str, text: str, waited: Sequence[str]) -> str:
        """A truth value: of a number whether it is not 0."""
        return self._added("Cast", part, text, *waited, DstT=("type", DataType.DT_BOOL))

    def _after(self, part: str, text: str, ends: Sequence[str]) -> str:
        """A value that is there when something has been done."""
        return self._added("Identity", part, text, *ends) if ends else text

    def _copied(
        self, prefix: str, body: Body, given: Iterable[Given], waited: Sequence[str]
    ) -> Copy:
        """Add a copy of a body."""
        prefix = self._named(prefix)
        copy = copied(body, prefix, list(given), waited, self._node.device)
        within = (*self._within, body.name)
        for node in copy.nodes:
            self._keep(node, within)
        return copy

    def _outcome(
        self, part: str, function: NameAttrList, given: Sequence[Given], waited: Sequence[str]
    ) -> list[str]:
        """What a branch gives when it has done all it does: one value, if it gives none."""
        copy = self._copied(part, self._body(function), given, waited)
        if not copy.results:
            ends = [*waited, *copy.ends]
            return [self._constant(f"{part}done", DataType.DT_BOOL, ends, bool_val=[True])]
        return [
            self._after(f"{part}after_{place}", text, copy.ends)
            for place, text in enumerate(copy.results)
        ]

    def _sides(
        self, part: str, truth: str, given: Iterable[Given], waited: Sequence[str]
    ) -> list[tuple[list[Given], list[str]]]:
        """What the branches are given and wait for: where a value is false, where it is true."""
        switches = [
            self._added("Switch", f"{part}switch_{place}", each.text, truth, *waited)
            for place, each in enumerate(given)
        ]
        pivot = self._added("Switch", f"{part}pivot", truth, truth, *waited)
        found = []
        for side, which in enumerate(("else", "then")):
            on = self._added("Identity", f"{part}{which}_pivot", f"{pivot}:{side}")
            found.append(([Given(f"{name}:{side}", True) for name in switches], [f"^{on}"]))
        return found

    def _merged(self, part: str, first: Sequence[str], second: Sequence[str]) -> list[str]:
        """What one of two branches gives."""
        if len(first) != len(second):
            raise InvalidArgumentError(
                f"its branches give {len(first)} and {len(second)} values, and not as many"
            )
        return [
            self._added("Merge", f"{part}merge_{place}", *pair)
            for place, pair in enumerate(zip(first, second, strict=True))
        ]

    def _entered(self, place: int, text: str, goes_round: bool) -> str:
        return self._added(
            "Enter",
            f"enter_{place}",
            text,
            *self._waited,
            frame_name=("s", self._node.name.encode()),
            is_constant=("b", not goes_round),
            parallel_iterations=("i", self._node.attr["parallel_iterations"].i or 10),
        )

    def _give_of(self, function: NameAttrList, results: Sequence[str]) -> None:
        """Give what branches give: nothing, if all that is known of them is that they are done."""
        gives = self._body(function).results
        self._give(results if gives else [], [] if gives else [f"^{each}" for each in results])

    def _give(self, results: Sequence[str], waited: Sequence[str]) -> None:
        """Add what has the node's own name: its values, as others take them."""
        op = "IdentityN" if len(results) > 1 else "Identity" if results else "NoOp"
        self._add(self._node.name, op, [*results, *waited], {})


_RULES: dict[str, Callable[[_Replacement], None]] = {
    **dict.fromkeys(("PartitionedCall", "StatefulPartitionedCall"), _Replacement.call),
    **dict.fromkeys(("If", "StatelessIf"), _Replacement.branch),
    **dict.fromkeys(("Case", "StatelessCase"), _Replacement.case),
    **dict.fromkeys(("While", "StatelessWhile"), _Replacement.loop),
}
