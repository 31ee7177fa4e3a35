"""What a program for TensorFlow 1 calls what it uses, before anything of it is rewritten."""

from __future__ import annotations

from collections import Counter

import libcst as cst

from flowbook.port.calls import dotted

MODULES = ("tensorflow", "tensorflow.compat.v1")
# Parts of TensorFlow 1 that programs import by names of their own.
_PARTS = (
    *("contrib.framework", "contrib.layers", "contrib.legacy_seq2seq", "contrib.rnn"),
    *("contrib.slim", "models.rnn.rnn", "models.rnn.rnn_cell", "models.rnn.seq2seq"),
    *("nn.rnn_cell", "python.ops.rnn", "python.ops.rnn_cell", "python.ops.seq2seq"),
)
_CELLS = (
    *("BasicLSTMCell", "BasicRNNCell", "DropoutWrapper", "GRUCell", "LSTMCell", "MultiRNNCell"),
    "ResidualWrapper",
)
_VARIABLES = ("Variable", "get_variable")
_ALL_VARIABLES = ("all_variables", "global_variables", "local_variables", "trainable_variables")
_SESSIONS = ("InteractiveSession", "Session", "managed_session")
# What a session was told, which configures itself.
_CONFIGURATIONS = ("ConfigProto", "GPUOptions")


class Look(cst.CSTVisitor):
    """What a program calls TensorFlow, and its sessions.

    Attributes:
        aliases: what it calls TensorFlow, and parts of it, with what comes before their names.
        sessions: the names of sessions, with the functions that make them; "" is the module.
        writers: the names of what writes summaries.
        assigned: the names that are given values.
        cells: the names of recurrent cells, and of what makes them.
        variables: the names of variables.
        makes: how many sessions it makes.
        ran: what functions run that they are handed, by the functions' names.
        has_examples: whether it makes examples of TensorFlow's.
        is_imported: whether it imports anything of TensorFlow's.
        is_taken: whether something is called "fb" already.
    """

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.sessions: set[tuple[str, str]] = set()
        self.writers: set[str] = set()
        self.has_examples = False
        self.is_imported = False
        self.assigned: set[str] = set()
        self.cells: set[str] = set()
        self.variables: set[str] = set()
        self.makes = 0
        self.ran: dict[str, set[str]] = {}
        self._handed: list[set[str]] = [set()]
        self._made: set[str] = set()
        self._configured: Counter[str] = Counter()
        self._uses: Counter[str] = Counter()
        self._functions = [""]
        self.is_taken = False

    @property
    def configurations(self) -> set[str]:
        """The names of what sessions alone are told."""
        return {
            name
            for name, count in self._configured.items()
            if name and count == self._uses[name] and name in self._made
        }

    def visit_Name(self, node: cst.Name) -> None:
        """Count how often a name is used."""
        self.is_taken = self.is_taken or node.value == "fb"
        self._uses[node.value] += 1

    def visit_ImportAlias(self, node: cst.ImportAlias) -> None:
        """Note what `import tensorflow as tf` calls it."""
        path = dotted(node.name)
        self.is_imported = self.is_imported or path.partition(".")[0] == "tensorflow"
        if path in MODULES and (node.asname or path == "tensorflow"):
            self.aliases[dotted(node.asname.name) if node.asname else path] = ""
        if path.removeprefix("tensorflow.") in _PARTS and node.asname:
            self.aliases[dotted(node.asname.name)] = path.removeprefix("tensorflow.")

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        """Note what `from tensorflow... import ...` calls its parts."""
        is_whole = dotted(node.module).partition(".")[0] == "tensorflow"
        self.is_imported = self.is_imported or is_whole
        self.aliases.update(imported(node))

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        """Note what is given a value."""
        self.assigned.add(dotted(node.target))

    def visit_Assign(self, node: cst.Assign) -> None:
        """Note sessions, writers, and what sessions are told."""
        target = node.targets[0].target
        if self.part(node):
            self.aliases[dotted(target)] = self.part(node)
        if _is_session(node.value):
            for each in node.targets:
                self._note_session(each.target)
        made = _last(node.value.func) if isinstance(node.value, cst.Call) else ""
        if made in _CELLS or _last(node.value) in _CELLS:
            self.cells.update(dotted(each.target) for each in node.targets)
        if makes_variable(node.value):
            self.variables.update(dotted(each.target) for each in node.targets)
        if made in _CONFIGURATIONS:
            self._made.add(dotted(target))
        if made in ("FileWriter", "SummaryWriter"):
            self.writers.add(dotted(target))
        self.has_examples = self.has_examples or made == "Example"
        # It is told more by its attributes.
        self._configured[dotted(target).partition(".")[0]] += 1

    def part(self, node: cst.Assign) -> str:
        """The part of TensorFlow that a statement of the module gives a name; empty if none."""
        name, _, path = dotted(node.value).partition(".")
        is_named = len(node.targets) == 1 and isinstance(node.targets[0].target, cst.Name)
        is_part = path in (*_PARTS, "logging") and self.aliases.get(name) == ""
        return path if is_named and is_part else ""

    def visit_Call(self, node: cst.Call) -> None:
        """Note sessions that are made, and those that functions are handed."""
        self.makes += _is_session(node)
        ran = dotted(node.func.value) if isinstance(node.func, cst.Attribute) else ""
        is_run = _last(node.func) == "run" and bool(node.args) and node.args[0].keyword is None
        is_handed = ran.startswith("self.") or ran in self._handed[-1]
        if is_run and is_handed and "sess" in ran.lower():
            self.ran.setdefault(self._functions[-1], set()).add(ran)

    def visit_Arg(self, node: cst.Arg) -> None:
        """Note what a session is told."""
        if node.keyword and node.keyword.value == "config":
            self._configured[dotted(node.value)] += 1

    def visit_WithItem(self, node: cst.WithItem) -> None:
        """Note a session that a block has."""
        if _is_session(node.item) and node.asname:
            self._note_session(node.asname.name)

    def visit_For(self, node: cst.For) -> None:
        """Note what goes through variables."""
        self._note_each(node.target, node.iter)

    def visit_CompFor(self, node: cst.CompFor) -> None:
        """Note what goes through variables."""
        self._note_each(node.target, node.iter)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        """What follows is in it."""
        self._functions.append(node.name.value)
        self._handed.append({param.name.value for param in node.params.params})

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        """What follows is outside of it."""
        self._functions.pop()
        self._handed.pop()

    def _note_each(self, target: cst.BaseExpression, iterable: cst.BaseExpression) -> None:
        if isinstance(iterable, cst.Call) and _last(iterable.func) in _ALL_VARIABLES:
            self.variables.add(dotted(target))

    def _note_session(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Name):
            self.sessions.add((target.value, self._functions[-1]))


def makes_variable(node: cst.BaseExpression) -> bool:
    """Whether an expression makes a variable."""
    return isinstance(node, cst.Call) and _last(node.func) in _VARIABLES


def _is_session(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and _last(node.func) in _SESSIONS


def _last(node: cst.BaseExpression) -> str:
    return dotted(node).rpartition(".")[2]


def imported(node: cst.ImportFrom) -> dict[str, str]:
    """The parts of TensorFlow that an import gives names to, if it imports nothing else."""
    package, _, rest = dotted(node.module).partition(".")
    if package != "tensorflow" or isinstance(node.names, cst.ImportStar):
        return {}
    found = {}
    for each in node.names:
        path = ".".join(filter(None, (rest, dotted(each.name))))
        name = dotted(each.asname.name) if each.asname else dotted(each.name)
        if path == "compat.v1":
            found[name] = ""
        elif path in _PARTS:
            found[name] = path
    return found if len(found) == len(node.names) else {}
