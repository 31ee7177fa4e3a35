"""`fb.train.Saver`: variables to checkpoints and back, and which checkpoints stay.

It is here, and not with what trains, because sessions save and restore by it themselves. What it
saves is a snapshot between two steps, which costs no more than references to the variables' values:
while it is written, training goes on, and writes to new memory what it changes.
"""

from __future__ import annotations

import difflib
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from flowbook.exec.checkpoints.checkpoint import (
    About,
    Checkpoint,
    checkpoint_at,
    found_in,
    remove_checkpoint,
    remove_unfinished,
    write_checkpoint,
)
from flowbook.exec.checkpoints.folder import folder_at, split
from flowbook.exec.checkpoints.snapshot import Snapshot, State, read_state
from flowbook.graph.building.graph import Graph
from flowbook.graph.definition.public import public
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import InvalidArgumentError, InvalidTypeError, NotFoundError
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.model.touch import HASH_TABLE
from flowbook.graph.model.whole_numbers import as_whole
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.ops.tables.mutable_tables import MutableHashTable
from flowbook.graph.storing.files import as_path

__all__ = ["Saver", "best_checkpoint"]

# What may be listed.
Saved = Variable | MutableHashTable

_BEST = {"lowest": min, "highest": max}


class Holder(Protocol):
    """What a saver needs of a session.

    Attributes:
        graph: its graph.
    """

    graph: Graph

    def snapshot(
        self, variables: Sequence[Variable] | None = None, timeout: float | None = None
    ) -> Snapshot:
        """What it holds, between two steps."""

    def put(self, snapshot: Snapshot, timeout: float | None = None) -> None:
        """Have it hold something else."""


class Told(Protocol):
    """What a checkpoint says of a value: of which dtype and shape it is."""

    @property
    def dtype(self) -> DType: ...

    @property
    def shape(self) -> tuple[int, ...]: ...


class Source(Protocol):
    """What values are restored from: a checkpoint, in whatever format.

    Attributes:
        path: where it is.
    """

    path: str

    def entry(self, name: str) -> Told:
        """What it says of a value; NotFoundError if it has none of that name."""

    def read(self, names: Iterable[str]) -> dict[str, Any]:
        """Some of its values."""


# What TensorFlow 1 calls otherwise.
_ELSEWHERE = {
    "as_saver_def": "nothing: fb.train.Saver() finds the variables of a graph",
    "export_meta_graph": "graph.save(path)",
    "last_checkpoints": "fb.train.latest_checkpoint(folder)",
    "recover_last_checkpoints": "nothing: a saver finds older checkpoints by their names",
    "set_last_checkpoints": "nothing: a saver finds older checkpoints by their names",
    "to_proto": "nothing: fb.train.Saver() finds the variables of a graph",
}


@elsewhere(_ELSEWHERE)
class Saver:
    """Saves variables to checkpoints, restores them, and removes old checkpoints.

    A checkpoint is a folder with an index and a file of arrays for each device, in the safetensors
    format. It is there whole or not at all, whatever ends the process meanwhile. Processes that
    write at the same time need names of their own for their checkpoints.

    Args:
        var_list: what is saved and restored: variables and mutable tables, or a dictionary of them
            by the names that they have in the checkpoint; of a table that is its contents, which
            take the place of what it holds. By default all variables that the graph has then, and
            with them the contents of its mutable tables, how far its inputs have come, and what
            random and counting operations go on from.
        reshape: whether a value of another shape, but as many elements, is restored.
        max_to_keep: how many of the latest checkpoints of a name stay; None keeps all.
        keep_every_n_hours: one checkpoint of each so many hours stays as well.
        keep_best: "lowest" or "highest": the checkpoint whose `metric` is that stays as well.

    Attributes:
        tables: the tables that are listed, by their names in the checkpoint.

    Raises:
        InvalidArgumentError: if two of `var_list` have one name, or a number is not positive.
        InvalidTypeError: if `var_list` holds something else than variables and mutable tables.

    Source: white paper, section 3.3, "Fault Tolerance".

    >>> import tempfile
    >>> import flowbook as fb
    >>> W = fb.Variable([1.0, 2.0], name="W")
    >>> saver = fb.train.Saver()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with fb.Session() as sess:
    ...         trained = sess.run(fb.assign_add(W, [10.0, 10.0]))
    ...         path = saver.save(sess, f"{folder}/model", global_step=100)
    ...     with fb.Session() as sess:
    ...         restored = saver.restore(sess, path)
    ...         print(restored, sess.run(W))
    ['W'] [11. 12.]
    """

    def __init__(
        self,
        var_list: Mapping[str, Saved] | Iterable[Saved] | None = None,
        *,
        reshape: bool = False,
        max_to_keep: int | None = 5,
        keep_every_n_hours: float | None = None,
        keep_best: str | None = None,
    ) -> None:
        listed = None if var_list is None else _named(var_list)
        self._variables: dict[str, Variable] | None = None
        self.tables: dict[str, MutableHashTable] = {}
        if listed is not None:
            self._variables = {n: v for n, v in listed.items() if isinstance(v, Variable)}
            self.tables = {n: t for n, t in listed.items() if isinstance(t, MutableHashTable)}
        self._reshape = reshape
        for name, number in (
            ("max_to_keep", max_to_keep),
            ("keep_every_n_hours", keep_every_n_hours),
        ):
            if number is not None and not number > 0:
                raise InvalidArgumentError(
                    f"{name} is greater than 0, not {number!r}", hint=f"{name}=None: no limit"
                )
        if keep_best is not None and keep_best not in _BEST:
            raise InvalidArgumentError(f"keep_best is 'lowest' or 'highest', not {keep_best!r}")
        self._max_to_keep = max_to_keep
        self._hours = keep_every_n_hours
        self._best = keep_best

    @public
    def save(
        self,
        sess: Holder,
        path: Any,
        global_step: Any = None,
        *,
        metric: float | None = None,
        timeout: float | None = None,
    ) -> str:
        """Save the variables, and the tables, as they are between two steps.

        Variables without a value are initialised first. Steps of other threads that write variables
        wait while references to the values are taken; what only reads, or waits on queues, does
        not. While the files are written nobody waits.

        Args:
            sess: the session.
            path: of the checkpoint, or a URL that fsspec knows, such as "s3://bucket/run/model".
            global_step: an int, or the variable that counts the steps; the checkpoint then is
                called `path-100`, and older ones of the same path are removed as the saver says.
            metric: how good it is, for `keep_best`.
            timeout: how many seconds to wait for steps that write variables; None is for ever.

        Returns:
            The path of the checkpoint.

        Raises:
            DeadlineExceededError: if the timeout is over; it says which step was under way.
            FailedPreconditionError: if a variable has no value, in a session that initialises none.
            OSError: if it cannot be written, as when the disk is full; the earlier ones are there
                still.
        """
        path = as_path(path)
        variables = self.chosen(sess.graph)
        counter = _counter(global_step)
        counters = [] if counter is None else [counter]
        snapshot = sess.snapshot([*variables.values(), *counters], timeout)
        step = int(snapshot.values[counter.op]) if counter is not None else global_step
        return self.write(snapshot, variables, path, step, metric)

    def write(
        self,
        snapshot: Snapshot,
        variables: Mapping[str, Variable],
        path: str,
        step: Any,
        metric: float | None,
    ) -> str:
        """Write a snapshot of variables as a checkpoint; see `save`."""
        if step is not None:
            step = _as_step(step)
            path = f"{path}-{step}"
        arrays: dict[str, dict[str, Any]] = {}
        for name, variable in variables.items():
            held = arrays.setdefault(snapshot.devices[variable.op], {})
            held[name] = snapshot.values[variable.op]
        about = About(time.time(), step, None if metric is None else float(metric))
        if self._variables is not None:
            # A table that nobody has used yet has no state, and is empty.
            states = {
                name: snapshot.states.get(_owner(table), State(HASH_TABLE.name, None))
                for name, table in self.tables.items()
            }
            snapshot = Snapshot({}, {}, None, states)
        write_checkpoint(path, arrays, about, snapshot.state())
        if step is not None:
            self._remove_old(path)
        return path

    def _remove_old(self, path: str) -> None:
        """Remove the checkpoints of the same name that are not to stay, and what is none."""
        folder, name = split(path)
        prefix = name.rpartition("-")[0]
        found = found_in(folder, prefix)
        kept = {each.path for each in self._kept(found)}
        for old in found:
            if old.path not in kept:
                # That it stays is no reason to tell anyone that the new one is not there.
                with suppress(OSError):
                    remove_checkpoint(old.path)
        with suppress(OSError):
            remove_unfinished(folder, prefix)

    def _kept(self, found: Sequence[Checkpoint]) -> Iterable[Checkpoint]:
        yield from found if self._max_to_keep is None else found[-self._max_to_keep :]
        if self._best is not None:
            yield from _best_of(found, self._best)
        if self._hours is not None:
            last = -math.inf
            for each in found:
                if each.about.time - last >= self._hours * 3600:
                    last = each.about.time
                    yield each

    @public
    def restore(
        self, sess: Holder, path: Any, *, partial: bool = False, timeout: float | None = None
    ) -> list[str]:
        """Give the variables the values of a checkpoint: all of them, or none if anything is wrong.

        Args:
            sess: the session.
            path: the checkpoint, or a folder of checkpoints, whose latest it is.
            partial: whether variables and tables that the checkpoint does not have keep what they
                have.
            timeout: how many seconds to wait for steps that write variables; None is for ever.

        Returns:
            The names, in the graph, of the variables that were restored, and of listed tables.

        Raises:
            NotFoundError: if there is no checkpoint, or it lacks a variable, or a listed table; it
                gives the nearest name.
            InvalidArgumentError: if a value has another dtype, or another shape.
            DataLossError: if it is damaged.
            DeadlineExceededError: if the timeout is over; it says which step was under way.
        """
        found = checkpoint_at(path)
        variables = self.chosen(sess.graph)
        states = read_state(found.state)
        tables = self.tables
        if partial:
            variables = {n: v for n, v in variables.items() if n in found.entries}
            tables = {n: t for n, t in tables.items() if n in states.states}
        if self._variables is not None:
            listed = {_owner(t): _state_of(found, states.states, n) for n, t in tables.items()}
            states = Snapshot({}, {}, None, listed)
        put_values(sess, found, variables, states, reshape=self._reshape, timeout=timeout)
        restored: list[Saved] = [*variables.values(), *tables.values()]
        return [each.op.name for each in restored]

    def chosen(self, graph: Graph) -> Mapping[str, Variable]:
        """The variables, by their names in the checkpoint.

        Raises:
            InvalidArgumentError: if one is of another graph.
        """
        if self._variables is not None:
            listed: list[Saved] = [*self._variables.values(), *self.tables.values()]
            for each in listed:
                if each.op.graph is not graph:
                    raise InvalidArgumentError(
                        f"the saver's {each!r} is of another graph than the session's",
                        hint="build the saver in the session's graph, or give it no variables",
                    )
            return self._variables
        return {variable.op.name: variable for variable in graph.variables()}


def put_values(
    sess: Holder,
    found: Source,
    variables: Mapping[str, Variable],
    states: Snapshot,
    *,
    reshape: bool = False,
    timeout: float | None = None,
) -> None:
    """Give variables the values of a checkpoint, and other resources their states.

    Args:
        sess: the session.
        found: the checkpoint.
        variables: by their names in it.
        states: those of the other resources.
        reshape: whether a value of another shape, but as many elements, will do.
        timeout: how many seconds to wait for steps that write variables; None is for ever.
    """
    for name, variable in variables.items():
        check_fits(found, name, variable, reshape)
    values = found.read(variables)
    put = {}
    for name, variable in variables.items():
        value = values[name]
        if not variable.shape.is_compatible_with(value.shape):
            value = value.reshape(variable.shape.dims)
        put[variable.op] = value
    sess.put(states._replace(values=put), timeout)


def check_fits(found: Source, name: str, variable: Variable, reshape: bool) -> None:
    """Refuse a value that a variable cannot have.

    Args:
        found: the checkpoint.
        name: the variable's name in it.
        variable: the variable.
        reshape: whether one of another shape, but as many elements, will do.

    Raises:
        NotFoundError: if there is none of that name.
        InvalidArgumentError: if it has another dtype, or another shape.
    """
    entry = found.entry(name)
    is_of_size = variable.shape.size == math.prod(entry.shape)
    if entry.dtype is variable.dtype and (
        variable.shape.is_compatible_with(entry.shape) or (reshape and is_of_size)
    ):
        return
    raise InvalidArgumentError(
        f"the checkpoint {found.path!r} has {name!r} as {entry}, and the variable "
        f"{variable.op.name!r} is {variable.dtype.name} {variable.shape}",
        hint="fb.train.Saver(reshape=True) restores it all the same"
        if is_of_size and entry.dtype is variable.dtype
        else "fb.train.Saver(var_list) restores only what it lists",
    )


def _owner(table: MutableHashTable) -> str:
    """The name of the operation by which a table's contents are known: the first that owns it."""
    owners = table.op.graph.stateful_operations()
    return next(op.name for op in owners if op.key == table.op.key)


def _state_of(found: Source, states: Mapping[str, State], name: str) -> State:
    """What a checkpoint has of a table; NotFoundError if it has none of that name."""
    tables = {each: state for each, state in states.items() if state.kind == HASH_TABLE.name}
    if name not in tables:
        close = difflib.get_close_matches(name, tables, 3)
        raise NotFoundError(
            f"the checkpoint {found.path!r} has no table {name!r}",
            hint=f"did you mean {' or '.join(map(repr, close))}?" if close else None,
        )
    return tables[name]


def _named(var_list: Any) -> dict[str, Saved]:
    pairs = (
        list(var_list.items())
        if isinstance(var_list, Mapping)
        else [(getattr(getattr(v, "op", None), "name", None), v) for v in _listed(var_list)]
    )
    for name, each in pairs:
        if not isinstance(each, Variable | MutableHashTable) or not isinstance(name, str):
            raise InvalidTypeError(
                f"var_list holds variables and mutable tables, not {each!r:.80}",
                hint='var_list={"name in the checkpoint": variable} renames them',
            )
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InvalidArgumentError("var_list has two variables, or tables, of one name")
    return found


def _listed(var_list: Any) -> list[Any]:
    is_one = isinstance(var_list, Variable | MutableHashTable | str)
    if is_one or not isinstance(var_list, Iterable):
        raise InvalidTypeError(
            f"var_list is a list of variables, not {var_list!r:.80}", hint="of one: [variable]"
        )
    return list(var_list)


def _counter(global_step: Any) -> Variable | None:
    """The variable that counts the steps, if that is what was given."""
    if isinstance(global_step, Tensor):
        if global_step.op.variable is None:
            raise InvalidTypeError(f"global_step is an int or a variable, not {global_step!r}")
        return global_step.op.variable  # type: ignore[no-any-return]
    return global_step if isinstance(global_step, Variable) else None


def _as_step(step: Any) -> int:
    number = as_whole(step)
    if number is None or number < 0:
        raise InvalidArgumentError(f"global_step is an int from 0 on, not {step!r}")
    return number


def _best_of(found: Sequence[Checkpoint], which: str) -> list[Checkpoint]:
    """The best of checkpoints, the latest of equals; empty if none says how good it is."""
    rated = [each for each in reversed(found) if each.about.metric is not None]
    rated = [each for each in rated if not math.isnan(each.about.metric or 0.0)]
    return [_BEST[which](rated, key=lambda each: each.about.metric or 0.0)] if rated else []


def best_checkpoint(folder: Any, which: str, prefix: str = "") -> str | None:
    """The path of the best checkpoint in a folder; None if none says how good it is.

    Args:
        folder: the folder.
        which: "lowest" or "highest": what the best `metric` is.
        prefix: only checkpoints of this name, whatever their steps; "" means any.
    """
    if which not in _BEST:
        raise InvalidArgumentError(f"the best is the 'lowest' or the 'highest', not {which!r}")
    best = _best_of(found_in(folder_at(folder), prefix), which)
    return best[0].path if best else None
