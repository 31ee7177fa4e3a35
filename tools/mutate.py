"""Deliberate wrong changes, and the tests that have to notice each. Run by hand.

Each change is made alone, in a temporary copy of the tree; then the tests that are named with it
run there. A change that they let pass shows that something is not tested. So does, in another way,
a text that is no longer found: the change has to follow the code.

    python tools/mutate.py                      # all of them
    python tools/mutate.py order_state codec    # those whose file or text has one of these words
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# A wrong change may make a test wait for ever: after so many seconds it is noticed.
LIMIT = 100.0

# What pytest returns where a test fails, and where what it needs cannot be imported.
_NOTICED = (1, 2)


@dataclass(frozen=True)
class Change:
    """One wrong change.

    Attributes:
        file: where, below `flowbook`.
        before: a text that occurs there once.
        after: what stands there instead.
        tests: what has to fail, below `tests`, as pytest is given it.
    """

    file: str
    before: str
    after: str
    tests: tuple[str, ...]

    def __str__(self) -> str:
        first = self.before.strip().partition("\n")[0]
        return f"{self.file}: {first}"


HANDLES = "exec/state/test_handles.py"
TOUCHES = "exec/state/test_touches.py"
CLAIMS = "exec/state/test_claims.py"
ORDER = "exec/state/test_order.py"
LEASES = "exec/state/test_leases.py"
STARTS = "exec/state/test_initialisation.py"
GROWTH = "exec/engine/test_growth.py"
STEP = "exec/engine/test_step.py"
ARRAYS = "graph/control_flow/test_tensor_list.py"
ELEMENTS = "graph/control_flow/test_over_elements.py"
LOWERING = "exec/engine/test_lowering.py"
FAILURES = "exec/engine/test_errors.py"
RETENTION = "exec/engine/test_retention.py"
OWNERSHIP = "exec/session/test_ownership.py"
CODEC = "exec/plan/test_codec.py"
PLAN = "exec/plan/test_plan.py"
GUARD = "exec/instruments/test_guard.py"
REWRITE = "graph/rewrite/test_rewrite.py"
BACKWARD = "graph/gradients/test_backward.py"
COSTS = "graph/ops/test_costs.py"
CASES = "graph/ops/test_op_cases.py"
WINDOWS = "graph/ops/windows/test_windows.py"
PUBLIC = "test_public_api.py"
RENAMED = "test_renamed.py"
UPDATES = "graph/model/test_updates.py"

CHANGES = (
    Change(
        "train/input/records.py",
        "            offset += len(head) + size + _CHECKSUM.size",
        "            offset += size + _CHECKSUM.size",
        ("train/input/test_records.py",),
    ),
    Change(
        "graph/ops/text/examples.py",
        "if values is None and not may:",
        "if values is None and may is None:",
        ("graph/ops/text/test_examples.py",),
    ),
    Change(
        "exec/resources/queue.py",
        "        batch[place, ...] = value",
        "        batch[place] = value",
        ("graph/ops/queues/test_queues.py",),
    ),
    Change(
        "exec/resources/stream.py",
        "                if self._is_over:\n                    self._close()",
        "                pass",
        ("train/input/test_generators.py",),
    ),
    Change(
        "graph/ops/queues/prefetching.py",
        'source_queue_op(source=source, capacity=prefetch, **typed, name="queue")',
        'source_queue_op(source=len, capacity=prefetch, **typed, name="queue")',
        ("cells/test_inputs.py",),
    ),
    Change(
        "train/input/batches.py",
        "np.random.default_rng([self._seed, epoch])",
        "np.random.default_rng(self._seed)",
        ("train/input/test_batches.py",),
    ),
    Change(
        "train/input/generators.py",
        "        yield from self._ahead\n",
        "",
        ("train/input/test_generators.py",),
    ),
    Change(
        "train/input/batching.py",
        "common = common.generalise(tensor.shape[1:])",
        "common = tensor.shape[1:]",
        ("train/input/test_producers.py",),
    ),
    Change(
        "exec/resources/queue.py",
        "        self.undo()\n        return self.end(queue.drained(self._count))",
        "        return self.end(queue.drained(self._count))",
        ("graph/ops/queues/test_queues.py", "graph/ops/queues/test_interleavings.py"),
    ),
    Change(
        "exec/resources/waiting.py",
        "        while any(map(self._serve_first, self._lines)):\n            pass",
        "        for line in self._lines:\n            while self._serve_first(line):\n"
        "                pass",
        ("graph/ops/queues/test_queues.py",),
    ),
    Change(
        "exec/engine/step.py",
        "        self._kept = {*kept, *known}",
        "        self._kept = set(kept)",
        ("graph/ops/queues/test_mutex.py",),
    ),
    Change(
        "exec/waits.py",
        "if is_alone else []",
        "if waits else []",
        ("exec/test_waits.py",),
    ),
    # The model: keys and kinds
    Change(
        "graph/model/resource_key.py",
        "(operation.container and resource_kind(owns).is_shared)",
        "operation.container",
        (HANDLES,),
    ),
    Change(
        "graph/model/resource_key.py",
        "handle = operation.inputs[source]",
        "handle = operation.inputs[0]",
        (HANDLES,),
    ),
    Change(
        "graph/model/registry.py",
        "    found = _by_key.get(key)\n",
        '    found = _definitions.get(key.partition("@")[0])\n',
        (HANDLES,),
    ),
    Change("graph/model/errors.py", "frame.clear()", "pass", (RETENTION,)),
    # The passes
    Change(
        "graph/rewrite/prune.py",
        "if op.op_def.access in (Access.WRITE, Access.OUTSIDE):",
        "if op.op_def.access is Access.OUTSIDE:",
        ("exec/session/test_session.py", REWRITE),
    ),
    Change("graph/rewrite/prune.py", "after += graph.nodes_for(passed_by)", "pass", (HANDLES,)),
    Change(
        "graph/rewrite/prune.py",
        "numbers[op_def.touches.argument] = value_of(owner.outputs[0])",
        "pass",
        (HANDLES,),
    ),
    Change(
        "graph/rewrite/growth.py",
        "return op_def.access is Access.READ and touched_by(operation) not in base.written",
        "return op_def.access is Access.READ",
        (GROWTH,),
    ),
    Change("graph/rewrite/growth.py", "        or operation.device\n", "", (GROWTH,)),
    Change("graph/rewrite/cse.py", "if same in constants:", "if same is not None:", (GROWTH,)),
    Change("graph/rewrite/order_state.py", "    _chain(outside)\n", "", (REWRITE,)),
    Change(
        "graph/rewrite/order_state.py",
        "if placed in done or _leads_to(write, read, successors):",
        "if placed in done:",
        (ORDER,),
    ),
    Change(
        "graph/rewrite/order_state.py",
        "node.owner is not None and node.order is Order.READS_FIRST",
        "node.owner is not None",
        (TOUCHES,),
    ),
    Change(
        "graph/rewrite/cse.py",
        "node.op_def.access is Access.READ and node.order is Order.READS_FIRST",
        "node.op_def.access is Access.READ",
        (TOUCHES,),
    ),
    Change("graph/rewrite/cse.py", "                operation.device,\n", "", (REWRITE,)),
    Change("graph/rewrite/fold.py", "and node.op_def.is_pure", "and True", (REWRITE, TOUCHES)),
    Change("graph/rewrite/fold.py", "left -= cost", "pass", (REWRITE,)),
    Change(
        "graph/rewrite/fold.py",
        "all(n in folded for n in (*node.after, *node.behind))",
        "True",
        (REWRITE,),
    ),
    Change(
        "graph/rewrite/simplify.py", "if node.after or node.behind or not", "if not", (REWRITE,)
    ),
    Change(
        "graph/rewrite/join_products.py", "[p.outputs[0]] == 1", "[p.outputs[0]] >= 1", (REWRITE,)
    ),
    Change("graph/rewrite/subgraph.py", "wanted.update(node.after)", "pass", (REWRITE,)),
    # Plans
    Change(
        "exec/plan/memory.py",
        "if owner == _FOREIGN or owner in given:",
        "if owner == _FOREIGN:",
        (OWNERSHIP,),
    ),
    Change(
        "exec/plan/memory.py",
        "if node.op_def.expression is not None and not node.op_def.is_builtin:",
        "if False:",
        (OWNERSHIP,),
    ),
    Change(
        "exec/plan/codec.py",
        "message.key.generation = node.key.generation",
        "message.key.generation = 0",
        (CODEC,),
    ),
    Change("exec/plan/codec.py", "    found.details += message.error_details\n", "", (CODEC,)),
    Change(
        "exec/plan/pipeline.py",
        "waits = any(own.is_late) or any(signature.is_late)",
        "waits = False",
        (GROWTH,),
    ),
    Change(
        "exec/plan/pipeline.py",
        "(node.operation.id, *[operation.id for operation in node.joined]),",
        "(node.operation.id,),",
        (PLAN,),
    ),
    Change(
        "exec/plan/schedule.py",
        "(node.op_def.access is Access.WRITE)\n    graph",
        "0\n    graph",
        ("exec/plan/test_schedule.py", LEASES),
    ),
    # The engine
    Change(
        "exec/engine/units.py",
        "if output.dtype != dtype.numpy:",
        "if False:",
        (FAILURES,),
    ),
    Change(
        "exec/engine/bind.py",
        "function = widened(op_def, dtypes, node.dtypes, function)",
        "pass",
        ("graph/model/test_bfloat16.py",),
    ),
    Change(
        "exec/engine/step.py",
        "if tag.dead and index in tag.dead and not unit.sees_dead:",
        "if tag.dead and index in tag.dead:",
        (STEP,),
    ),
    Change(
        "exec/engine/step.py",
        "if len(run.iterations) >= run.frame.parallel_iterations:",
        "if len(run.iterations) > run.frame.parallel_iterations:",
        (STEP,),
    ),
    Change(
        "exec/engine/step.py",
        "if not left:\n                    values[value] = None",
        "if not left:\n                    pass",
        (STEP,),
    ),
    Change(
        "exec/engine/segment.py",
        "                for value in dying:\n                    values[value] = None\n",
        "",
        (RETENTION,),
    ),
    Change("exec/engine/executor.py", "            self._abandon()\n", "", (FAILURES,)),
    Change(
        "exec/engine/executor.py", "if self._state is not _State.STARTED:", "if False:", (FAILURES,)
    ),
    Change("exec/engine/executor.py", "del error  # It may hold this frame.", "pass", (RETENTION,)),
    Change(
        "exec/engine/runner.py",
        "map(_read_only, feeds) if self._has_users_kernels else feeds",
        "feeds",
        (FAILURES,),
    ),
    Change(
        "exec/engine/runner.py",
        "            constant = known.get(value)\n",
        "            constant, ownership = known.get(value), next(iter(FINISHED))\n",
        (OWNERSHIP,),
    ),
    Change(
        "exec/engine/generate.py",
        "self.line(text + _dropping(dropped), index, inputs)",
        "self.line(text, index, inputs)",
        (LEASES, RETENTION),
    ),
    Change("exec/engine/generate.py", "if name not in self.barred]", "]", (LOWERING,)),
    Change("exec/engine/generate.py", "and self.locals[first] not in self.barred", "", (LOWERING,)),
    Change(
        "exec/engine/generate.py",
        "    def _free_rest(self, names: Sequence[str], count: int) -> None:\n",
        "    def _free_rest(self, names: Sequence[str], count: int) -> None:\n        return\n",
        (LOWERING,),
    ),
    Change(
        "exec/engine/generate.py",
        "and first not in unit.invariants and first not in others",
        "and first not in others",
        (LOWERING,),
    ),
    Change(
        "exec/engine/lowering.py",
        "if guards[1] != (*around, (pred, 1 - side)) or",
        "if",
        (LOWERING,),
    ),
    Change(
        "exec/engine/lowering.py",
        "        ended.is_open = body.is_open = True\n",
        "",
        (LOWERING,),
    ),
    Change(
        "exec/engine/lowering.py",
        "return [] if program.is_scalar(pred) else [(guard, [program.moved(unit)])]",
        "return []",
        (LOWERING,),
    ),
    Change("exec/engine/step.py", "            first.pending += 1\n", "", (STEP, LOWERING)),
    Change(
        "exec/engine/generate.py",
        'dropped = f"; values[{value}] = None" if value in dying else ""',
        'dropped = ""',
        (GROWTH, "exec/engine/test_generate.py"),
    ),
    Change("exec/engine/segment.py", "del failure  # It holds this frame.", "pass", (RETENTION,)),
    Change(
        "exec/engine/segment.py",
        "            dies = value not in new and value not in kept\n",
        "            dies = value not in kept\n",
        (GROWTH,),
    ),
    Change("exec/engine/segment.py", "if (value in dying) is dies:", "if dies:", (GROWTH,)),
    Change(
        "exec/engine/segment.py",
        "if stretch.runs < RUNS_UNWRITTEN:",
        "if stretch.runs < 1:",
        (GROWTH,),
    ),
    Change(
        "exec/engine/regions.py",
        " | (1 << source if units[source].waits else 0)",
        "",
        ("exec/engine/test_regions.py",),
    ),
    Change(
        "exec/engine/initialisation.py",
        "claimed = [v for v in variables if self._resource(v).claim(claim)]",
        "claimed = list(variables)",
        (CLAIMS,),
    ),
    Change(
        "exec/engine/initialisation.py",
        "alone = [v for v in variables if _runs_users_code(v, given)]",
        "alone = list[Operation]()",
        (CLAIMS,),
    ),
    Change(
        "exec/engine/initialisation.py",
        "needed.update(dict.fromkeys(self._readers.get(variable, ())))",
        "pass",
        (STARTS,),
    ),
    # Resources
    Change(
        "exec/resources/variable.py",
        "if self._is_free() and self._buffer is not None and",
        "if self._buffer is not None and",
        (ORDER,),
    ),
    Change("exec/resources/variable.py", "self._announce(True)", "pass", (CLAIMS,)),
    Change("exec/resources/variable.py", "self._announce(False)", "pass", (CLAIMS,)),
    Change("exec/resources/store.py", "self.on_value(key, False)", "pass", (HANDLES,)),
    Change("exec/resources/store.py", "store.start_over()", "pass", (CLAIMS,)),
    Change("exec/resources/store.py", "self._own.pop(key, None)", "pass", (HANDLES,)),
    Change(
        "exec/resources/random_state.py",
        "            self._counter = after\n",
        "",
        ("exec/resources/test_random_state.py",),
    ),
    Change(
        "exec/resources/random_state.py",
        "state.take_back(before, after)",
        "pass",
        ("exec/state/test_random.py",),
    ),
    Change(
        "exec/resources/random_state.py",
        "if self._counter == after:",
        "if True:",
        ("exec/state/test_random.py",),
    ),
    Change(
        "exec/resources/variable.py",
        "        finally:\n            buffer.flags.writeable = False",
        "        finally:\n            pass",
        ("exec/session/test_ownership.py",),
    ),
    # Instruments
    Change(
        "exec/instruments/guard.py",
        "self._allow == other._allow",
        "self is other",
        ("exec/instruments/test_guard_again.py",),
    ),
    Change(
        "exec/instruments/guard.py",
        "[self]), *again, self)",
        "[self]), self)",
        ("exec/instruments/test_guard_again.py",),
    ),
    Change(
        "exec/instruments/guarded_plan.py",
        "after += (before[index],)",
        "pass",
        ("exec/instruments/test_guarded_runs.py",),
    ),
    Change(
        "exec/instruments/guarded_plan.py",
        "keeps = op_keyed(node.type).keeps_finite and all(",
        "keeps = all(",
        (GUARD,),
    ),
    Change(
        "exec/instruments/attached.py",
        "                start = end\n",
        "",
        ("exec/instruments/test_instrument.py",),
    ),
    # The master and the session
    Change("exec/master.py", "while runner.epoch != self", "if runner.epoch != self", (CLAIMS,)),
    Change(
        "exec/master.py",
        "seen = runner.seen[1] if runner.seen[0] == epoch else 0",
        "seen = runner.seen[1]",
        (GROWTH,),
    ),
    Change(
        "exec/master.py",
        "if any(op.retired for op in prepared.operations):",
        "if False:",
        ("exec/instruments/test_guard_again.py",),
    ),
    Change(
        "exec/master.py",
        "base = None if instruments else self._base_of(signature)",
        "base = self._base_of(signature)",
        (GROWTH,),
    ),
    Change(
        "exec/session/partial_run.py",
        "feeds = None  # The error",
        "pass  # The error",
        (RETENTION,),
    ),
    Change(
        "exec/session/session.py",
        "feeds, values = None, ()  # The error holds this frame.",
        "pass",
        (RETENTION,),
    ),
    # Cells
    Change(
        "graph/model/succession.py",
        "        if completed:\n",
        "        if True:\n",
        ("cells/test_ownership.py",),
    ),
    Change(
        "cells/tracker.py",
        "return_to(execution.surroundings)",
        "pass",
        ("cells/test_scopes.py",),
    ),
    Change(
        "graph/building/members.py",
        "if any(op not in kept for op in mine):",
        "if False:",
        ("cells/test_training.py",),
    ),
    # Gradients
    Change(
        "graph/gradients/backward.py", "if len(partials) > 1:", "if len(partials) > 2:", (BACKWARD,)
    ),
    Change("graph/gradients/backward.py", "(-op.id, op)", "(op.id, op)", (BACKWARD,)),
    Change(
        "graph/gradients/backward.py",
        "None if t in self.stopped else self.total(t)",
        "self.total(t)",
        (BACKWARD,),
    ),
    # Kernels, their gradients and costs
    Change(
        "graph/ops/linalg/matrix_products.py",
        "return 2 * output.size",
        "return output.size",
        (COSTS,),
    ),
    Change(
        "graph/definition/inference.py",
        "return flops * (operation.outputs[0].shape.size or 0)",
        "return operation.outputs[0].shape.size or 0",
        (COSTS,),
    ),
    Change(
        "graph/ops/math/elementwise.py",
        "dy * (1.0 - square(conjugate(op.outputs[0])))",
        "dy * (1.0 + square(conjugate(op.outputs[0])))",
        (f"{CASES}::test_gradient[shape-Tanh]",),
    ),
    Change(
        "graph/ops/nn/activations.py",
        "multiply(gradients, greater(activations, 0))",
        "multiply(gradients, greater_equal(activations, 0))",
        (f"{CASES}::test_values[ReluGrad-at zero]",),
    ),
    # What is public
    Change(
        "graph/ops/windows/layouts.py",
        "return [value[axis] for axis in self._order] if",
        "return value if",
        (WINDOWS,),
    ),
    Change(
        "graph/ops/windows/layouts.py",
        "order = [0, self.count + 1, *range(1, self.count + 1)]",
        "order = self._order",
        (WINDOWS,),
    ),
    Change(
        "graph/ops/windows/families.py",
        "said(v) if isinstance(v, str) else v",
        "v",
        (WINDOWS,),
    ),
    Change("_public.py", "module.__dir__ = partial(list, module.__all__)", "pass", (PUBLIC,)),
    Change(
        "_public.py", "module.__getattr__ = no_such_name_in(namespace)", "pass", (PUBLIC, RENAMED)
    ),
    # Arrays of tensors, and loops over them
    Change(
        "graph/control_flow/tensor_list.py",
        "for each in reversed(older):",
        "for each in older:",
        (ARRAYS,),
    ),
    Change(
        "graph/control_flow/tensor_list.py",
        "if v is not _UNWRITTEN}",
        "}",
        (ARRAYS,),
    ),
    Change(
        "graph/control_flow/tensor_list.py",
        "if self._steps > len(version._elements):",
        "if False:",
        (ARRAYS,),
    ),
    Change(
        "graph/control_flow/tensor_list.py",
        "            held[index] = _LET_GO\n",
        "            pass\n",
        (ARRAYS,),
    ),
    Change(
        "graph/control_flow/tensor_list.py",
        "if len(one) < len(changes):",
        "if len(one) > len(changes):",
        (ARRAYS,),
    ),
    Change("graph/rewrite/cse.py", "if op_def.gives_variant:", "if False:", (ELEMENTS,)),
    Change(
        "graph/control_flow/array_ops.py",
        "        if earlier == len(rounds):",
        "        if not rounds:",
        ("graph/control_flow/test_tensor_array.py",),
    ),
    Change(
        "graph/control_flow/dynamic_rnn.py",
        "is_over = less_equal(lengths, step)",
        "is_over = less_equal(lengths, step + 1)",
        ("graph/control_flow/test_dynamic_rnn.py",),
    ),
    Change(
        "graph/control_flow/case.py",
        "Assert(size(held) <= 1,",
        "Assert(size(held) <= 2,",
        ("graph/control_flow/test_case.py",),
    ),
    Change(
        "graph/transfer/importing.py",
        "copy.closes = self._copies[operation.closes]",
        "pass",
        ("graph/transfer/test_importing.py",),
    ),
    # What branches and loops are asked from outside
    Change(
        "graph/model/ancestors.py",
        "(operation.closed_by,) if operation.closed_by is not None else ()",
        "()",
        ("explain/test_lint.py",),
    ),
    Change("graph/model/updates.py", " and op.context is None", "", (UPDATES,)),
    Change(
        "graph/model/updates.py",
        "[*found, *closing(operation)]",
        "found",
        (UPDATES,),
    ),
    Change(
        "graph/gradients/backward.py",
        "graph.refuse_inside(y, graph.scope.flow)",
        "pass",
        ("graph/control_flow/test_cond.py",),
    ),
    Change(
        "graph/control_flow/while_loop.py",
        "if not back_prop:",
        "if False:",
        ("graph/gradients/test_loops.py",),
    ),
    Change(
        "train/layers/regularizers.py",
        "within(weights.op.graph, lambda scope: replace(scope, flow=None)),",
        "",
        ("train/layers/test_layers.py",),
    ),
)


def main() -> int:
    """Try the changes; how many were not noticed, or do not fit the code any more."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("words", nargs="*", help="only changes whose file or text has one of these")
    words = parser.parse_args().words
    changes = [c for c in CHANGES if not words or any(w in c.file + c.before for w in words)]
    misfits = [c for c in CHANGES if _text_of(ROOT, c).count(c.before) != 1]
    for change in misfits:
        print(f"DOES NOT FIT  {change}")
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        _copy_tree(copy)
        wanted = dict.fromkeys(test for change in changes for test in change.tests)
        if _run(copy, list(wanted), 20 * LIMIT) != 0:
            print("These tests fail without any change:", *wanted)
            return 1
        for change in changes:
            if change not in misfits:
                survivors += not _is_noticed(copy, change)
    print(f"{len(changes)} changes, {survivors} not noticed, {len(misfits)} that do not fit")
    return survivors + len(misfits)


def _text_of(root: Path, change: Change) -> str:
    return (root / "flowbook" / change.file).read_text()


def _copy_tree(copy: Path) -> None:
    """Copy what is in the tree, committed or not, and what was built into the package."""
    shutil.copytree(
        ROOT,
        copy,
        ignore=shutil.ignore_patterns(".*", "node_modules", "__pycache__", "site"),
        dirs_exist_ok=True,
    )


def _is_noticed(copy: Path, change: Change) -> bool:
    """Make a change in the copy, run its tests there, and take it back."""
    path = copy / "flowbook" / change.file
    text = path.read_text()
    path.write_text(text.replace(change.before, change.after))
    start = time.monotonic()
    try:
        returned = _run(copy, change.tests, LIMIT)
    finally:
        path.write_text(text)
    is_noticed = returned is None or returned in _NOTICED
    seconds = time.monotonic() - start
    print(
        f"{'noticed' if is_noticed else 'NOT NOTICED':12}  {seconds:3.0f} s  {change}", flush=True
    )
    return is_noticed


def _run(copy: Path, tests: Sequence[str], limit: float) -> int | None:
    """What pytest returns; None if it takes too long."""
    command = [sys.executable, "-B", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    try:
        return subprocess.run(
            [*command, *[f"tests/{test}" for test in tests]],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=limit,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return None


if __name__ == "__main__":
    sys.exit(main())
