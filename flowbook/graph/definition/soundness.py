"""Whether a definition makes sense: what its author hears before anything is built with it."""

from __future__ import annotations

import keyword
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from flowbook.graph.definition.keywords import REQUIRED
from flowbook.graph.model import dtypes
from flowbook.graph.model.attributes import check_choice
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError
from flowbook.graph.model.retag import Retag
from flowbook.graph.model.touch import resource_kind

if TYPE_CHECKING:
    from flowbook.graph.definition.arguments import Argument
    from flowbook.graph.definition.op_def import OpDef


# What the outputs of a summary may be.
_SUMMARIES = ("scalar", "histogram", "image", "text")

# What a call gives besides inputs and attributes.
_TAKEN = ("name", "self")

# What definitions said otherwise before.
_INSTEAD = {
    "effects": "touches=fb.Touch(fb.Access.OUTSIDE) and the like",
    "resource": "owns='variable' and the like",
}


def check_definition(op_def: OpDef[Any]) -> None:
    """Check name, signature and type variables of a definition, as far as it says them.

    Raises:
        InvalidArgumentError: if they contradict each other.
        NotFoundError: if there is no kind of resource that it says.
        InvalidTypeError: if a keyword is neither an argument of `OpDef` nor a type variable, or
            has a value of another type.
    """
    if not op_def.type.isidentifier():
        raise InvalidArgumentError(
            f"{op_def.type!r} is no name for an operation type", hint='such as "MatMul"'
        )
    arguments = (*op_def.inputs, *op_def.outputs)
    tokens = {argument.token for argument in arguments}
    for name, admitted in op_def.type_variables.items():
        _check_variable(op_def, name, admitted, tokens)
    for argument in arguments:
        _check_token(op_def, argument)
    for side in (op_def.inputs, op_def.outputs):
        names = [argument.name for argument in side]
        if len({*names}) < len(names):
            raise InvalidArgumentError(f"{op_def.type}: a name is twice in {op_def.signature!r}")
    for name in [*[argument.name for argument in op_def.inputs], *op_def.attributes]:
        _check_parameter(op_def, name)
    for argument in op_def.inputs:
        if argument.name in op_def.attributes:
            raise InvalidArgumentError(
                f"{op_def.type}: {argument.name!r} is both an input and an attribute"
            )
    _check_names("kinds", op_def.kinds or ())
    _check_names("after_name", op_def.after_name)
    if len({*op_def.after_name}) < len(op_def.after_name):
        raise InvalidArgumentError(f"{op_def.type}: a name is twice in after_name")
    for name in op_def.after_name:
        _check_has(op_def, "what has it behind its name", name)
    for name in op_def.choices:
        _check_choices(op_def, name)
    _check_inputs(op_def, "host_args", op_def.host_args)
    _check_inputs(op_def, "spreads_nonfinite", op_def.spreads_nonfinite)
    if op_def.is_identity and not (_is_one(op_def.inputs) and op_def.is_single):
        raise InvalidArgumentError(f"{op_def.type}: an identity has one input and one output")
    if op_def.is_constant:
        _check_has(op_def, "a constant", "value")
    if op_def.retag is Retag.PUSH:
        _check_has(op_def, "what enters a frame", "frame_name")
        if op_def.inputs:  # What takes nothing is there in every iteration.
            _check_has(op_def, "what enters a frame", "is_constant")
    if op_def.gives_dead and not _chooses(op_def):
        raise InvalidArgumentError(
            f"{op_def.type}: with gives_dead it has two outputs, and a bool as its last input"
        )
    if op_def.owns is not None:
        for attribute in resource_kind(op_def.owns).attributes:
            _check_has(op_def, f"what owns a resource of kind {op_def.owns!r}", attribute)
    if op_def.must_be_fed and (op_def.inputs or not op_def.is_single):
        raise InvalidArgumentError(f"{op_def.type}: what must be fed has one output and no input")
    if op_def.summary is not None:
        _check_summary(op_def, op_def.summary)
    if (op_def.computes_shapes or op_def.elements) and not op_def.is_single:
        raise InvalidArgumentError(f"{op_def.type}: what is known of shapes is one output")
    if op_def.spreads_nonfinite:
        _check_spreading(op_def)
    given = {argument.token for argument in op_def.inputs}
    for argument in op_def.outputs:
        if argument.token in op_def.type_variables and argument.token not in given:
            raise InvalidArgumentError(
                f"{op_def.type}: no input says which dtype {argument.token!r} is",
                hint="name an attribute that holds it instead",
            )


def _check_parameter(op_def: OpDef[Any], name: object) -> None:
    """See that an input or an attribute can be given by its name to what builds the operation."""
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name):
        raise InvalidArgumentError(
            f"{op_def.type}: {name!r} is no name for an input or an attribute",
            hint="it is a Python identifier, and no keyword",
        )
    if name in _TAKEN:
        raise InvalidArgumentError(
            f"{op_def.type}: no input and no attribute is called {name!r}: that has a meaning "
            "wherever an operation is built"
        )


def _check_names(what: str, names: object) -> None:
    if not isinstance(names, tuple) or not all(isinstance(name, str) for name in names):
        raise InvalidTypeError(f"{what} is a tuple of names, not {names!r:.80}")


def _check_has(op_def: OpDef[Any], what: str, attribute: str) -> None:
    if attribute not in op_def.attributes:
        raise InvalidArgumentError(f"{op_def.type}: {what} has the attribute {attribute!r}")


def _check_choices(op_def: OpDef[Any], name: str) -> None:
    _check_has(op_def, "what says its choices", name)
    admitted = op_def.choices[name]
    if not isinstance(admitted, tuple) or not all(isinstance(c, str | None) for c in admitted):
        raise InvalidTypeError(
            f"the choices of {name!r} are a tuple of strings, not {admitted!r:.80}"
        )
    if not admitted:
        raise InvalidArgumentError(
            f"{op_def.type}: there are no choices for {name!r}, so that nothing could be given",
            hint="leave it out of choices if it may be any string",
        )
    default = op_def.attributes[name]
    if default is not REQUIRED:
        check_choice(name, default, admitted)


def _chooses(op_def: OpDef[Any]) -> bool:
    """Whether its last input, a bool, can say which of two outputs there is."""
    is_told = bool(op_def.inputs) and op_def.inputs[-1].token == dtypes.bool.name
    return is_told and len(op_def.outputs) == 2 and not any(a.is_list for a in op_def.outputs)


def _is_one(arguments: Sequence[Argument]) -> bool:
    return len(arguments) == 1 and not arguments[0].is_list


def _check_inputs(op_def: OpDef[Any], what: str, names: tuple[str, ...]) -> None:
    _check_names(what, names)
    for name in names:
        if name not in [argument.name for argument in op_def.inputs]:
            raise InvalidArgumentError(
                f"{op_def.type}: {name!r} in {what} is no input of {op_def.signature!r}"
            )


def _check_summary(op_def: OpDef[Any], summary: str) -> None:
    if summary not in _SUMMARIES:
        known = ", ".join(map(repr, _SUMMARIES))
        raise InvalidArgumentError(f"{op_def.type}: a summary is one of {known}, not {summary!r}")
    _check_has(op_def, "a summary", "tag")
    if summary == "image":
        _check_has(op_def, "a summary of images", "max_outputs")


def _check_spreading(op_def: OpDef[Any]) -> None:
    if not op_def.is_single:
        raise InvalidArgumentError(f"{op_def.type}: with spreads_nonfinite it has one output")
    if op_def.keeps_finite:
        # The guard would take the input to be finite for the output's sake, and the other way
        # round, and look at neither.
        raise InvalidArgumentError(
            f"{op_def.type} has both spreads_nonfinite and keeps_finite",
            hint="spreads_nonfinite is enough: what the operation gives is looked at",
        )


def _check_variable(op_def: OpDef[Any], name: str, admitted: object, tokens: set[str]) -> None:
    if not isinstance(admitted, list | tuple) or not all(isinstance(t, DType) for t in admitted):
        if name not in tokens:
            raise InvalidTypeError(
                f"{op_def.type}: OpDef has no argument {name!r}",
                hint=_INSTEAD.get(name, "see help(fb.OpDef)"),
            )
        raise InvalidTypeError(
            f"{op_def.type}: {name!r} is a tuple of dtypes, not {admitted!r:.80}",
            hint="such as fb.FLOATS, or (fb.float32,)",
        )
    if name not in tokens:
        raise InvalidArgumentError(
            f"{op_def.type}: the signature {op_def.signature!r} has no type variable {name!r}"
        )


def _check_token(op_def: OpDef[Any], argument: Argument) -> None:
    known = (*op_def.type_variables, *dtypes.BY_NAME, *op_def.attributes)
    if argument.token not in known and not argument.is_mixed:
        raise InvalidArgumentError(
            f"{op_def.type}: {argument.token!r} in its signature is neither a type variable, "
            "a dtype nor an attribute",
            hint=f"give OpDef the dtypes that it admits, such as {argument.token}=fb.FLOATS",
        )
