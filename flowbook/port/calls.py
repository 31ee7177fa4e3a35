"""Calls of TensorFlow 1 whose arguments decide what they are here.

Each function is given a call whose inside has been ported, and what the program calls Flowbook. It
gives the expression that takes the call's place, or None where it is not sure.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import libcst as cst

Rewritten = cst.BaseExpression | None
_VARIABLES = {
    "GLOBAL_VARIABLES": "",
    "TRAINABLE_VARIABLES": "trainable=True",
    "VARIABLES": "",
}


def dotted(node: cst.BaseExpression | None) -> str:
    """The name that an expression is, such as "tf.nn.relu"; empty if it is none."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr.value}" if before else ""
    return ""


def text_of(node: cst.CSTNode) -> str:
    """A part of a program as text."""
    return cst.Module([]).code_for_node(node)


def first(value: cst.BaseExpression, is_followed: bool = True) -> cst.Arg:
    """A first argument."""
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return cst.Arg(value, comma=comma if is_followed else cst.MaybeSentinel.DEFAULT)


def with_args(call: cst.Call, args: list[cst.Arg]) -> cst.Call:
    """A call with some of its arguments; the last of others than its own has no comma."""
    if args and len(args) < len(call.args):
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=args)


def with_order(call: cst.Call, order: tuple[str, ...]) -> cst.Call:
    """A call whose arguments beyond the first two are given by their names.

    Args:
        call: the call.
        order: what the first arguments are called where the call comes from.
    """
    return call.with_changes(
        args=[
            _named(arg, order[i])
            if not arg.keyword and not arg.star and 1 < i < len(order)
            else arg
            for i, arg in enumerate(call.args)
        ]
    )


def _named(arg: cst.Arg, keyword: str) -> cst.Arg:
    around = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return arg.with_changes(keyword=cst.Name(keyword), equal=around)


def _arguments(call: cst.Call) -> list[str]:
    bare = [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in call.args]
    return [text_of(arg).replace(" = ", "=") for arg in bare]


def _by_name(call: cst.Call, order: tuple[str, ...]) -> dict[str, str] | None:
    """The arguments of a call as text, by their names; None if it has others than these."""
    found = {}
    for position, arg in enumerate(call.args):
        if arg.star or (arg.keyword is None and position >= len(order)):
            return None
        found[arg.keyword.value if arg.keyword else order[position]] = text_of(arg.value)
    return found


# Sessions, collections and variables


def _session(call: cst.Call, here: str) -> Rewritten:
    kept = [arg for arg in call.args if arg.keyword and arg.keyword.value == "graph"]
    return with_args(call.with_changes(func=cst.parse_expression(f"{here}.Session")), kept)


def _main(call: cst.Call, here: str) -> Rewritten:
    given = [arg.value for arg in call.args if not arg.keyword or arg.keyword.value == "main"]
    return cst.Call(given[0] if given else cst.Name("main"), [cst.Arg(cst.List([]))])


def _collected(call: cst.Call, here: str) -> Rewritten:
    if not call.args:
        return None
    key = dotted(call.args[0].value).rpartition("GraphKeys.")[2]
    if key == "UPDATE_OPS":
        return cst.parse_expression("[]")  # What minimizes a loss makes its updates.
    if key not in _VARIABLES:
        return None
    return _variables([_VARIABLES[key], *_arguments(call.with_changes(args=call.args[1:]))], here)


def _variables(args: list[str], here: str) -> Rewritten:
    named = [a if "=" in a else f"scope={a}" for a in filter(None, args)]
    return cst.parse_expression(f"{here}.get_default_graph().variables({', '.join(named)})")


def _variable(call: cst.Call, here: str) -> Rewritten:
    given = _by_name(call, ("name", "shape", "dtype", "initializer", "regularizer"))
    if given is None or not {"name"} <= given.keys() <= {
        *("name", "shape", "dtype", "initializer", "trainable")
    }:
        return None
    dtype = given.get("dtype", f"{here}.float32")
    initial = given.get("initializer", f"{here}.initializers.glorot_uniform()")
    if initial.startswith(f"{here}.initializers.") and not initial.endswith(")"):
        initial += "()"  # The class does for one of its objects there.
    if "shape" in given:
        if not isinstance(cst.parse_expression(initial), cst.Call | cst.Name | cst.Attribute):
            initial = f"({initial})"
        initial = f"lambda: {initial}({given['shape']}, {dtype})"
    elif "initializer" not in given:
        return None
    trainable = f", trainable={given['trainable']}" if "trainable" in given else ""
    return cst.parse_expression(f"{here}.Variable({initial}{trainable}, name={given['name']})")


def _scope(call: cst.Call, here: str) -> Rewritten:
    given = _by_name(call, ("name_or_scope", "default_name", "values"))
    if given is None or "name_or_scope" not in given:
        return None
    args = [given.pop("name_or_scope"), *filter(None, [given.pop("default_name", None)])]
    args += [f"values={values}" for values in filter(None, [given.pop("values", None)])]
    return None if given else cst.parse_expression(f"{here}.name_scope({', '.join(args)})")


def _early_scope(call: cst.Call, here: str) -> Rewritten:
    """`op_scope(values, name, default_name)`."""
    given = _by_name(call, ("values", "name", "default_name"))
    if (
        given is None
        or "values" not in given
        or not given.keys() <= {*("values", "name", "default_name")}
    ):
        return None
    args = [given.get("name", "None"), *filter(None, [given.get("default_name")])]
    return cst.parse_expression(f"{here}.name_scope({', '.join(args)}, values={given['values']})")


# Layers and cells


def _dropped(kept: cst.BaseExpression) -> str:
    """What is dropped where so much is kept."""
    is_plain = isinstance(kept, cst.Name | cst.Attribute | cst.BaseNumber)
    return f"1 - {text_of(kept)}" if is_plain else f"1 - ({text_of(kept)})"


def _dropout(call: cst.Call, here: str) -> Rewritten:
    args = []
    for position, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword else ("x", "keep_prob")[min(position, 1)]
        if name == "keep_prob":
            made = cst.parse_expression(f"f(rate={_dropped(arg.value)})")
            assert isinstance(made, cst.Call)
            arg = made.args[0]
        args.append(arg)
    return with_args(call, args)


def _dropout_cell(call: cst.Call, here: str) -> Rewritten:
    order = ("cell", "input_keep_prob", "output_keep_prob")
    renamed = {"input_keep_prob": "input_rate", "output_keep_prob": "output_rate", "seed": "seed"}
    written = []
    for position, arg in enumerate(call.args):
        if arg.star or (arg.keyword is None and position >= len(order)):
            return None
        name = arg.keyword.value if arg.keyword else order[position]
        if name == "cell":
            written.append(text_of(arg.value))
        elif name not in renamed:
            return None
        else:
            value = text_of(arg.value) if name == "seed" else _dropped(arg.value)
            written.append(f"{renamed[name]}={value}")
    return cst.parse_expression(f"{here}.nn.dropout_cell({', '.join(written)})")


class _Layer(NamedTuple):
    """A layer of TensorFlow 1's `contrib.layers`, and what it is here.

    Attributes:
        path: its name here.
        order: its first arguments there.
        renamed: its arguments there, and what they are here; "" where one is to be left out.
        defaults: what is to be said here, unless it is given.
    """

    path: str
    order: tuple[str, ...]
    renamed: Mapping[str, str]
    defaults: Mapping[str, str]


_WEIGHTS = {
    "activation_fn": "activation",
    "biases_initializer": "bias_initializer",
    "inputs": "inputs",
    "num_outputs": "units",
    "scope": "name",
    "trainable": "trainable",
    "weights_initializer": "kernel_initializer",
    "weights_regularizer": "kernel_regularizer",
}
_DENSE = _Layer(
    "layers.dense",
    ("inputs", "num_outputs", "activation_fn"),
    _WEIGHTS,
    {"activation": "{}.nn.relu"},
)
_CONVOLUTION = _Layer(
    "layers.conv2d",
    ("inputs", "num_outputs", "kernel_size", "stride", "padding"),
    _WEIGHTS
    | {
        "kernel_size": "kernel_size",
        "num_outputs": "filters",
        "padding": "padding",
        "stride": "strides",
    },
    {"activation": "{}.nn.relu", "padding": "'SAME'"},
)
_POOLING = _Layer(
    "layers.max_pooling2d",
    ("inputs", "kernel_size", "stride", "padding"),
    {
        "inputs": "inputs",
        "kernel_size": "pool_size",
        "padding": "padding",
        "scope": "name",
        "stride": "strides",
    },
    {"strides": "2"},
)
_BATCH_NORM = _Layer(
    "layers.batch_normalization",
    ("inputs", "decay", "center", "scale", "epsilon"),
    {
        "center": "center",
        "decay": "momentum",
        "epsilon": "epsilon",
        "fused": "",
        "inputs": "inputs",
        "is_training": "training",
        "scale": "scale",
        "scope": "name",
        "updates_collections": "",
    },
    {"momentum": "0.999", "scale": "False", "training": "True"},
)


def _layer(layer: _Layer, call: cst.Call, here: str) -> Rewritten:
    given = _by_name(call, layer.order)
    if given is None or "inputs" not in given or not given.keys() <= layer.renamed.keys():
        return None
    args = {layer.renamed[name]: value for name, value in given.items() if layer.renamed[name]}
    if args.get("bias_initializer") == "None":
        del args["bias_initializer"]
        args["use_bias"] = "False"
    for name, value in layer.defaults.items():
        args.setdefault(name, value.format(here))
    if args.get("activation") == "None":
        del args["activation"]
    size = [name for name in ("inputs", "units", "filters") if name in args]
    written = [args.pop(name) for name in size]
    written += [f"{name}={value}" for name, value in args.items()]
    return cst.parse_expression(f"{here}.{layer.path}({', '.join(written)})")


# Text


def _string_split(call: cst.Call, here: str) -> Rewritten:
    given = _by_name(call, ("source", "delimiter", "skip_empty", "name"))
    if given is None or ("sep" in given and "delimiter" in given):
        return None
    sep = given.pop("sep", None) or given.pop("delimiter", "' '")
    source, skip_empty = given.pop("source", None), given.pop("skip_empty", "True")
    written = cst.parse_expression(sep)
    # Each character is a separator there, and without one each byte a part.
    if source is None or given or not isinstance(written, cst.SimpleString):
        return None
    separators = written.evaluated_value
    if not separators.isascii():
        return None
    if len(separators) != 1:
        sep = repr([separators[i : i + 1] for i in range(len(separators))])
    return cst.parse_expression(f"{here}.strings.split({source}, {sep}, skip_empty={skip_empty})")


# Arguments in the order of TensorFlow's first versions


_CONCAT = ("concat_dim", "values", "name")
_SPLIT = ("split_dim", "num_split", "value", "name")
_LISTS = (cst.List, cst.ListComp)


def _axis_last(order: tuple[str, ...], call: cst.Call, here: str) -> Rewritten:
    """`concat(1, [x, y])` and `split(1, 3, x)`: a number comes first, or their names are given."""
    given = _by_name(call, order)
    if given is None or not set(order[:-1]) <= given.keys() <= set(order):
        return None
    begin, following = [arg.value for arg in call.args[:2]]
    is_named = any(arg.keyword and arg.keyword.value in order[:1] for arg in call.args)
    is_early = is_named or isinstance(begin, cst.Integer)
    if not is_early and not (isinstance(following, _LISTS) and not isinstance(begin, _LISTS)):
        return None
    args = [given[name] for name in order[-2::-1]]
    args += [f"name={name}" for name in filter(None, [given.get("name")])]
    return cst.parse_expression(f"{text_of(call.func)}({', '.join(args)})")


def _logits_first(call: cst.Call, here: str) -> Rewritten:
    """A cross entropy without the names that its arguments need since TensorFlow 1.0."""
    if len(call.args) < 2 or any(arg.keyword or arg.star for arg in call.args[:2]):
        return None
    logits, labels, *rest = call.args
    return call.with_changes(args=[_named(logits, "logits"), _named(labels, "labels"), *rest])


def _labels_last(call: cst.Call, here: str) -> Rewritten:
    """A sampled loss whose labels came behind the inputs, as their names say."""
    given = [text_of(arg.value) for arg in call.args[:4] if not arg.keyword and not arg.star]
    if len(given) < 4 or "label" in given[2] or "label" not in given[3]:
        return None
    weights, biases, inputs, labels, *rest = call.args
    second = inputs.with_changes(comma=labels.comma)
    return call.with_changes(
        args=[weights, biases, labels.with_changes(comma=inputs.comma), second, *rest]
    )


_NORMALIZED = ("t", "m", "v", "beta", "gamma", "variance_epsilon", "scale_after_normalization")


def _normalized(call: cst.Call, here: str) -> Rewritten:
    given = _by_name(call, (*_NORMALIZED, "name"))
    if given is None or not set(_NORMALIZED) <= given.keys() <= {*_NORMALIZED, "name"}:
        return None
    is_scaled = given.pop("scale_after_normalization")
    if is_scaled not in ("True", "False"):
        return None
    if is_scaled == "False":
        given["gamma"] = "None"
    args = [given[name] for name in _NORMALIZED[:-1]]
    args += [f"name={name}" for name in filter(None, [given.get("name")])]
    return cst.parse_expression(f"{here}.nn.batch_normalization({', '.join(args)})")


def _sliced(call: cst.Call, here: str) -> Rewritten:
    """`strided_slice(x, [0, i], [2, j])`, which is `x[0:2, i:j]`."""
    given = _by_name(call, ("input_", "begin", "end", "strides"))
    if given is None or not {"input_", "begin", "end"} <= given.keys() <= {
        *("input_", "begin", "end", "strides")
    }:
        return None
    bounds = [cst.parse_expression(given.get(n, "None")) for n in ("begin", "end", "strides")]
    ends = [each.elements for each in bounds if isinstance(each, cst.List)]
    sizes = {len(each) for each in ends}
    if len(ends) < 2 + ("strides" in given) or len(sizes) != 1 or 0 in sizes:
        return None
    axes = zip(*[[text_of(element.value) for element in each] for each in ends], strict=True)
    written = ", ".join(":".join(axis) for axis in axes)
    x = given["input_"]
    if not isinstance(cst.parse_expression(x), cst.Name | cst.Attribute | cst.Call | cst.Subscript):
        x = f"({x})"
    return cst.parse_expression(f"{x}[{written}]")


# Sequences


def _decoder(call: cst.Call, here: str) -> Rewritten:
    """A decoder that is given all of its inputs."""
    given = _by_name(call, ("decoder_inputs", "initial_state", "cell", "loop_function", "scope"))
    order = ("cell", "decoder_inputs", "initial_state")
    if given is None or not set(order) <= given.keys() <= {*order, "loop_function", "scope"}:
        return None
    if given.get("loop_function", "None") != "None":
        return None
    cell, inputs, state = [given[name] for name in order]
    return cst.parse_expression(f"{here}.nn.static_rnn({cell}, {inputs}, initial_state={state})")


def _loss_by_example(call: cst.Call, here: str) -> Rewritten:
    """The loss of one step, whose examples all count one."""
    order = ("logits", "targets", "weights")
    given = _by_name(call, (*order, "num_decoder_symbols"))
    if given is None or not set(order) <= given.keys() <= {*order, "num_decoder_symbols"}:
        return None
    lists = [cst.parse_expression(given[name]) for name in order]
    ones = []
    for each in lists:
        if not isinstance(each, cst.List) or len(each.elements) != 1:
            return None
        ones.append(each.elements[0].value)
    logits, targets, weights = ones
    if not isinstance(weights, cst.Call) or dotted(weights.func) != f"{here}.ones":
        return None
    return cst.parse_expression(
        f"{here}.nn.sparse_softmax_cross_entropy_with_logits("
        f"labels={text_of(targets)}, logits={text_of(logits)})"
    )


def _batched(call: cst.Call, here: str) -> Rewritten:
    renamed = {"adj_x": "adjoint_a", "adj_y": "adjoint_b"}
    return call.with_changes(
        func=cst.parse_expression(f"{here}.matmul"),
        args=[
            arg.with_changes(keyword=cst.Name(renamed[arg.keyword.value]))
            if arg.keyword and arg.keyword.value in renamed
            else arg
            for arg in call.args
        ],
    )


# Examples, which are dicts


def _only(call: cst.Call, here: str) -> Rewritten:
    """The one argument that a call has."""
    return call.args[0].value if len(call.args) == 1 else None


def _floats(call: cst.Call, here: str) -> Rewritten:
    if len(call.args) != 1:
        return None
    return cst.parse_expression(f"[float(value) for value in {text_of(call.args[0].value)}]")


CALLS: Mapping[str, Callable[[cst.Call, str], Rewritten]] = {
    "InteractiveSession": _session,
    "Session": _session,
    "app.run": _main,
    "batch_matmul": _batched,
    "concat": partial(_axis_last, _CONCAT),
    "contrib.layers.avg_pool2d": partial(
        _layer, _POOLING._replace(path="layers.average_pooling2d")
    ),
    "contrib.layers.batch_norm": partial(_layer, _BATCH_NORM),
    "contrib.layers.conv2d": partial(_layer, _CONVOLUTION),
    "contrib.layers.convolution2d": partial(_layer, _CONVOLUTION),
    "contrib.layers.fully_connected": partial(_layer, _DENSE),
    "contrib.layers.linear": partial(_layer, _DENSE._replace(defaults={})),
    "contrib.layers.max_pool2d": partial(_layer, _POOLING),
    "contrib.layers.relu": partial(_layer, _DENSE),
    "contrib.legacy_seq2seq.rnn_decoder": _decoder,
    "contrib.legacy_seq2seq.sequence_loss_by_example": _loss_by_example,
    "get_collection": _collected,
    "get_variable": _variable,
    "nn.DropoutWrapper": _dropout_cell,
    "nn.batch_norm_with_global_normalization": _normalized,
    "nn.dropout": _dropout,
    "nn.nce_loss": _labels_last,
    "nn.sampled_softmax_loss": _labels_last,
    "nn.sigmoid_cross_entropy_with_logits": _logits_first,
    "nn.softmax_cross_entropy_with_logits": _logits_first,
    "nn.sparse_softmax_cross_entropy_with_logits": _logits_first,
    "op_scope": _early_scope,
    "split": partial(_axis_last, _SPLIT),
    "strided_slice": _sliced,
    "string_split": _string_split,
    "train.BytesList": _only,
    "train.Example": _only,
    "train.Feature": _only,
    "train.Features": _only,
    "train.FloatList": _floats,
    "train.Int64List": _only,
    "trainable_variables": lambda call, here: _variables(
        ["trainable=True", *_arguments(call)], here
    ),
    "variable_op_scope": _early_scope,
    "variable_scope": _scope,
}
