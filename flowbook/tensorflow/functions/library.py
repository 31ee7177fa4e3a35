"""A graph's functions: their bodies, as nodes that name arguments and outputs by words.

Where a graph says "split:1", a function's body says "split:output:1", by the name that the type
gives its outputs. Which output that is `_OUTPUTS` tells, for types that name several; all others
have one name, for one output or for a list of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from flowbook.graph.model.errors import InvalidArgumentError, UnimplementedError
from flowbook.tensorflow.messages_pb2 import FunctionDef, GraphDef, NodeDef

# How types name their outputs where they name several; of "values*count" there are as many as the
# attribute "count" says.
_OUTPUTS: dict[str, tuple[str, ...]] = {
    type: tuple(names.split())
    for types, names in {
        "AllCandidateSampler LogUniformCandidateSampler UniformCandidateSampler": (
            "sampled_candidates true_expected_count sampled_expected_count"
        ),
        "BroadcastGradientArgs": "r0 r1",
        "CTCBeamSearchDecoder": (
            "decoded_indices*top_paths decoded_values*top_paths decoded_shape*top_paths "
            "log_probability"
        ),
        "CTCGreedyDecoder": "decoded_indices decoded_values decoded_shape log_probability",
        "CTCLoss": "loss gradient",
        "ComputeAccidentalHits": "indices ids weights",
        "FusedBatchNorm FusedBatchNormV2": (
            "y batch_mean batch_variance reserve_space_1 reserve_space_2"
        ),
        "FusedBatchNormV3": (
            "y batch_mean batch_variance reserve_space_1 reserve_space_2 reserve_space_3"
        ),
        "FusedBatchNormGrad FusedBatchNormGradV2": (
            "x_backprop scale_backprop offset_backprop reserve_space_3 reserve_space_4"
        ),
        "FusedBatchNormGradV3": (
            "x_backprop scale_backprop offset_backprop reserve_space_4 reserve_space_5"
        ),
        "ListDiff": "out idx",
        "LogMatrixDeterminant": "sign log_abs_determinant",
        "LookupTableExport LookupTableExportV2": "keys values",
        "Lu": "lu p",
        "MaxPoolWithArgmax": "output argmax",
        "Merge RefMerge": "output value_index",
        "NonMaxSuppressionV4": "selected_indices valid_outputs",
        "NonMaxSuppressionV5": "selected_indices selected_scores valid_outputs",
        "ParseExample": (
            "sparse_indices*Nsparse sparse_values*Nsparse sparse_shapes*Nsparse dense_values*Ndense"
        ),
        # The last has all that are left.
        "ParseExampleV2 ParseSingleExample": (
            "sparse_indices*num_sparse sparse_values*num_sparse sparse_shapes*num_sparse "
            "dense_values"
        ),
        "Qr": "q r",
        "ReaderRead ReaderReadV2": "key value",
        "ReaderReadUpTo ReaderReadUpToV2": "keys values",
        "SampleDistortedBoundingBox SampleDistortedBoundingBoxV2": "begin size bboxes",
        "SelfAdjointEigV2": "e v",
        "SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits": "loss backprop",
        "SparseAdd": "sum_indices sum_values sum_shape",
        "SparseConcat SparseSlice": "output_indices output_values output_shape",
        "SparseFillEmptyRows": (
            "output_indices output_values empty_row_indicator reverse_index_map"
        ),
        "SparseReorder SparseSparseMaximum SparseSparseMinimum": "output_indices output_values",
        "SparseReshape": "output_indices output_shape",
        "SparseSplit": ("output_indices*num_split output_values*num_split output_shape*num_split"),
        "DenseToDenseSetOperation DenseToSparseSetOperation SparseToSparseSetOperation": (
            "result_indices result_values result_shape"
        ),
        "StringSplit StringSplitV2": "indices values shape",
        "Svd": "s u v",
        "Switch RefSwitch": "output_false output_true",
        "TensorArrayConcatV3": "value lengths",
        "TensorArrayGradV3": "grad_handle flow_out",
        "TensorArrayV3": "handle flow",
        "TensorListConcatV2": "tensor lengths",
        "TensorListPopBack": "output_handle tensor",
        "TopK TopKV2": "values indices",
        "Unique UniqueV2": "y idx",
        "UniqueWithCounts UniqueWithCountsV2": "y idx count",
    }.items()
    for type in types.split()
}


class Value(NamedTuple):
    """What a body takes somewhere: an output of one of its nodes, or an argument.

    Attributes:
        node: the node's name; "" of an argument.
        port: which of its outputs, or which of the arguments.
    """

    node: str
    port: int


class Body(NamedTuple):
    """What a function does.

    Attributes:
        name: the function's name.
        arguments: how many it takes.
        nodes: its nodes, in their order.
        inputs: what each takes, by its name.
        waited: what each waits for, by its name: nodes of the body.
        results: what it gives.
        ends: the nodes that have run when it has: what is done, and not given.
    """

    name: str
    arguments: int
    nodes: list[NodeDef]
    inputs: dict[str, list[Value]]
    waited: dict[str, list[str]]
    results: list[Value]
    ends: list[str]

    def passed(self) -> list[int | None]:
        """For each result the argument that it is, unchanged; None if it is none."""
        types = {node.name: node.op for node in self.nodes}
        ends: dict[Value, Value] = {}
        found = []
        for value in self.results:
            way = []
            while value.node and types[value.node] == "Identity" and not self.waited[value.node]:
                way.append(value)
                # What goes round leads to itself, and to no argument.
                ends[value] = value
                [value] = self.inputs[value.node][:1] or [value]
                if value in ends:
                    value = ends[value]
                    break
            ends.update(dict.fromkeys(way, value))
            found.append(None if value.node else value.port)
        return found


class Library:
    """The functions of a graph, by their names.

    Raises:
        InvalidArgumentError: if two have one name.
    """

    def __init__(self, graph: GraphDef) -> None:
        self._functions: dict[str, FunctionDef] = {}
        self._bodies: dict[str, Body] = {}
        for function in graph.library.function:
            if function.signature.name in self._functions:
                raise InvalidArgumentError(
                    f"the graph has several functions named {function.signature.name!r}"
                )
            self._functions[function.signature.name] = function

    def __contains__(self, name: str) -> bool:
        return name in self._functions

    def body(self, name: str, attributes: Mapping[str, Any]) -> Body:
        """A function's body.

        Args:
            name: the function's name.
            attributes: what stands for the attributes that it leaves open.

        Raises:
            InvalidArgumentError: if there is no such function, or it is not valid.
            UnimplementedError: if it takes a list as one argument.
        """
        function = self._functions.get(name)
        if function is None:
            raise InvalidArgumentError(f"the function {name!r} is not in the graph's library")
        if name not in self._bodies:
            self._bodies[name] = self._read(function)
        body = self._bodies[name]
        return body._replace(nodes=[_filled(node, attributes, name) for node in body.nodes])

    def _read(self, function: FunctionDef) -> Body:
        signature = function.signature
        for argument in (*signature.input_arg, *signature.output_arg):
            if argument.number_attr or argument.type_list_attr:
                raise UnimplementedError(
                    f"the function {signature.name!r} takes or gives a list {argument.name!r}"
                )
        if len({node.name for node in function.node_def}) != len(function.node_def):
            raise InvalidArgumentError(f"the function {signature.name!r} has two nodes of one name")
        reader = _Reader(self, function)
        inputs = {node.name: reader.values(node) for node in function.node_def}
        waited = {node.name: reader.waited(node) for node in function.node_def}
        results = []
        for argument in signature.output_arg:
            if argument.name not in function.ret:
                raise reader.invalid(f"does not say what {argument.name!r} is")
            results.append(reader.value(function.ret[argument.name]))
        ends = [reader.node(name) for _, name in sorted(function.control_ret.items())]
        if signature.is_stateful and not function.control_ret:
            # Earlier functions do not say what they do: they run as a whole.
            taken = {v.node for values in (*inputs.values(), results) for v in values}
            taken.update(name for names in waited.values() for name in names)
            ends = [node.name for node in function.node_def if node.name not in taken]
        nodes = list(function.node_def)
        return Body(signature.name, len(signature.input_arg), nodes, inputs, waited, results, ends)

    def outputs(self, type: str) -> tuple[str, ...]:
        """How a type, or a function, names its outputs; nothing if it has one name for all."""
        if type in self._functions:
            return tuple(each.name for each in self._functions[type].signature.output_arg)
        return _OUTPUTS.get(type, ())


class _Reader:
    """Finds what the words of a function's body mean."""

    def __init__(self, library: Library, function: FunctionDef) -> None:
        self._library = library
        self._name = function.signature.name
        self._nodes = {node.name: node for node in function.node_def}
        self._arguments = {
            argument.name: place for place, argument in enumerate(function.signature.input_arg)
        }

    def values(self, node: NodeDef) -> list[Value]:
        """What a node takes."""
        return [self.value(text) for text in node.input if not text.startswith("^")]

    def waited(self, node: NodeDef) -> list[str]:
        """The nodes that a node waits for: arguments are there in any case."""
        names = [text[1:] for text in node.input if text.startswith("^")]
        return [self.node(name) for name in names if name not in self._arguments]

    def value(self, text: str) -> Value:
        """What "argument", "node:output" or "node:output:1" is."""
        name, *rest = text.split(":")
        if name in self._arguments and rest in ([], ["0"]):
            return Value("", self._arguments[name])
        if name not in self._nodes or not rest or len(rest) > 2 or not rest[-1:]:
            raise self.invalid(f"takes {text!r}, which it does not have")
        place = rest[1] if len(rest) == 2 else "0"
        first = self._first(self._nodes[name], rest[0])
        if first is None or not place.isdecimal():
            raise self.invalid(f"takes {text!r}, which is no output")
        return Value(name, first + int(place))

    def _first(self, node: NodeDef, output: str) -> int | None:
        """Which of a node's outputs is the first that has a name; None if none has."""
        names = self._library.outputs(node.op)
        before = 0
        for each in names:
            own, _, count = each.partition("*")
            if own == output:
                return before
            before += node.attr[count].i if count else 1
        return None if names else 0

    def node(self, name: str) -> str:
        """The name of a node."""
        if name not in self._nodes:
            raise self.invalid(f"waits for {name!r}, which is no node of it")
        return name

    def invalid(self, what: str) -> InvalidArgumentError:
        """The error of a function that is not valid."""
        return InvalidArgumentError(f"the function {self._name!r} {what}")


def _filled(node: NodeDef, attributes: Mapping[str, Any], function: str) -> NodeDef:
    """A node with what stands for the attributes that its function leaves open."""
    left = [key for key, value in node.attr.items() if value.WhichOneof("value") == "placeholder"]
    if not left:
        return node
    filled = NodeDef()
    filled.CopyFrom(node)
    for key in left:
        name = node.attr[key].placeholder
        if name not in attributes:
            raise InvalidArgumentError(
                f"the function {function!r} is used without its attribute {name!r}"
            )
        filled.attr[key].CopyFrom(attributes[name])
    return filled
