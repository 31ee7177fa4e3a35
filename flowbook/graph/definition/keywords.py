"""What functions say of arguments that do not fit, as those that are called otherwise elsewhere.

Keywords of TensorFlow 1 and NumPy may be spelt differently here, or nothing needs them.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from flowbook.graph.model.errors import InvalidTypeError
from flowbook.graph.model.origin import site as sites

Function = TypeVar("Function", bound=Callable[..., Any])

# What a function may call it instead; the first that it takes is meant.
RENAMED = {
    "batch_dim": ("batch_axis",),
    "box_indices": ("box_ind",),
    "bytes": ("input_bytes",),
    "concat_dim": ("axis",),
    "container_name": ("name",),
    "default_name": ("name",),
    "delimiter": ("sep",),
    "device_name_or_function": ("name",),
    "dilation_rate": ("dilations",),
    "dim": ("axis",),
    "dimension": ("axis",),
    "expand_nonconcat_dim": ("expand_nonconcat_dims",),
    "feed_dict": ("feeds",),
    "filter": ("filters",),
    "fn1": ("true_fn",),
    "fn2": ("false_fn",),
    "input_tensor": ("input",),
    "keep_dims": ("keepdims",),
    "keepdim": ("keepdims",),
    "logits": ("inputs",),
    "lr": ("learning_rate",),
    "max_images": ("max_outputs",),
    "num_split": ("num_or_size_splits",),
    "num_units": ("units",),
    "op": ("operation",),
    "rate": ("dilations",),
    "rates": ("dilations",),
    "reduction_axes": ("axis",),
    "reduction_indices": ("axis", "axes"),
    "scope": ("name",),
    "seq_dim": ("seq_axis",),
    "sizes": ("ksizes",),
    "source": ("input",),
    "split_dim": ("axis",),
    "squeeze_dims": ("axis",),
    "stride": ("strides",),
    "string_tensor": ("input",),
    "tag": ("name",),
    "tags": ("name",),
    "targets": ("labels",),
    "thresh": ("threshold",),
    "value": ("input",),
    "var_list": ("variables",),
    "variable": ("ref",),
}

# What to do instead of giving it.
_CONSTRAINT = "give a variable that has one, such as kernel=fb.Variable(..., constraint=f)"
_PENALTY = "add the penalty to the loss"
_SHARED = "give the variables to share by their names, such as kernel= and bias="

GONE = {
    "a_is_sparse": "fb.sparse.sparse_dense_matmul multiplies sparse tensors",
    "activity_regularizer": _PENALTY,
    "aggregation_method": "leave it out: partial gradients are added up in one way",
    "adjustment": "fb.nn.batch_normalization takes any scale and offset",
    "b_is_sparse": "fb.sparse.sparse_dense_matmul multiplies sparse tensors",
    "beta_constraint": _CONSTRAINT,
    "beta_regularizer": _PENALTY,
    "bias_constraint": _CONSTRAINT,
    "collections": "leave it out: graph.variables() and graph.summaries() list what there is",
    "colocate_gradients_with_ops": "leave it out: gradients are placed as what they are of",
    "config": "fb.Session takes itself what there is to configure",
    "data_format": "channels come last here; for others fb.transpose(x, [0, 2, 3, 1])",
    "depthwise_constraint": "give depthwise_kernel=fb.Variable(..., constraint=f)",
    "dct_method": "leave it out: JPEG is decoded in one way",
    "family": "give the summary a name in a scope, such as family/name",
    "fused": "leave it out: one operation normalises always",
    "gamma_constraint": _CONSTRAINT,
    "gamma_regularizer": _PENALTY,
    "gate_gradients": "leave it out: a gradient waits for what it is computed from only",
    "kernel_constraint": _CONSTRAINT,
    "keep_prob": "give rate=1 - keep_prob, the probability to drop",
    "loss_collection": "leave it out: a loss is what the function returns",
    "metrics_collections": "leave it out: a metric is what the function returns",
    "moving_mean_initializer": "give moving_mean=, a variable",
    "moving_variance_initializer": "give moving_variance=, a variable",
    "optimize": "leave it out: shapes that are known are used always",
    "options": "timeout= gives a run up after so many seconds",
    "pointwise_constraint": "give it as kernel_constraint",
    "preferred_dtype": "give dtype, or leave it out",
    "requires_grad": "leave it out: fb.gradients takes any tensor, and optimizers train variables",
    "result_type": "leave it out: the parts are a sparse tensor",
    "reuse": _SHARED,
    "shift": "leave it out: moments are exact far from 0",
    "state_is_tuple": "leave it out: the state of several parts is a tuple always",
    "summation_method": "leave it out: areas are those of trapezoids",
    "target": "leave it out: a session runs in this process",
    "updates_collections": "leave it out: run the metric's update with each batch",
    "use_cudnn_on_gpu": "leave it out: a device has the kernels that are registered for it",
    "use_locking": "leave it out: writes to one variable wait for each other always",
    "use_resource": "leave it out: variables are resources always",
    "validate_indices": "leave it out: indices are checked always",
    "validate_shape": "fb.Variable(..., validate_shape=False) makes one of any shape",
    "values": "leave it out: what is built joins the graph of its inputs",
    "verify_shape": "give an array of that shape",
}


class _Required:
    """The default of an attribute that has none."""

    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


def no_such_keyword(function: str, keyword: str, taken: Sequence[str]) -> InvalidTypeError:
    """The error for a keyword that a function does not take.

    Args:
        function: its name.
        keyword: what was given.
        taken: what it takes.
    """
    message = f"there is no argument {keyword!r}; it takes {', '.join(taken)}"
    return _refused(function, message, hint_for(keyword, taken))


def hint_for(keyword: str, taken: Sequence[str]) -> str | None:
    """What to write for a keyword that a function does not take, if that is known.

    Args:
        keyword: what was given.
        taken: what it takes.
    """
    renamed = [new for new in RENAMED.get(keyword, ()) if new in taken]
    if renamed:
        return f"it is called {renamed[0]}"
    if keyword in GONE:
        return GONE[keyword]
    close = difflib.get_close_matches(keyword, taken, 1)
    return f"did you mean {close[0]}?" if close else None


def misfit(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> InvalidTypeError | None:
    """The error for arguments that a function cannot be called with; None if it can.

    Args:
        function: a function, a method or an `__init__` with the object first, or an operation type.
        args: what is given in order.
        kwargs: what is given by name.
    """
    parameters = dict(inspect.signature(function).parameters)
    if next(iter(parameters), "") in ("self", "cls"):
        del parameters[next(iter(parameters))]
        args = args[1:]
    name = getattr(function, "__qualname__", function.__name__).removesuffix(".__init__")
    kinds = [p.kind for p in parameters.values()]
    unknown = [keyword for keyword in kwargs if keyword not in parameters]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        return no_such_keyword(name, unknown[0], list(parameters))
    in_order = [n for n, p in parameters.items() if p.kind in _IN_ORDER]
    if len(args) > len(in_order) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        by_name = [n for n in parameters if n not in in_order]
        if len(args) <= len(parameters) and by_name:
            message = f"it takes {', '.join(by_name)} by name"
            return _refused(name, message, f"write for example {name}(..., {by_name[0]}=value)")
        return _refused(name, f"it takes {', '.join(parameters)}; {len(args)} given")
    given = in_order[: len(args)]
    twice = [n for n in given if n in kwargs]
    if twice:
        return _refused(name, f"it is given {twice[0]!r} twice")
    needed = [n for n, p in parameters.items() if _is_needed(p)]
    missing = [n for n in needed if n not in given and n not in kwargs]
    if missing:
        message = f"it needs {' and '.join(map(repr, missing))}"
        return _refused(name, message, f"write {name}({', '.join(needed)})")
    return None


def misnamed(
    function: Callable[..., Any], name: object, meant: str | None
) -> InvalidTypeError | None:
    """The error for what a function is given where a name stands; None if it is one.

    Args:
        function: the function.
        name: what it is given.
        meant: the argument that this may be meant for, having stood in the place of the name.
    """
    if isinstance(name, str | None) and meant is None:
        return None
    taken = ", ".join(inspect.signature(function).parameters)
    if meant is None:
        return _refused(
            function.__name__, f"it takes {taken}; a name is a string, not {name!r:.80}"
        )
    message = f"it takes {taken}; {name!r} stands in the place of the name"
    return _refused(function.__name__, message, f"write {meant}={name!r}, or name={name!r}")


# The parameters of a method that catch what it does not take.
_CATCHING = ("misplaced", "misspelt")


def catches_misfits(method: Function) -> Function:
    """The same method, whose signature is without what only catches arguments that do not fit.

    For what is called too often to be wrapped: it asks `misfit` itself. It takes whatever it is
    given, by `*misplaced` and `**misspelt`, and an argument that it needs is REQUIRED by default.
    """
    signature = inspect.signature(method)
    taken = [
        p.replace(default=p.empty) if p.default is REQUIRED else p
        for p in signature.parameters.values()
        if p.name not in _CATCHING
    ]
    method.__signature__ = signature.replace(parameters=taken)  # type: ignore[attr-defined]
    return method


class signature_of_init(property):
    """As a class's `__signature__`: what `__init__` takes, whatever else `inspect` would ask.

    As a decorator it is one of instances besides, for those that are called.
    """

    def __get__(self, instance: Any, owner: Any = None, /) -> Any:
        """The class's, as `__init__` has it now; or the instance's."""
        if instance is None:
            return inspect.signature(partial(owner.__init__, None))
        return super().__get__(instance, owner)


_IN_ORDER = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def _is_needed(parameter: inspect.Parameter) -> bool:
    has_none = parameter.default is parameter.empty or parameter.default is REQUIRED
    return has_none and parameter.kind not in _MANY


def _refused(function: str, message: str, hint: str | None = None) -> InvalidTypeError:
    error = InvalidTypeError(message, hint=hint)
    error.at(function, sites.capture())
    return error
