"""A program's text for TensorFlow 1 made one for Flowbook."""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst
import libcst.matchers as m
from libcst.metadata import MetadataWrapper, PositionProvider

from flowbook._renamed import INSTEAD
from flowbook.port import names
from flowbook.port.calls import CALLS, Rewritten, dotted, first, text_of, with_args, with_order
from flowbook.port.flags import is_flag, with_argparse, with_import
from flowbook.port.look import MODULES, Look, imported, makes_variable
from flowbook.port.report import Left, Ported
from flowbook.port.supervisors import Supervised, supervised
from flowbook.port.templates import Shared, shared_functions

_WRITES = ("assign", "assign_add", "assign_sub")
# Keywords that mean nothing here, if this is what they are given.
_ALWAYS = {"state_is_tuple": "True"}
_PURE = ("enumerate", "len", "range", "reversed", "zip")
_SHARED = f"get_variable_scope: {INSTEAD['get_variable_scope']}"
# What is told to a writer of summaries, which here sees to it itself.
_WRITERS = ("add_graph", "add_summary", "flush")
_MERGES = ("merge_all_summaries", "merge_summary", "summary.merge", "summary.merge_all")
_LOGGED = ("debug", "error", "fatal", "info", "warn", "warning")
# What flags have, and what argparse gives has not.
_OF_FLAGS = ("__flags", "_parse_flags", "flag_values_dict")
# What there is nothing to say of here.
_NEEDLESS = (
    "disable_eager_execution",
    "disable_v2_behavior",
    "logging.set_verbosity",
)


_PYTHON_2 = re.compile(r"^\s*(?:print\s+[^\s(=]|exec\s+[\"']|except\s+[\w.]+\s*,)")


def parsed(text: str) -> cst.Module:
    """A program's syntax.

    Raises:
        ValueError: with the line, if it is no Python of today.
    """
    try:
        return cst.parse_module(text)
    except cst.ParserSyntaxError as error:
        lines = text.splitlines()
        early = [i for i, line in enumerate(lines, 1) if _PYTHON_2.match(line)]
        if early:
            raise ValueError(
                f"line {early[0]} is Python 2: {lines[early[0] - 1].strip()!r:.80}; make it Python "
                "3 first, by 2to3 for one"
            ) from None
        raise ValueError(f"line {error.raw_line}: {error.message}") from None


def ported(text: str) -> Ported:
    """Port a program.

    Raises:
        ValueError: with the line, if it is no Python of today.
    """
    module = parsed(text)
    look = Look()
    module.visit(look)
    if not look.aliases and not look.is_imported:
        return Ported(text, [])
    wrapper = MetadataWrapper(module)
    porter = _Porter(
        look,
        shared_functions(wrapper.module, look.aliases),
        supervised(wrapper.module, look.aliases),
    )
    changed = wrapper.visit(porter)
    if porter.is_logging:
        changed = with_import(changed, "logging")
    code = with_argparse(changed, porter.here).code
    of_flags = re.compile(r"\w*DEFINE_.*|(?<=[.])flags\b.*")
    there = set(of_flags.findall(code))
    porter.left += [
        Left(line, "flags: Python's argparse")
        for line, said in enumerate(text.splitlines(), 1)
        if there.intersection(of_flags.findall(said))
    ]
    return Ported(code, sorted(set(porter.left)))


class _Porter(cst.CSTTransformer):
    """Rewrites what it is sure of.

    Attributes:
        here: what the program calls Flowbook.
        left: what it is not sure of.
    """

    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(
        self, look: Look, shared: dict[str, Shared], supervisor: Supervised | None
    ) -> None:
        super().__init__()
        self._aliases = look.aliases
        names_ = {name for name, _ in look.sessions}
        self._session = names_.pop() if len(names_) == 1 else ""
        self._has_session = {function for _, function in look.sessions}
        self._look = look
        self._supervised = supervisor
        self._needless_ifs: set[cst.CSTNode] = set()
        self._functions = [""]
        self._shared = shared
        self._configurations = look.configurations
        self._has_examples = look.has_examples
        self._writers = look.writers
        # The functions in which a session has been made so far.
        self._begun: set[str] = set()
        self.is_logging = False
        self._assigned = look.assigned
        # How much was left to a person before a call was looked into.
        self._told_before: dict[cst.Call, int] = {}
        self.here = "flowbook" if look.is_taken else "fb"
        self.left: list[Left] = []

    def _line(self, node: cst.CSTNode) -> int:
        return self.get_metadata(PositionProvider, node).start.line

    def _last_line(self, node: cst.CSTNode) -> int:
        return self.get_metadata(PositionProvider, node).end.line

    def _leave_to_a_person(self, node: cst.CSTNode, text: str) -> None:
        self.left.append(Left(self._line(node), text))

    def _path(self, node: cst.BaseExpression) -> str:
        """What follows TensorFlow's name in a name of its; empty if it is none."""
        name, _, path = dotted(node).partition(".")
        if name not in self._aliases or not path:
            return ""
        return names.moved(".".join(filter(None, (self._aliases[name], path))))

    # Imports

    def leave_Import(
        self, original_node: cst.Import, updated_node: cst.Import
    ) -> cst.BaseSmallStatement:
        """`import tensorflow as tf`, among others or alone."""
        found = []
        for each in updated_node.names:
            path = dotted(each.name)
            if path in MODULES:
                asname = cst.AsName(cst.Name("fb")) if self.here == "fb" else None
                each = each.with_changes(name=cst.Name("flowbook"), asname=asname)
            elif path.partition(".")[0] == "tensorflow":
                if each.asname and dotted(each.asname.name) in self._aliases:
                    continue
                self._leave_to_a_person(original_node, f"{path}: there is no such module")
            found.append(each)
        if not found:
            return self._imported()
        last = found[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        return updated_node.with_changes(names=[*found[:-1], last])

    def leave_ImportFrom(
        self, original_node: cst.ImportFrom, updated_node: cst.ImportFrom
    ) -> cst.BaseSmallStatement:
        """`from tensorflow.compat import v1 as tf`, and parts of it."""
        found = imported(original_node)
        if found:
            return self._imported("" in found.values())
        path = dotted(original_node.module)
        package, _, rest = path.partition(".")
        if package == "tensorflow":
            instead = names.spelling(rest).instead or "there is no such module"
            self._leave_to_a_person(original_node, f"{path}: {instead}")
        return updated_node

    def _imported(self, is_whole: bool = False) -> cst.BaseSmallStatement:
        """What imports Flowbook in the place of TensorFlow, or of a part of it alone."""
        if not is_whole and "" in self._aliases.values():
            return cst.Pass()
        asname = " as fb" if self.here == "fb" else ""
        return cst.parse_statement(f"import flowbook{asname}").body[0]  # type: ignore[index]

    # Names

    def visit_Attribute(self, node: cst.Attribute) -> bool:
        """A whole name of TensorFlow's is looked up at once."""
        return not self._path(node)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:
        """TensorFlow as a whole, as in `getattr(tf, "nn")`."""
        name = dotted(original_node.value)
        if self._aliases.get(name) != "" or name in self._assigned or "." in name:
            return updated_node
        return updated_node.with_changes(value=cst.Name(self.here))

    def leave_Attribute(
        self, original_node: cst.Attribute, updated_node: cst.Attribute
    ) -> cst.BaseExpression:
        """A name of TensorFlow's, or an attribute of what it gave."""
        if self._supervised:
            written = self._supervised.in_place_of(original_node, self.here)
            if written is not None:
                return written
        path = self._path(original_node)
        if path.removeprefix("logging.") in _LOGGED and path.startswith("logging."):
            self.is_logging = True
            return cst.parse_expression(path)
        if path:
            found = names.spelling(path)
            if found.path is None and not is_flag(path):
                self._leave_to_a_person(original_node, _told(path, found.instead))
            return self._name(found.path or path)
        value = updated_node.value
        if dotted(original_node.value) == "FLAGS" and original_node.attr.value in _OF_FLAGS:
            self._leave_to_a_person(original_node, f"{dotted(original_node)}: vars(FLAGS)")
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
        if self._supervised:
            written = self._supervised.in_place_of(original_node, self.here)
            if written is not None:
                self._begun.add(self._functions[-1])
                return written
        path = self._path(original_node.func)
        if path:
            return self._called(path, original_node, updated_node)
        if dotted(original_node.func) in self._look.cells:
            updated_node = with_args(
                updated_node, [a for a in updated_node.args if not _is_always(a)]
            )
        shared = self._shared.get(dotted(original_node.func))
        if shared is not None:
            return shared.called(updated_node)
        if isinstance(updated_node.func, cst.Attribute):
            return self._method(updated_node.func, original_node, updated_node)
        return updated_node

    def _called(self, path: str, original: cst.Call, updated: cst.Call) -> cst.BaseExpression:
        rewritten = self._rewritten(path, original, updated)
        if rewritten is not None:
            inside = text_of(rewritten)
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
            is_told = Left(self._line(original), _told(path, found.instead))
            of_inside = self.left[self._told_before[original] :]
            is_key_told = any(e.text.startswith("GraphKeys.") for e in of_inside)
            if written is not None or (path.endswith("_collection") and is_key_told):
                self.left.remove(is_told)
            return updated if written is None else written
        args = []
        sharing = [a for a in original.args if self._is_scopes_own(a)]
        if sharing:
            # Cells have variables of their own, and share them by being called again.
            kept = [a for a, o in zip(updated.args, original.args, strict=True) if o not in sharing]
            updated = with_args(updated, kept)
            self.left = [e for e in self.left if e != Left(self._line(sharing[0]), _SHARED)]
        for arg in with_order(updated, names.order(found.path)).args:
            if arg.keyword is not None:
                spelt = names.keyword(found.path, arg.keyword.value)
                if spelt.path is None:
                    told = f"{arg.keyword.value}= of {found.path}: {spelt.instead}"
                    self._leave_to_a_person(original, told)
                elif not spelt.path:
                    always = _ALWAYS.get(arg.keyword.value, text_of(arg.value))
                    if text_of(arg.value) != always:
                        told = f"{arg.keyword.value}= of {found.path}: it is {always} always"
                        self._leave_to_a_person(original, told)
                    continue
                else:
                    arg = arg.with_changes(keyword=cst.Name(spelt.path))
            args.append(arg)
        call = with_args(updated, args)
        if path == "while_loop" and _is_of_one(args):
            # In TensorFlow 1 a loop of a list of one variable gives it without the list.
            return cst.parse_expression(f"{text_of(call)}[0]")
        return call

    def _is_scopes_own(self, arg: cst.Arg) -> bool:
        """Whether it is `reuse=tf.get_variable_scope().reuse`, which is so without it."""
        is_reuse = arg.keyword is not None and arg.keyword.value == "reuse"
        return is_reuse and m.matches(
            arg.value, m.Attribute(m.Call(m.MatchIfTrue(self._is_scope)), m.Name("reuse"))
        )

    def _is_scope(self, function: cst.CSTNode) -> bool:
        if not isinstance(function, cst.Name | cst.Attribute):
            return False
        return self._path(function) == "get_variable_scope"

    def _rewritten(self, path: str, original: cst.Call, updated: cst.Call) -> Rewritten:
        """What takes the place of a call whose arguments decide about it."""
        if path in ("summary.FileWriter", "train.SummaryWriter"):
            return self._writer(updated)
        if path in _MERGES and (len(self._writers) == 1 or self._supervised):
            return cst.parse_expression("[]")  # What trains gives them.
        if path.endswith("Session"):
            self._begun.add(self._functions[-1])
        rewrite = CALLS.get(path)
        return rewrite(updated, self.here) if rewrite else None

    def _writer(self, call: cst.Call) -> Rewritten:
        """What records summaries, of the one session that has been made by then."""
        session = self._handed()
        if self._session and self._begun & {"", self._functions[-1]}:
            session = self._session
        if not session:
            return None
        if len(self._writers) != 1 or not call.args or call.args[0].star:
            return None
        return cst.parse_expression(f"{session}.summarize(to={text_of(call.args[0].value)})")

    def _handed(self) -> str:
        """The one session that the program makes, as the function calls it that is handed it."""
        ran = self._look.ran.get(self._functions[-1], set())
        return next(iter(ran)) if len(ran) == 1 and self._look.makes == 1 else ""

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

    def _method(
        self, func: cst.Attribute, original: cst.Call, updated: cst.Call
    ) -> cst.BaseExpression:
        method, value = func.attr.value, func.value
        assert isinstance(original.func, cst.Attribute)
        source = original.func.value
        is_variable = makes_variable(source) or dotted(source) in self._look.variables
        if method in ("eval", "run"):
            session = [a for a in updated.args if a.keyword and a.keyword.value == "session"]
            if method == "eval" and is_variable:
                session = list(updated.args)  # A variable is fed nothing.
            updated = with_args(updated, [a for a in updated.args if a not in session])
            given = text_of(session[0].value) if session else ""
        feeds: Sequence[cst.Arg] = [
            a for a in updated.args if a.keyword and a.keyword.value == "feed_dict"
        ]
        is_only_fed = len(feeds) == len(updated.args)
        if method == "eval" and len(updated.args) == 1:
            is_only_fed, feeds = True, updated.args
        if method == "reuse_variables" and not updated.args:
            self._leave_to_a_person(original, "reuse_variables: fb.template(function, name)")
        if method == "zero_state" and len(updated.args) == 2:
            return updated.with_changes(
                func=self._name("nn.zero_state"), args=[first(value), *updated.args]
            )
        if method == "SerializeToString" and self._has_examples:
            return updated.with_changes(
                func=self._name("serialize_example"), args=[first(value, False)]
            )
        if method == "get_shape" and not updated.args:
            return func.with_changes(attr=cst.Name("shape"))
        if method in _WRITES and len(updated.args) == 1 and not updated.args[0].keyword:
            return updated.with_changes(func=self._name(method), args=[first(value), *updated.args])
        if method == "read_value" and not updated.args:
            # Behind what it waits for; `variable.value` was read where the variable was built.
            return updated.with_changes(func=self._name("identity"), args=[first(value, False)])
        if method == "initialized_value" and not updated.args:
            return func.with_changes(attr=cst.Name("value"))
        if method == "value" and not updated.args:
            if is_variable:
                return func
            self._leave_to_a_person(original, "value: of a variable it is variable.value")
        if method == "eval" or (method == "run" and is_only_fed):
            session_here = given or self._handed()
            if self._session and self._has_session & {"", self._functions[-1]}:
                session_here = given or self._session
            if not is_only_fed or not session_here:
                self._leave_to_a_person(original, f"{method}: sess.run(...), of the session there")
                return updated
            updated = updated.with_changes(
                func=cst.parse_expression(f"{session_here}.run"),
                args=[first(value, bool(feeds)), *updated.args],
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

    def visit_Expr(self, node: cst.Expr) -> bool:
        """What there is nothing to say of is not looked into."""
        return not self._is_needless(node)

    def leave_Expr(self, original_node: cst.Expr, updated_node: cst.Expr) -> cst.BaseSmallStatement:
        """What there is nothing to say of becomes `pass`."""
        return cst.Pass() if self._is_needless(original_node) else updated_node

    def _is_needless(self, node: cst.Expr) -> bool:
        call = node.value
        if not isinstance(call, cst.Call):
            return False
        if self._supervised and self._supervised.is_needless(call):
            return True
        writer, _, method = dotted(call.func).rpartition(".")
        if method in _WRITERS and self._writers == {writer}:
            return True
        return self._path(call.func) in _NEEDLESS

    def visit_Assign(self, node: cst.Assign) -> bool:
        """What a session was told is not looked into."""
        return not self._is_configuration(node)

    def leave_Assign(
        self, original_node: cst.Assign, updated_node: cst.Assign
    ) -> cst.BaseSmallStatement:
        """What a session was told becomes `pass`, and so does another name for a part."""
        return cst.Pass() if self._is_configuration(original_node) else updated_node

    def _is_configuration(self, node: cst.Assign) -> bool:
        is_told = dotted(node.targets[0].target).partition(".")[0] in self._configurations
        is_supervisor = self._supervised is not None and self._supervised.made is node
        return is_told or is_supervisor or bool(self._look.part(node))

    def visit_For(self, node: cst.For) -> None:
        """Steps of a recurrent network share what their cell has, without being told so."""
        told = m.If(
            body=m.IndentedBlock([m.SimpleStatementLine([m.Expr(self._reusing)])]), orelse=None
        ) | m.If(body=m.SimpleStatementSuite([m.Expr(self._reusing)]), orelse=None)
        begins = [each for each in node.body.body if m.matches(each, told)]
        calls = {
            call
            for each in node.body.body
            if each not in begins
            for call in m.findall(each, m.Call())
        }
        if all(isinstance(call, cst.Call) and self._shares_itself(call) for call in calls):
            self._needless_ifs.update(begins)

    @property
    def _reusing(self) -> m.Call:
        scope = m.Name() | m.Call(m.MatchIfTrue(self._is_scope), args=[])
        return m.Call(m.Attribute(scope, m.Name("reuse_variables")), args=[])

    def _shares_itself(self, call: cst.Call) -> bool:
        """Whether a call makes no variables but those of a cell."""
        called = dotted(call.func)
        path = self._path(call.func)
        if path:
            return not re.match(r"contrib|layers|get_variable|Variable|nn\.\w*rnn", path)
        return called in (*self._look.cells, *_PURE) or called.endswith(".append")

    def leave_If(
        self, original_node: cst.If, updated_node: cst.If
    ) -> cst.If | cst.RemovalSentinel | cst.FlattenSentinel[cst.BaseStatement]:
        """What a supervisor would end does not end, and what shares itself is not told to."""
        lines = range(self._line(original_node), self._last_line(original_node) + 1)
        is_said = any(line.comment for line in original_node.leading_lines)
        if original_node in self._needless_ifs:
            self.left = [each for each in self.left if each.line not in lines]
            if is_said:
                above = original_node.leading_lines
                return cst.FlattenSentinel([cst.SimpleStatementLine([cst.Pass()], above)])
            return cst.RemoveFromParent()
        was_asked = isinstance(original_node.test, cst.Call) and self._supervised is not None
        is_ever = not m.matches(updated_node.test, m.Name("False"))
        if is_ever or is_said or not was_asked or updated_node.orelse:
            return updated_node
        return cst.RemoveFromParent()

    def leave_UnaryOperation(
        self, original_node: cst.UnaryOperation, updated_node: cst.UnaryOperation
    ) -> cst.BaseExpression:
        """A loop that a supervisor does not end has no condition."""
        was_asked = isinstance(original_node.expression, cst.Call)
        if was_asked and m.matches(updated_node, m.UnaryOperation(m.Not(), m.Name("False"))):
            return cst.Name("True")
        return updated_node

    def leave_SimpleStatementLine(
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> cst.SimpleStatementLine | cst.RemovalSentinel:
        """What became `pass` goes, unless it has a comment."""
        was_pass = isinstance(original_node.body[0], cst.Pass)
        if was_pass or not all(isinstance(each, cst.Pass) for each in updated_node.body):
            return updated_node
        above = any(line.comment for line in updated_node.leading_lines)
        is_said = above or updated_node.trailing_whitespace.comment
        return updated_node if is_said else cst.RemoveFromParent()

    def leave_With(
        self, original_node: cst.With, updated_node: cst.With
    ) -> cst.With | cst.FlattenSentinel[cst.BaseStatement]:
        """A session is no default for what stands in the block: it is named wherever it runs."""
        for item in original_node.items:
            self._look_at_scope(item, original_node.body)
            if self._supervised and self._supervised.gives(item):
                updated_node = _begun_with(updated_node, self._supervised.begin())
        kept = [item for item in updated_node.items if not self._is_default_session(item.item)]
        if len(kept) == len(updated_node.items) or any(i.asname for i in updated_node.items):
            return updated_node
        if kept:
            last = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            return updated_node.with_changes(items=[*kept[:-1], last])
        begin, *rest = updated_node.body.body
        lines = [*updated_node.leading_lines, *begin.leading_lines]  # type: ignore[union-attr]
        return cst.FlattenSentinel([begin.with_changes(leading_lines=lines), *rest])

    def _look_at_scope(self, item: cst.WithItem, body: cst.BaseSuite) -> None:
        """A scope is its name here: what is done with it otherwise is left to a person."""
        if not isinstance(item.item, cst.Call) or item.asname is None:
            return
        path, name = self._path(item.item.func), dotted(item.asname.name)
        if path == "variable_scope" and m.findall(body, m.Name(name)):
            self._leave_to_a_person(item, _told(path, names.spelling(path).instead))

    def _is_default_session(self, node: cst.BaseExpression) -> bool:
        return isinstance(node, cst.Call) and dotted(node.func) == f"{self._session}.as_default"

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """What follows is in it."""
        self._functions.append(node.name.value)

    def leave_FunctionDef(
        self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef
    ) -> cst.FunctionDef:
        """A function whose variables are shared by their scope is a template."""
        self._functions.pop()
        shared = next((s for s in self._shared.values() if s.function is original_node), None)
        if shared is None:
            return updated_node
        begin = [] if shared.begin is None else shared.begin.body.body
        lines = [self._line(node) for node in (shared.scope, *begin)]
        self.left = [e for e in self.left if e.line not in lines]
        return shared.defined(updated_node, self.here)


def _begun_with(block: cst.With, begin: Sequence[cst.BaseStatement]) -> cst.With:
    body = block.body
    assert isinstance(body, cst.IndentedBlock)
    return block.with_changes(body=body.with_changes(body=[*begin, *body.body]))


def _is_always(arg: cst.Arg) -> bool:
    """Whether it says what is so in any case."""
    return arg.keyword is not None and text_of(arg.value) == _ALWAYS.get(arg.keyword.value)


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
