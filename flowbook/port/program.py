"""A program's text for TensorFlow 1 made one for Flowbook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from flowbook.port import names
from flowbook.port.flags import is_flag, with_argparse
from flowbook.port.report import Left, Ported
from flowbook.port.templates import Shared, shared_functions

_MODULES = ("tensorflow", "tensorflow.compat.v1")
_CELLS = {"BasicLSTMCell": "lstm", "GRUCell": "gru", "LSTMCell": "lstm"}
_WRITES = ("assign", "assign_add", "assign_sub")
_VARIABLES = {
    "GLOBAL_VARIABLES": "",
    "TRAINABLE_VARIABLES": "trainable=True",
    "VARIABLES": "",
}
# What there is nothing to say of here.
_NEEDLESS = (
    "compat.v1.disable_eager_execution",
    "compat.v1.disable_v2_behavior",
    "compat.v1.logging.set_verbosity",
    "disable_eager_execution",
    "disable_v2_behavior",
    "logging.set_verbosity",
)


def ported(text: str) -> Ported:
    """Port a program.

    Raises:
        libcst.ParserSyntaxError: if it is no Python.
    """
    module = cst.parse_module(text)
    look = _Look()
    module.visit(look)
    if not look.aliases:
        return Ported(text, [])
    wrapper = MetadataWrapper(module)
    porter = _Porter(look, shared_functions(wrapper.module, look.aliases))
    changed = wrapper.visit(porter)
    code = with_argparse(changed, porter.here).code
    if "DEFINE_" in code:
        lines = enumerate(text.splitlines(), 1)
        porter.left += [
            Left(line, "flags: Python's argparse") for line, said in lines if "DEFINE_" in said
        ]
    return Ported(code, sorted(set(porter.left)))


def dotted(node: cst.BaseExpression | None) -> str:
    """The name that an expression is, such as "tf.nn.relu"; empty if it is none."""
    if isinstance(node, cst.Name):
        return node.value
    if isinstance(node, cst.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr.value}" if before else ""
    return ""


class _Look(cst.CSTVisitor):
    """What a program calls TensorFlow, and its sessions.

    Attributes:
        aliases: the names of the module.
        sessions: those of sessions, with the functions that make them; "" is the module.
        is_taken: whether something is called "fb" already.
    """

    def __init__(self) -> None:
        self.aliases: set[str] = set()
        self.sessions: set[tuple[str, str]] = set()
        self._functions = [""]
        self.is_taken = False
        self._cells: set[str] = set()
        self._uses: Counter[str] = Counter()

    @property
    def cells(self) -> set[str]:
        """The names of recurrent cells that one loop uses: those are layers."""
        return {name for name in self._cells if self._uses[name] == 2}

    def visit_Name(self, node: cst.Name) -> None:
        self.is_taken = self.is_taken or node.value == "fb"
        self._uses[node.value] += 1

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        path = dotted(node.name)
        if path in _MODULES and (node.asname or path == "tensorflow"):
            self.aliases.add(dotted(node.asname.name) if node.asname else path)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        if dotted(node.module) == "tensorflow.compat" and not isinstance(
            node.names, cst.ImportStar
        ):
            for each in node.names:
                if dotted(each.name) == "v1":
                    self.aliases.add(dotted(each.asname.name) if each.asname else "v1")

    def visit_Assign(self, node: cst.Assign) -> None:
        if _is_session(node.value):
            for target in node.targets:
                self._note_session(target.target)
        if _cell(node.value) and len(node.targets) == 1:
            self._cells.add(dotted(node.targets[0].target))

    def visit_WithItem(self, node: cst.WithItem) -> None:
        if _is_session(node.item) and node.asname:
            self._note_session(node.asname.name)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._functions.append(node.name.value)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._functions.pop()

    def _note_session(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self.sessions.add((target.value, self._functions[-1]))


def _cell(node: cst.BaseExpression) -> str:
    """The layer that a recurrent cell with its units alone makes; empty if it is none."""
    if not isinstance(node, cst.Call) or len(node.args) != 1 or node.args[0].keyword:
        return ""
    return _CELLS.get(dotted(node.func).rpartition(".")[2], "")


def _is_session(node: cst.BaseExpression) -> bool:
    last = dotted(node.func).rpartition(".")[2] if isinstance(node, cst.Call) else ""
    return last in ("Session", "InteractiveSession")


class _Porter(cst.CSTTransformer):
    """Rewrites what it is sure of.

    Attributes:
        here: what the program calls Flowbook.
        left: what it is not sure of.
    """

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, look: _Look, shared: dict[str, Shared]) -> None:
        super().__init__()
        self._aliases = look.aliases
        names_ = {name for name, _ in look.sessions}
        self._session = names_.pop() if len(names_) == 1 else ""
        self._has_session = {function for _, function in look.sessions}
        self._functions = [""]
        self._shared = shared
        self._cells = look.cells
        # How much was left to a person before a call was looked into.
        self._told_before: dict[cst.Call, int] = {}
        self.here = "flowbook" if look.is_taken else "fb"
        self.left: list[Left] = []

    def _line(self, node: cst.CSTNode) -> int:
        return self.get_metadata(PositionProvider, node).start.line

    def _leave_to_a_person(self, node: cst.CSTNode, text: str) -> None:
        self.left.append(Left(self._line(node), text))

    def _path(self, node: cst.BaseExpression) -> str:
        """What follows TensorFlow's name in a name of its; empty if it is none."""
        first, _, path = dotted(node).partition(".")
        return path if first in self._aliases else ""

    # Imports

    def leave_Import(self, original_node: cst.Import, updated_node: cst.Import) -> cst.Import:
        """`import tensorflow as tf`, among others or alone."""
        found = []
        for each in updated_node.names:
            path = dotted(each.name)
            if path in _MODULES:
                asname = cst.AsName(cst.Name("fb")) if self.here == "fb" else None
                each = each.with_changes(name=cst.Name("flowbook"), asname=asname)
            elif path.partition(".")[0] == "tensorflow":
                self._leave_to_a_person(original_node, f"{path}: there is no such module")
            found.append(each)
        return updated_node.with_changes(names=found)

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.BaseSmallStatement:
        """`from tensorflow.compat import v1 as tf`."""
        path = dotted(original_node.module)
        if path.partition(".")[0] != "tensorflow":
            return updated_node
        names_ = original_node.names
        if path == "tensorflow.compat" and not isinstance(names_, cst.ImportStar):
            asname = " as fb" if self.here == "fb" else ""
            return cst.parse_statement(f"import flowbook{asname}").body[0]  # type: ignore[index]
        self._leave_to_a_person(original_node, f"{path}: there is no such module")
        return updated_node

    # Names

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        """A whole name of TensorFlow's is looked up at once."""
        return not self._path(node)

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        """A name of TensorFlow's, or an attribute of what it gave."""
        path = self._path(original_node)
        if path:
            found = names.spelling(path)
            if found.path is None and path not in _NEEDLESS and not is_flag(path):
                self._leave_to_a_person(original_node, _told(path, found.instead))
            return self._name(found.path or path)
        value = updated_node.value
        if updated_node.attr.value == "value" and _is_dimension(value):
            return value
        return updated_node

    def _name(self, path: str) -> cst.BaseExpression:
        return cst.parse_expression(f"{self.here}.{path}")

    # Calls

    def visit_Call(self, node: cst.Call) -> None:
        """What is left inside may go with the call."""
        self._told_before[node] = len(self.left)

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        """A call of TensorFlow's, or of a method of what it gave."""
        path = self._path(original_node.func).removeprefix("compat.v1.")
        if path:
            return self._called(path, original_node, updated_node)
        shared = self._shared.get(dotted(original_node.func))
        if shared is not None:
            return shared.called(updated_node)
        if isinstance(updated_node.func, cst.Attribute):
            return self._method(updated_node.func, original_node, updated_node)
        return updated_node

    def _called(self, path: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        special = {
            "InteractiveSession": self._made_session,
            "Session": self._made_session,
            "app.run": self._main,
            "contrib.layers.fully_connected": self._fully_connected,
            "get_collection": self._collected,
            "get_variable": self._variable,
            "nn.dropout": self._dropped_out,
            "nn.dynamic_rnn": self._recurrent,
            "trainable_variables": lambda _, call: self._variables(
                ["trainable=True", *_code(call)]
            ),
            "variable_scope": self._scope,
        }.get(path)
        rewritten = special(original, updated) if special else None
        if rewritten is not None:
            inside = _text(rewritten)
            gone = [
                e
                for e in self.left[self._told_before[original] :]
                if f".{e.text.partition(':')[0]}" not in inside
            ]
            self.left = [e for e in self.left if e not in gone]
            return rewritten
        found = names.spelling(path)
        if found.path is None:
            written = self._written(found.instead, updated)
            if written is not None:
                self.left.remove(Left(self._line(original), _told(path, found.instead)))
                return written
            return updated
        args = []
        for arg in updated.args:
            if arg.keyword is not None:
                spelt = names.keyword(found.path, arg.keyword.value)
                if spelt.path is None:
                    told = f"{arg.keyword.value}= of {found.path}: {spelt.instead}"
                    self._leave_to_a_person(original, told)
                elif not spelt.path:
                    continue
                else:
                    arg = arg.with_changes(keyword=cst.Name(spelt.path))
            args.append(arg)
        call = _with(updated, args)
        if path == "while_loop" and _is_of_one(args):
            # In TensorFlow 1 a loop of a list of one variable gives it without the list.
            return cst.parse_expression(f"{_text(call)}[0]")
        return call

    def _written(self, instead: str, call: cst.Call) -> cst.BaseExpression | None:
        """The expression that the table has in place of a call, if that is all it says."""
        if not instead.startswith("fb."):
            return None
        try:
            expression = cst.parse_expression(instead)
        except cst.ParserSyntaxError:
            return None
        if not isinstance(expression, cst.Call):
            return None
        text = self.here + instead[2:] if self.here != "fb" else instead
        is_of_x = any(dotted(arg.value) == "x" for arg in expression.args)
        rest = [a.value for a in expression.args if dotted(a.value) != "x"]
        if any(isinstance(value, cst.Ellipsis) for value in rest):
            return None
        if not is_of_x:
            return cst.parse_expression(text) if not call.args and "()" in instead else None
        if len(call.args) != 1 or call.args[0].keyword is not None:
            return None
        args = [
            a.with_changes(value=call.args[0].value) if dotted(a.value) == "x" else a
            for a in expression.args
        ]
        return expression.with_changes(args=args)

    def _made_session(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        kept = [arg for arg in updated.args if arg.keyword and arg.keyword.value == "graph"]
        return _with(updated.with_changes(func=self._name("Session")), kept)

    def _main(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        given = [arg.value for arg in updated.args if arg.keyword in (None, "main")]
        return cst.Call(given[0] if given else cst.Name("main"), [cst.Arg(cst.List([]))])

    def _collected(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if not original.args:
            return None
        key = dotted(original.args[0].value).rpartition("GraphKeys.")[2]
        if key == "UPDATE_OPS":
            return cst.parse_expression("[]")  # What minimizes a loss makes its updates.
        if key not in _VARIABLES:
            return None
        return self._variables(
            [_VARIABLES[key], *_code(updated.with_changes(args=updated.args[1:]))]
        )

    def _variables(self, args: list[str]) -> cst.BaseExpression:
        named = [a if "=" in a else f"scope={a}" for a in filter(None, args)]
        of = f"{self.here}.get_default_graph().variables({', '.join(named)})"
        return cst.parse_expression(of)

    def _variable(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        given = _by_name(updated, ("name", "shape", "dtype", "initializer", "regularizer"))
        if given is None or not {"name"} <= given.keys() <= {
            *("name", "shape", "dtype", "initializer", "trainable")
        }:
            return None
        dtype = given.get("dtype", f"{self.here}.float32")
        initial = given.get("initializer", f"{self.here}.initializers.glorot_uniform()")
        if "shape" in given:
            if not isinstance(cst.parse_expression(initial), cst.Call | cst.Name | cst.Attribute):
                initial = f"({initial})"
            initial = f"lambda: {initial}({given['shape']}, {dtype})"
        elif "initializer" not in given:
            return None
        trainable = f", trainable={given['trainable']}" if "trainable" in given else ""
        call = f"{self.here}.Variable({initial}{trainable}, name={given['name']})"
        return cst.parse_expression(call)

    def _dropped_out(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        args = []
        for position, arg in enumerate(updated.args):
            name = arg.keyword.value if arg.keyword else ("x", "keep_prob")[min(position, 1)]
            if name == "keep_prob":
                kept = cst.parse_expression(f"1 - ({_text(arg.value)})")
                if isinstance(arg.value, cst.Name | cst.Attribute | cst.BaseNumber):
                    kept = cst.parse_expression(f"1 - {_text(arg.value)}")
                arg = cst.parse_expression(f"f(rate={_text(kept)})").args[0]  # type: ignore[attr-defined]
            args.append(arg)
        return _with(updated, args)

    def _fully_connected(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """A dense layer, which has no activation here unless one is given."""
        given = _by_name(updated, ("inputs", "num_outputs", "activation_fn"))
        if given is None or not {"inputs", "num_outputs"} <= given.keys() <= {
            *("inputs", "num_outputs", "activation_fn")
        }:
            return None
        activation = given.get("activation_fn", f"{self.here}.nn.relu")
        dense = f"{self.here}.layers.dense({given['inputs']}, {given['num_outputs']}"
        return cst.parse_expression(f"{dense}, activation={activation})")

    def _recurrent(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        """The loop of a cell that is used once, which is a layer here."""
        cell, *rest = updated.args
        names_ = {arg.keyword.value if arg.keyword else "inputs" for arg in rest}
        if dotted(cell.value) not in self._cells or not {"inputs"} <= names_ <= {
            *("inputs", "dtype", "sequence_length")
        }:
            return None
        kept = [arg for arg in rest if not arg.keyword or arg.keyword.value != "dtype"]
        return _with(updated.with_changes(func=cell.value), kept)

    def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:
        """A cell that one loop uses is a layer."""
        layer = _cell(original_node.value)
        if not layer or dotted(original_node.targets[0].target) not in self._cells:
            return updated_node
        line = self._line(original_node)
        self.left = [e for e in self.left if e.line != line]
        assert isinstance(updated_node.value, cst.Call)
        units = _text(updated_node.value.args[0].value)
        made = f"lambda inputs, **more: {self.here}.layers.{layer}(inputs, {units}, **more)"
        return updated_node.with_changes(value=cst.parse_expression(made))

    def _scope(self, original: cst.Call, updated: cst.Call) -> cst.BaseExpression | None:
        if len(original.args) != 1 or original.args[0].keyword is not None:
            return None
        return updated.with_changes(func=self._name("name_scope"))

    def _method(
        self, func: cst.Attribute, original: cst.Call, updated: cst.Call
    ) -> cst.BaseExpression:
        method, value = func.attr.value, func.value
        feeds: Sequence[cst.Arg] = [
            a for a in updated.args if a.keyword and a.keyword.value == "feed_dict"
        ]
        is_only_fed = len(feeds) == len(updated.args)
        if method == "eval" and len(updated.args) == 1:
            is_only_fed, feeds = True, updated.args
        if method == "get_shape" and not updated.args:
            return func.with_changes(attr=cst.Name("shape"))
        if method in _WRITES and len(updated.args) == 1 and not updated.args[0].keyword:
            return updated.with_changes(
                func=self._name(method), args=[_first(value), *updated.args]
            )
        if method == "read_value" and not updated.args:
            return func.with_changes(attr=cst.Name("value"))
        if method == "initialized_value" and not updated.args:
            return func.with_changes(attr=cst.Name("value"))
        if method == "eval" or (method == "run" and is_only_fed):
            is_there = self._has_session & {"", self._functions[-1]}
            if not self._session or not is_only_fed or not is_there:
                self._leave_to_a_person(original, f"{method}: sess.run(...), of the session there")
                return updated
            updated = updated.with_changes(
                func=cst.parse_expression(f"{self._session}.run"),
                args=[_first(value, bool(feeds)), *updated.args],
            )
        if method in ("run", "eval", "partial_run"):
            return updated.with_changes(
                args=[
                    a.with_changes(keyword=cst.Name("feeds")) if a.keyword and a in feeds else a
                    for a in updated.args
                ]
            )
        return updated

    # Statements

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.BaseSmallStatement:
        """What there is nothing to say of becomes `pass`, which keeps its comment."""
        call = original_node.value
        if isinstance(call, cst.Call) and self._path(call.func) in _NEEDLESS:
            return cst.Pass()
        return updated_node

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """What follows is in it."""
        self._functions.append(node.name.value)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """A function whose variables are shared by their scope is a template."""
        self._functions.pop()
        shared = self._shared.get(original_node.name.value)
        if shared is None or shared.function is not original_node:
            return updated_node
        line = self._line(shared.scope)
        self.left = [e for e in self.left if e.line != line]
        return shared.defined(updated_node, self.here)


def _told(path: str, instead: str) -> str:
    return f"{path}: {instead}" if instead else f"{path}: there is no such name"


def _is_of_one(args: Sequence[cst.Arg]) -> bool:
    """Whether a loop's variables are given as a list of one."""
    loop_vars = args[2].value if len(args) > 2 else None
    return isinstance(loop_vars, cst.List) and len(loop_vars.elements) == 1


def _is_dimension(value: cst.BaseExpression) -> bool:
    """Whether it is an element of a shape."""
    return (
        isinstance(value, cst.Subscript)
        and isinstance(value.value, cst.Attribute)
        and value.value.attr.value == "shape"
    )


def _first(value: cst.BaseExpression, is_followed: bool = True) -> cst.Arg:
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    return cst.Arg(value, comma=comma if is_followed else cst.MaybeSentinel.DEFAULT)


def _with(call: cst.Call, args: list[cst.Arg]) -> cst.Call:
    """A call with some of its arguments; the last of others than its own has no comma."""
    if args and len(args) < len(call.args):
        args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return call.with_changes(args=args)


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def _code(call: cst.Call) -> list[str]:
    """The arguments of a call as text."""
    bare = [arg.with_changes(comma=cst.MaybeSentinel.DEFAULT) for arg in call.args]
    return [_text(arg).replace(" = ", "=") for arg in bare]


def _by_name(call: cst.Call, order: tuple[str, ...]) -> dict[str, str] | None:
    """The arguments of a call as text, by their names; None if it has others than these."""
    found = {}
    for position, arg in enumerate(call.args):
        if arg.star or (arg.keyword is None and position >= len(order)):
            return None
        found[arg.keyword.value if arg.keyword else order[position]] = _text(arg.value)
    return found
