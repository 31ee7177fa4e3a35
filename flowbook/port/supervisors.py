"""TensorFlow 1's `train.Supervisor`, whose session is one that saves and summarizes itself here.

Sure is a supervisor that has a name of its own, gives one session to one `with` block, and is asked
for nothing else but what is needless here.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from flowbook.port.calls import dotted, text_of

# What a program says to it that there is nothing to say of here.
_NEEDLESS = ("start_queue_runners", "start_standard_services", "stop", "summary_computed")
_ASKED = ("global_step", "managed_session", "saver", "should_stop")
_TOLD = {
    *("global_step", "graph", "init_op", "is_chief", "local_init_op", "logdir", "ready_op"),
    *("save_model_secs", "save_summaries_secs", "saver", "summary_op"),
}


@dataclass
class Supervised:
    """A program's supervisor.

    Attributes:
        name: what the program calls it.
        made: the statement that makes it.
        told: what it is told, as text, by the names of its arguments.
        session: the name of the session that it gives.
        summarizes: whether the program has summaries.
    """

    name: str
    made: cst.Assign
    told: dict[str, str]
    session: str
    summarizes: bool

    @property
    def _folder(self) -> str:
        return self.told.get("logdir", "None")

    def gives(self, item: cst.WithItem) -> bool:
        """Whether a block has its session."""
        given = f"{self.name}.managed_session"
        return isinstance(item.item, cst.Call) and dotted(item.item.func) == given

    def is_needless(self, call: cst.Call) -> bool:
        """Whether a statement of this call goes."""
        return dotted(call.func) in [f"{self.name}.{method}" for method in _NEEDLESS]

    def in_place_of(self, node: cst.CSTNode, here: str) -> cst.BaseExpression | None:
        """What takes the place of what is asked of it; None of anything else."""
        if isinstance(node, cst.Call):
            asked = dotted(node.func).removeprefix(f"{self.name}.")
            from_folder = f"checkpoint={self._folder}" if self._folder != "None" else ""
            written = {"managed_session": f"{here}.Session({from_folder})", "should_stop": "False"}
        else:
            asked = dotted(node).removeprefix(f"{self.name}.")  # type: ignore[arg-type]
            saver = self.told.get("saver", "None")
            written = {
                "global_step": f"{here}.train.get_or_create_global_step()",
                "saver": f"{here}.train.Saver()" if saver == "None" else saver,
            }
        return cst.parse_expression(written[asked]) if asked in written else None

    def begin(self) -> list[cst.BaseStatement]:
        """What the session's block begins with."""
        lines = []
        seconds = self.told.get("save_model_secs", "600")
        saver = f", saver={self.told['saver']}" if "saver" in self.told else ""
        if self._folder == "None":
            return []
        if seconds != "0":
            lines.append(f"checkpoint(to={self._folder}, seconds={seconds}{saver})")
        if self.summarizes:
            rate = f", seconds={self.told.get('save_summaries_secs', '120')}"
            is_own = self.told.get("summary_op") == "None"
            lines.append(f"summarize(to={self._folder}{'' if is_own else rate})")
        code = [f"{self.session}.{line}" for line in lines]
        folder = cst.parse_expression(self._folder)
        if code and isinstance(folder, cst.Name | cst.Attribute):
            # Without a folder nothing is written.
            return [cst.parse_statement(f"if {self._folder}:\n    " + "\n    ".join(code))]
        return [cst.parse_statement(line) for line in code]


def supervised(module: cst.Module, aliases: Container[str]) -> Supervised | None:
    """The supervisor of a program, if it is sure what takes its place."""
    train = m.Attribute(m.Name(m.MatchIfTrue(lambda name: name in aliases)), m.Name("train"))
    maker = m.Call(m.Attribute(train, m.Name("Supervisor")))
    found = m.findall(module, m.Assign([m.AssignTarget(m.Name())], maker))
    if len(found) != 1:
        return None
    made = found[0]
    assert isinstance(made, cst.Assign)
    assert isinstance(made.value, cst.Call)
    name = dotted(made.targets[0].target)
    told = {a.keyword.value: text_of(a.value) for a in made.value.args if a.keyword}
    if len(told) < len(made.value.args) or not told.keys() <= _TOLD:
        return None
    is_other = told.get("is_chief", "True") != "True"
    is_own = told.get("summary_op", "None") != "None"
    uses = m.findall(module, m.Attribute(value=m.Name(name)))
    asked = {use.attr.value for use in uses if isinstance(use, cst.Attribute)}
    others = len(m.findall(module, m.Name(name))) - len(uses) - 1
    if is_other or is_own or others or not asked <= {*_NEEDLESS, *_ASKED}:
        return None
    given = m.Call(m.Attribute(m.Name(name), m.Name("managed_session")))
    items = m.findall(module, m.WithItem(given, m.AsName(m.Name())))
    if len(items) != 1 or len(m.findall(module, given)) != 1:
        return None
    item = items[0]
    assert isinstance(item, cst.WithItem)
    assert isinstance(item.item, cst.Call)
    assert item.asname
    rest = [arg for arg in item.item.args if not arg.keyword or arg.keyword.value != "config"]
    if any(text_of(arg.value) not in ("''", '""') for arg in rest):
        return None  # It runs in another process.
    return Supervised(name, made, told, dotted(item.asname.name), "summary" in module.code)
