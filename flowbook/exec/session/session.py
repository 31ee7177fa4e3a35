"""The session: what a person holds to run a graph (white paper, section 2, "Sessions").

It is thin. What fetches and feeds have come to mean is remembered in `calls.py`, and the master
runs it: on the hot path that is a look-up and one call. What its variables begin with, and what
becomes of their values at its end, is in `holdings.py`; where operations are to run in
`planner.py`; what watches its runs in `exec/instruments`.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, overload

from flowbook.exec.checkpoints.saver import Saver
from flowbook.exec.checkpoints.snapshot import Snapshot
from flowbook.exec.devices.device import Device, DeviceDescription
from flowbook.exec.devices.local_devices import local_devices
from flowbook.exec.engine.code.tally import Ran
from flowbook.exec.instruments.checkpointing import Checkpointing, checkpointed
from flowbook.exec.instruments.guard import Guard, guard
from flowbook.exec.instruments.retained_feeds import MOST_BYTES as MOST_RETAINED
from flowbook.exec.instruments.retained_feeds import RetainedFeeds, retain_feeds
from flowbook.exec.instruments.summaries.history import SummaryHistory
from flowbook.exec.instruments.summaries.summarizer import Summarizer
from flowbook.exec.instruments.summaries.summarizing import Summarizing, summarized
from flowbook.exec.instruments.trace import MOST_CALLS, Trace, trace
from flowbook.exec.kernels.numerics import fixed_numerics
from flowbook.exec.local.local_master import LocalMaster
from flowbook.exec.master import Master, offered
from flowbook.exec.plan.explanation import Explanation
from flowbook.exec.plan.failure import deadline_after
from flowbook.exec.plan.replacing import Replacement
from flowbook.exec.queue_threads import Feeding
from flowbook.exec.resources.containers import reset_container
from flowbook.exec.session import peek as peeking
from flowbook.exec.session.calls import Call, Calls
from flowbook.exec.session.holdings import Holdings
from flowbook.exec.session.input_pipeline import InputPipeline, Watch, input_pipeline
from flowbook.exec.session.partial_run import PartialRun
from flowbook.exec.session.placement_search import PlacementSearch, search_of
from flowbook.exec.session.planner import Planner
from flowbook.exec.signature.compound_feeds import expanded, has_compound
from flowbook.exec.signature.feeds import MAPPINGS, check_mapping
from flowbook.exec.signature.spelling import spelling
from flowbook.graph.building.graph import Graph, get_default_graph
from flowbook.graph.definition.keywords import REQUIRED, catches_misfits, misfit, signature_of_init
from flowbook.graph.model.counted import counted
from flowbook.graph.model.elsewhere import elsewhere
from flowbook.graph.model.errors import (
    FailedPreconditionError,
    InvalidTypeError,
    hides_frames,
    without_internal_frames,
)
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.origin import site as sites
from flowbook.graph.model.origin.site import Site
from flowbook.graph.model.tensor import Tensor
from flowbook.graph.ops.state.variables import Variable
from flowbook.graph.redefinition.repetition import check_repetition
from flowbook.graph.storing.files import as_path

__all__ = ["Session", "open_sessions"]

# All sessions that someone holds, in the order in which they were made.
_made: weakref.WeakValueDictionary[int, Session] = weakref.WeakValueDictionary()
_numbers = itertools.count()

# Those with names, which live until they are closed.
_named: dict[str, Session] = {}

# What not every master has.
_SIGHT = "sight of what fills queues and waits"

# What TensorFlow 1 calls otherwise.
_ELSEWHERE = {
    "as_default": "the session's name, as in sess.run(...)",
    "eval": "sess.run(fetches, feeds)",
    "graph_def": "sess.graph",
    "partial_run_setup": "sess.partial_run(fetches, feeds), whose result runs the parts",
}


@elsewhere(_ELSEWHERE)
class Session:
    """Runs parts of a graph, and keeps the state of its variables from run to run.

    A `with` statement closes it at its end; what is built in the block joins its graph.

    Args:
        graph: the graph; by default the default graph.
        name: the name under which it lives until it is closed: `fb.Session(name="mnist")` is the
            live session of that name, if there is one, with all that it holds. It is not closed
            when the cell that made it runs again.
        auto_initialize: whether variables get their initial values on first use. If not, reading
            one before its initializer ran is a FailedPreconditionError.
        devices: the names of the devices that operations run on, such as
            `["cpu:0", "simulated:0"]`; by default this process's CPU.
        cpus: in place of that how many CPU devices there are. They share the machine's cores; each
            runs its part of a step on a thread of its own.
        checkpoint: the path of a checkpoint, or of a folder of checkpoints, whose latest it is. If
            there is one, variables begin with what it has for them, and random operations go on
            from there. Nothing is saved: that is what `checkpoint(to=path)` is for.
        soft_placement: whether a device that is asked for and not there, or that has no kernel for
            an operation, is no error: another of its kind does then, or else any that can. Where
            requests of what has to stay together conflict, those of variables count.
        deterministic: whether the same program gives the same bits again on this machine. Products
            then take one thread in all of this process, unless `fb.options.intra_op_threads` says
            how many; and a checkpoint that another deterministic session has saved is refused where
            it would go on to other bits.
        lossy_transfer: whether float32 values go from device to device with the upper 16 of their
            bits, which is half of the bytes and two or three digits; or the tensors, by name or
            not, that do. Feeds and fetches, and what stays on a device, keep all bits.

    Attributes:
        graph: the graph.
        name: its name; None if it has none.

    Raises:
        FailedPreconditionError: if the live session of that name runs another graph.
        InvalidTypeError: if an argument is of another type.
        UnimplementedError: if it is to be deterministic, and threadpoolctl is not installed.

    Source: white paper, section 2, "Sessions".

    >>> import flowbook as fb
    >>> a = fb.constant(2.0)
    >>> b = a * 3
    >>> sess = fb.Session()
    >>> print(sess.run(b), sess.run(b, {a: 5.0}))
    6.0 15.0
    """

    def __new__(
        cls, graph: Graph | None = None, *, name: str | None = None, **others: Any
    ) -> Session:
        """A new session, or the live one of that name."""
        live = _named.get(name) if isinstance(name, str) else None
        return super().__new__(cls) if live is None else live

    def __init__(
        self,
        graph: Graph | None = None,
        *,
        name: str | None = None,
        auto_initialize: bool = True,
        devices: Sequence[str | Device] | None = None,
        cpus: int | None = None,
        soft_placement: bool = False,
        checkpoint: Any = None,
        deterministic: bool = False,
        lossy_transfer: bool | Sequence[Tensor | str] = False,
    ) -> None:
        if graph is not None and not isinstance(graph, Graph):
            raise InvalidTypeError(f"graph is an fb.Graph, not {graph!r}")
        if "graph" in vars(self):
            self._attach(graph)
            return
        if name is not None and (not isinstance(name, str) or not name):
            raise InvalidTypeError(f"a session is named by a text, not {name!r:.80}")
        how = local_devices(devices, cpus), soft_placement, _lossy(lossy_transfer)
        start = None if checkpoint is None else as_path(checkpoint)
        numerics = fixed_numerics() if deterministic else None
        self.name = name
        self.graph = graph if graph is not None else get_default_graph()
        self._members = self.graph.members
        self._site = sites.capture()
        self._master = self._made_master(auto_initialize, *how)
        self._calls = Calls(self.graph, self._master)
        self._instruments = self._calls.instruments
        self._planner = Planner(self._calls, self._master)
        self._holdings = Holdings(self.graph, self._site, self._master.resources, start, numerics)
        self._version = -1
        self._retirements = self.graph.retirements
        self._closed = False
        self._blocks: list[ExitStack] = []
        self._watches: weakref.WeakSet[Watch] = weakref.WeakSet()
        self._lock = threading.RLock()
        _made[next(_numbers)] = self
        self._monitor = self._master.monitor
        if self._monitor is not None:
            # Threads that fill queues end with what they fill them for.
            weakref.finalize(self, self._monitor.feeding.close)
        # What its last runs did, when it is closed.
        self._ran: Ran | None = None
        if name is not None:
            _named[name] = self
        elif self._site.author is not None:
            self._site.author.succession.add(self)

    # Of the two it is __init__ that says what is given.
    __signature__ = signature_of_init()

    def _attach(self, graph: Graph | None) -> None:
        """Be asked for again, by name."""
        wanted = graph if graph is not None else get_default_graph()
        if self.graph is not wanted:
            raise FailedPreconditionError(
                f"the live session {self.name!r} runs {self.graph!r}, not {wanted!r}",
                hint=f"fb.Session(session_graph, name={self.name!r}) is that one, and its close() "
                "makes the name free",
            )

    def _made_master(self, *how: Any) -> Master:
        """Who carries out what this session asks for; a session of another kind has another."""
        return LocalMaster(self.graph, *how)

    # Running

    @overload
    def run(
        self,
        fetches: Operation,
        feeds: Mapping[Any, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> None: ...

    @overload
    def run(
        self,
        fetches: Any,
        feeds: Mapping[Any, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> Any: ...

    @catches_misfits
    def run(
        self,
        fetches: Any = REQUIRED,
        feeds: Mapping[Any, Any] | None = None,
        *misplaced: Any,
        timeout: float | None = None,
        **misspelt: Any,
    ) -> Any:
        """Run what the fetches need, and return their values.

        Args:
            fetches: a tensor, operation, variable or name, or any nesting of lists, tuples, dicts,
                namedtuples, dataclasses and attrs classes of them. An operation gives None, a
                SparseTensor a SparseTensorValue, IndexedSlices an IndexedSlicesValue.
            feeds: values for tensors, by tensor, variable or name. Any tensor may be fed; what
                only served to compute it does not run. A fed variable is not read. For a
                SparseTensor or IndexedSlices a SparseTensorValue or IndexedSlicesValue is fed, or
                a tuple of the three arrays; for a tuple of keys, such as the state of a recurrent
                network, as many values.
            timeout: seconds after which the run is given up; None never. It ends what waits, and is
                looked at between any two operations and at the end. An operation is not stopped: a
                run that is given up late may have written what it writes.

        Returns:
            The values, in the structure of `fetches`: NumPy arrays that are the caller's own, and
            NumPy scalars for tensors without dimensions.

        Raises:
            InvalidArgumentError: if a needed placeholder is not fed, or a fed value does not fit.
            InvalidTypeError: if something cannot be fetched or fed.
            DeadlineExceededError: if the timeout is over.
            OpError: what an operation raised; it names the operation and its line.

        Source: white paper, sections 2 and 4.2.
        """
        __tracebackhide__ = True
        if misplaced or misspelt:
            raise _misfit(self.run, fetches, feeds, *misplaced, **misspelt)
        if self._version != self._members.version:
            self._extend()
        try:
            call = self._calls.known[spelling(fetches, feeds)]
        except (KeyError, TypeError, ValueError):  # An array where a dict belongs is ambiguous.
            if isinstance(feeds, MAPPINGS) and has_compound(feeds):
                return self.run(fetches, hides_frames(expanded)(feeds), timeout=timeout)
            call = self._prepare(fetches, feeds)
        values: Sequence[Any] = ()
        try:
            values = [f.value(v) for f, v in zip(call.feeds, feeds.values())] if feeds else ()  # noqa: B905
            deadline = None if timeout is None else deadline_after(timeout)
            return call.rebuild(call.run(call.prepared, values, deadline))
        except BaseException as error:
            if feeds and not isinstance(feeds, Mapping):
                # It spells a signature that is known: its parts are the keys of one.
                hides_frames(check_mapping)(feeds)
            feeds, values = None, ()  # The error holds this frame.
            raise without_internal_frames(error) from error.__cause__

    @hides_frames
    def _prepare(self, fetches: Any, feeds: Mapping[Any, Any] | None) -> Call:
        self._check_open()
        if fetches is REQUIRED:
            raise _misfit(self.run)
        return self._calls.prepare(fetches, feeds)

    @hides_frames
    def make_callable(self, fetches: Any, feeds: Sequence[Any] = ()) -> Callable[..., Any]:
        """A function that runs this signature: it takes the fed values in order.

        Args:
            fetches: as for `run`.
            feeds: the tensors to feed.

        Returns:
            `f(*values)`, which returns what `run` would.
        """
        keys = _listed(feeds)

        def call_session(*values: Any) -> Any:
            __tracebackhide__ = True
            try:
                if len(values) != len(keys):
                    raise InvalidTypeError(
                        f"{counted(len(keys), 'value')} to feed, {len(values)} given"
                    )
                return self.run(fetches, dict(zip(keys, values, strict=True)))
            except BaseException:
                values = ()  # The error holds this frame.
                raise

        self.extend()
        self._calls.call(fetches, keys)
        return call_session

    @hides_frames
    def partial_run(self, fetches: Any, feeds: Sequence[Any] = ()) -> PartialRun:
        """Begin a step whose feeds arrive bit by bit.

        Args:
            fetches: all that will be fetched, as for `run`.
            feeds: all the tensors that will be fed.

        Returns:
            The step; its `run(fetches, feeds)` goes on with it.

        Raises:
            InvalidArgumentError: if there is nothing to fetch.
            OpError: as `run` does, for the whole of it.
        """
        self.extend()
        keys = _listed(feeds)
        rewriting = self._instruments.rewriting
        return PartialRun(self._master, rewriting, fetches, keys)

    @hides_frames
    def explain(
        self,
        fetches: Any,
        feeds: Mapping[Any, Any] | None = None,
        devices: Sequence[str | Device] | None = None,
    ) -> Explanation:
        """The plan of a run, without the run: what goes where and why, and what it will cost.

        Operations are placed as `run` places them: by the shapes that the graph tells. Times and
        memory are predicted by the shapes given here; where these are not known either, the
        smallest count.

        Args:
            fetches: as for `run`.
            feeds: for each tensor that would be fed its value, or only its shape as a tuple or
                `fb.Shape`. A list is a value.
            devices: other devices than the session's, by names such as "gpu:0". They need not be
                here; nothing lives there yet.

        Returns:
            For each device what it has to do, as a table; and as data the reason, beginning and end
            of each operation, the transfers, and the critical path.

        Raises:
            InvalidArgumentError: if a needed placeholder is not in `feeds`, a shape does not fit,
                or a request for a device cannot be met.

        Source: white paper, section 3.2.1.

        >>> import flowbook as fb
        >>> x = fb.placeholder(fb.float32, [None, 100], name="x")
        >>> with fb.device("cpu:1"):
        ...     y = fb.matmul(x, fb.ones([100, 10]), name="y")
        >>> with fb.Session(cpus=2) as sess:
        ...     plan = sess.explain(y, {x: (64, 100)})
        >>> print(plan.reason(y))
        'y' asks for /device:cpu:1
        >>> plan.loads["/job:localhost/task:0/device:cpu:1"].value_bytes
        2560
        """
        self.extend()
        return self._planner.explain(fetches, feeds, devices)

    @hides_frames
    def replace(
        self, placement: Explanation | Mapping[Any, str | None], timeout: float | None = None
    ) -> Replacement:
        """Have operations run on other devices from now on; what they touch moves there.

        It happens between two steps: variables keep their values, queues what is in them, random
        operations go on. What was prepared for the old placement is prepared anew when it runs
        next. What is not named goes where the step would end early, as ever.
        Runs that write wait meanwhile, others go on; where a variable leaves a CPU for an
        accelerator, or comes back, one that is under way then may fail, and is to be run again.

        Args:
            placement: a plan of this session, such as `sess.explain(...).better` or what
                `search_placement` found; or for tensors, operations, variables or names the device
                of each, such as `{W: "cpu:1"}`; None lets an operation go anywhere again.
            timeout: how many seconds to wait for steps that write variables; None is for ever.

        Returns:
            What runs elsewhere, and which resources moved.

        Raises:
            InvalidArgumentError: if an operation cannot run where it should: its request says
                otherwise, there is no kernel, or it cannot part from another one. Nothing has
                moved then, and whenever it fails.
            DeadlineExceededError: if the timeout is over; it says which step was under way.

        Source: white paper, section 3.2.1.

        >>> import flowbook as fb
        >>> W = fb.Variable([1.0, 2.0], name="W")
        >>> with fb.Session(cpus=2) as sess:
        ...     trained = sess.run(fb.assign_add(W, [1.0, 1.0]))
        ...     moved = sess.replace({W: "cpu:1"})
        ...     print([(each.name, each.bytes) for each in moved.state], sess.run(W))
        [('W', 8)] [2. 3.]
        """
        self.extend()
        return self._planner.replace(placement, _deadline(timeout))

    @hides_frames
    def search_placement(
        self,
        fetches: Any,
        feeds: Mapping[Any, Any] | None = None,
        seconds: float = 10.0,
        *,
        tries: int | None = None,
        measure: bool = True,
        seed: int = 0,
    ) -> PlacementSearch:
        """Look for a placement with which a step takes less; nothing is changed.

        For one half of the time placements are simulated, from the greedy one on; for the other
        half steps are run with the best few, and what they change is put back: variables and random
        states. Steps are not run that do more, or where shapes are fed. Ctrl-C ends it, and the
        best until then is kept.

        Args:
            fetches: as for `run`.
            feeds: as for `explain`: for each tensor that would be fed its value, or its shape.
            seconds: how long it may take.
            tries: so many placements are simulated at most. With as many, and time for them, the
                same are found again.
            measure: whether steps are run.
            seed: what the search draws from.

        Returns:
            What it has found; `sess.replace(found.plan)` takes the best, which is never one that
            takes longer than the present one or the greedy one.

        Raises:
            InvalidArgumentError: if `seconds` or `tries` is not positive; and as `explain`.
            OpError: what an operation raised, where steps are run.

        Source: white paper, section 3.2.1; Mirhoseini et al., "Device Placement Optimization with
        Reinforcement Learning" (2017), for the idea to search.

        >>> import flowbook as fb
        >>> x = fb.placeholder(fb.float32, [512, 512], name="x")
        >>> y = fb.add_n([fb.reduce_sum(fb.exp(x * float(i))) for i in range(3)], name="y")
        >>> with fb.Session(cpus=2) as sess:
        ...     found = sess.search_placement(y, {x: (512, 512)}, tries=100)
        ...     found.plan.seconds <= sess.explain(y, {x: (512, 512)}).seconds
        True
        """
        self.extend()
        search = search_of(seconds, tries, seed)
        return self._planner.search(fetches, feeds, search, seconds / 2 if measure else None)

    # Watching

    @hides_frames
    def summarize(
        self,
        every: int | None = None,
        seconds: float | None = None,
        to: Any = (),
        fetches: Any = None,
        series: str | None = None,
        compute: bool = False,
    ) -> Summarizing:
        """Have runs give the graph's summaries (`fb.summary`), in the steps that they make anyway.

        A summary joins a run that computes all that it takes, or any with `compute=True`; what it
        shows of a variable is the value from before the step. Runs give summaries if they make a
        step of a training (of an operation that `minimize` gave); other runs where they are named
        by what they fetch. The step is what the optimizer's `global_step` counted before the run.
        Without one, it is the number of earlier runs of the same fetches and feeds; of runs that do
        not train, the number of steps of the training, where that gives summaries too.

        Args:
            every: the first run of a signature gives summaries, and then each so many-th; 1 if
                neither this nor `seconds` is given.
            seconds: after so many seconds the next run gives summaries.
            to: log directories in TensorBoard's format, by their paths, and other sinks; one or a
                list of them. Each session writes to a folder of its own in it.
            fetches: exactly what the runs fetch, if they do not train.
            series: what comes before the tags of such runs: "test" makes "test/loss" of "loss".
            compute: whether what a run does not compute is computed for its summaries, in the same
                step, where its feeds suffice and nothing but values is read.

        Returns:
            What it gives: `.history` keeps it for showing, in bounded memory; `.close()` ends it.

        Raises:
            UnimplementedError: if a log directory is wanted and tensorboard is not installed.

        Source: white paper, section 9.1.
        """
        self._check_open()
        rule = (every, seconds, to, fetches, series, compute)
        return summarized(self._instruments, self.graph, rule)

    @property
    def summary_history(self) -> SummaryHistory | None:
        """What its runs have summarised; None before `summarize`, and when it is closed."""
        summarizer = self._instruments.find(Summarizer)
        return summarizer.history if summarizer is not None else None

    @hides_frames
    def pipeline(self) -> InputPipeline:
        """Whether runs wait for their input, and what each queue has done since it was made.

        Times are counted from the first element that was asked for to the last, pauses between runs
        among them; `fb.PipelineView` shows the last minute, without pauses.

        Returns:
            The queues of the session, as a table; `.verdict` is the answer in words, and `.queues`
            has the numbers: fill, rates, for which part of the time who waited, runners, what waits
            now and since when.

        >>> import numpy as np
        >>> import flowbook as fb
        >>> x = fb.train.batches(np.arange(8), 2, name="numbers")
        >>> with fb.Session() as sess:
        ...     totals = list(fb.train.until_end(sess, fb.reduce_sum(x)))
        ...     [queue] = sess.pipeline().queues
        >>> queue.name, queue.put, queue.taken, queue.fill
        ('x', 4, 4, 0)
        """
        self._check_open()
        return input_pipeline(self.watch().look())

    def watch(self) -> Watch:
        """What looks at its queues."""
        made = Watch(self.graph, offered(self._monitor, _SIGHT))
        self._watches.add(made)
        return made

    @hides_frames
    def guard(self, nonfinite: bool = True, allow: Any = ()) -> Guard | None:
        """Fail a run in which an operation gives NaN or infinities, naming the first that does.

        Every floating-point value of a run is checked, in gradients and updates too. A variable is
        written only after everything that could be computed before is checked; the error says
        which variables were changed all the same, what the operation was given, and where it was
        defined. What is fed is no error by itself, but what an operation makes of it is, and so is
        writing it to a variable. Initial values are checked when they are read, and of what a
        Python function does (`fb.py_func`) only what it returns.

        Args:
            nonfinite: False ends all guards of the session.
            allow: operations, tensors or name scopes, by name, whose values need not be finite,
                such as the mask of an attention.

        Returns:
            The guard, which as a context manager ends with the block, and what was in force before
            it goes on; None if guards were ended. Of several the latest is in force.

        >>> import flowbook as fb
        >>> x = fb.placeholder(fb.float32, [2])
        >>> y = fb.reduce_sum(fb.log(x, name="logs"))
        >>> with fb.Session() as sess, sess.guard():
        ...     try:
        ...         sess.run(y, {x: [1.0, -1.0]})
        ...     except fb.errors.InvalidArgumentError as error:
        ...         print(error.message)
        Log 'logs': it gave 1 NaN among 2 values of shape [2], the first at [1]
        """
        self._check_open()
        return guard(self._instruments, nonfinite, allow)

    @hides_frames
    def retain_feeds(
        self, retain: bool = True, most_bytes: int = MOST_RETAINED
    ) -> RetainedFeeds | None:
        """Keep a copy of what the last run was fed with, for looking at tensors: see `peek`.

        Args:
            retain: False ends it, and lets go of the arrays.
            most_bytes: feeds that take more together are not kept.

        Returns:
            What keeps them, which as a context manager ends with the block; None if it was ended.

        Raises:
            InvalidArgumentError: if `most_bytes` is not a positive integer.
        """
        self._check_open()
        return retain_feeds(self._instruments, retain, most_bytes)

    @hides_frames
    def trace(self, most_calls: int = MOST_CALLS) -> Trace:
        """Note of each kernel of the runs when it was ready, began and ended, and where.

        Runs that are traced do what they do otherwise, kernel by kernel. Of initialising variables,
        of partial runs and of looking at tensors nothing is noted. When it has ended, `explain`
        predicts by what it noted.

        Args:
            most_calls: so many calls of kernels are kept; the rest is counted.

        Returns:
            The trace, which as a context manager ends with the block. It prints as a table;
            `.by_operation()`, `.by_scope()` and `.by_device()` say where the time went, and
            `.save("trace.json")` writes a file for Perfetto.

        Raises:
            InvalidArgumentError: if `most_calls` is not a positive integer.
            FailedPreconditionError: if the session is being traced already.

        >>> import flowbook as fb
        >>> x = fb.placeholder(fb.float32, [2])
        >>> y = fb.reduce_sum(fb.exp(x, name="e"), name="total")
        >>> with fb.Session() as sess, sess.trace() as trace:
        ...     total = sess.run(y, {x: [0.0, 0.0]})
        >>> [call.operation for call in trace.calls]
        ['e', 'total']
        """
        self._check_open()
        return trace(self._instruments, self._planner.learn, most_calls)

    @property
    def retained_feeds(self) -> dict[Tensor, Any]:
        """What the last run was fed with, by tensor, where `retain_feeds` keeps it; else empty."""
        feeds = self._instruments.find(RetainedFeeds)
        return dict(feeds.latest) if feeds is not None else {}

    @hides_frames
    def peek(
        self,
        tensor: Any,
        feeds: Mapping[Any, Any] | None = None,
        most_bytes: int = peeking.MOST_BYTES,
        timeout: float = peeking.SECONDS,
    ) -> Any:
        """The value of a tensor, without any trace: what would change something is refused.

        A fetch is refused if it needs an operation that writes, draws random numbers or acts
        outside the graph, or a variable without a value. What is not fed here has the value that
        the last run fed, where `retain_feeds` keeps that. No summaries are made and nothing is
        guarded.

        Args:
            tensor: a tensor, a variable or a name.
            feeds: values for tensors, as for `run`.
            most_bytes: larger ones are refused.
            timeout: seconds after which it is given up.

        Raises:
            FailedPreconditionError: if it would change something, or a variable has no value yet.
            InvalidArgumentError: if a placeholder has no value, or a fed value does not fit.
            InvalidTypeError: if `feeds` is no dict.
            ResourceExhaustedError: if the tensor is too large.
            DeadlineExceededError: if the timeout is over.
            OpError: what an operation raised.

        >>> import flowbook as fb
        >>> x = fb.placeholder(fb.float32, [2])
        >>> h = x * 2
        >>> with fb.Session() as sess, sess.retain_feeds():
        ...     total = sess.run(fb.reduce_sum(h), {x: [1.0, 2.0]})
        ...     print(sess.peek(h))
        [2. 4.]
        """
        if self._version != self._members.version:
            self.extend()
        retained = self._instruments.find(RetainedFeeds)
        return peeking.peek(self._master, tensor, feeds, retained, most_bytes, timeout)

    # Life

    def extend(self) -> None:
        """Take what the graph gained since the last run. `run` does it by itself.

        Raises:
            FailedPreconditionError: if the session is closed.
        """
        self._extend()

    @hides_frames
    def _extend(self) -> None:
        with self._lock:
            self._check_open()
            version, retirements = self._members.version, self._members.retirements
            self._master.extend()
            self._holdings.resume(self._before)
            check_repetition(self.graph)
            # What an instrument does with a signature may depend on all of the graph.
            if retirements != self._retirements or self._instruments.all:
                self._calls.forget()
                self._retirements = retirements
            self._version = version

    def _before(self) -> Holdings | None:
        """What is held by the live session, with values, in whose place the cell made this one."""
        author = self._site.author
        before = author.succession.before(self) if author is not None else None
        if isinstance(before, Session) and before.graph is self.graph and before.has_values:
            return before._holdings
        return None

    @hides_frames
    def checkpoint(
        self,
        to: Any,
        every: int | None = None,
        seconds: float | None = None,
        saver: Saver | None = None,
        metric: Any = None,
    ) -> Checkpointing:
        """Save the variables while runs train them.

        Such are the runs of an operation that `minimize` gave; in a graph without one, those that
        change a trainable variable. Values are written behind the training where memory allows,
        which is delayed only by writing to new memory what is still being saved.
        `fb.Session(checkpoint=to)` goes on from there.

        Args:
            to: a folder; the checkpoints are its "step-100" and so on, by what the optimizer's
                `global_step` counts or, without one, by the number of runs that trained.
            every: after each so many runs that train. Where these are quicker than the files, what
                was due in between may be left out; what was last due never is: when the session, or
                the script, has ended, it is written. Runs after that are not saved: `.save()` does
                so, before the end.
            seconds: after so many seconds, with the next run that trains; 600 if neither this nor
                `every` is given.
            saver: what saves, and which checkpoints stay; by default `fb.train.Saver()`.
            metric: a tensor, such as the loss, by whose value checkpoints are compared
                (`keep_best`); where a run does not compute it, it has none.

        Returns:
            What saves: `.save()` does so now, `.flush()` waits until it is written, `.close()` ends
            it.

        Raises:
            InvalidArgumentError: if `every` or `seconds` is not positive.

        Source: white paper, section 3.3.
        """
        self._check_open()
        rule = (to, every, seconds, saver, metric)
        made = checkpointed(self, self._instruments, *rule)
        author = sites.capture().author
        if author is not None:
            author.own(made)  # When its cell runs again, nothing is saved twice.
        return made

    @hides_frames
    def reset(self, containers: str | Sequence[str] | None = None) -> None:
        """Drop the values of variables: they are initialised again on their next use.

        Args:
            containers: the name of a container, or several, that are dropped for all sessions of
                this process; "" is the session's own, whose random operations begin afresh too. By
                default that.

        Raises:
            InvalidTypeError: if they are no names, or it is called on the class, as in TensorFlow.
        """
        if not isinstance(self, Session):
            raise InvalidTypeError(
                f"containers are dropped by a session, and {self!r:.80} is none",
                hint="any session of this process drops them for all: sess.reset(containers)",
            )
        self._check_open()
        named = [containers] if isinstance(containers, str) else containers
        names = [""] if named is None else named
        if not isinstance(names, list | tuple) or not all(isinstance(n, str) for n in names):
            raise InvalidTypeError(f"containers are named by texts, not {containers!r:.80}")
        for name in names:
            if name:
                reset_container(name)
            else:
                self._holdings.reset()

    def close(self) -> None:
        """End the session: its variables are gone. May be called again.

        Runs of other threads are cancelled where they wait, or a loop comes to its next iteration.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._version = -1
        self._calls.close()
        self._holdings.close()
        if self.name is not None and _named.get(self.name) is self:
            del _named[self.name]
        self._ran = self.ran()
        for watch in list(self._watches):
            watch.find()
        try:
            self._instruments.close()
        finally:
            self._master.close()

    def give_way(self, successor: Session) -> str:
        """End: the cell that made it has made another in its place. Its last values are kept.

        Returns:
            What the cell's output says of it.
        """
        mine, following = self._holdings, successor._holdings
        if successor._before() is mine:
            following.keep(mine)
        predecessor = mine.leave(successor.site)
        self.close()
        return following.succeed(mine, predecessor)

    def lose_cell(self) -> None:
        """Live on: front ends report as deleted also what is cut and pasted elsewhere."""

    @property
    def has_values(self) -> bool:
        """Whether any of its variables has a value."""
        return bool(self._holdings.values)

    @hides_frames
    def take_values(self, of: Session | None = None) -> list[str]:
        """Give the variables the values that they have, or last had, in another session.

        When a notebook cell that made a session runs again and makes another, the first is closed,
        and its variables' values stay in memory until the cell runs once more or the new session is
        closed. Variables of another graph are found by their names. Random operations begin afresh.

        Args:
            of: the other session; by default the one that its cell closed when it made this one.

        Returns:
            The names of the variables that took values; others had none, or one of another dtype or
            shape.

        Raises:
            FailedPreconditionError: if there is no such session, or it has no values.

        >>> import flowbook as fb
        >>> W = fb.Variable([1.0, 2.0], name="W")
        >>> one, other = fb.Session(), fb.Session()
        >>> trained = one.run(fb.assign_add(W, [10.0, 10.0]))
        >>> other.take_values(one)
        ['W']
        >>> other.run(W)
        array([11., 12.], dtype=float32)
        """
        self._check_open()
        if of is not None and not isinstance(of, Session):
            raise InvalidTypeError(f"values are taken of a session, not {of!r}")
        source = self._holdings.predecessor if of is None else of._holdings
        if source is None:
            raise FailedPreconditionError(
                "this session was not made in place of another that had values",
                hint="say whose: sess.take_values(other); fb.open_sessions() lists those that live",
            )
        if not source.values:
            raise FailedPreconditionError(f"no variable has a value in {of!r}")
        return self._holdings.take(source)

    @hides_frames
    def snapshot(
        self, variables: Sequence[Variable] | None = None, timeout: float | None = None
    ) -> Snapshot:
        """What variables hold between two steps, and what else a training goes on from.

        It costs no more than references: what a step writes meanwhile, it writes elsewhere.

        Args:
            variables: which; by default all of the graph. Those without values are initialised.
            timeout: how many seconds to wait for steps that write variables; None is for ever.

        Raises:
            DeadlineExceededError: if the timeout is over; it says which step was under way.
            FailedPreconditionError: if a variable has no value, and the session initialises none.
        """
        self.extend()
        chosen = self.graph.variables() if variables is None else variables
        return self._holdings.snapshot(chosen, _deadline(timeout))

    @hides_frames
    def put(self, snapshot: Snapshot, timeout: float | None = None) -> None:
        """Have variables hold what a snapshot has, and the rest go on from there.

        Args:
            snapshot: of this session, or of another one of the same graph.
            timeout: how many seconds to wait for steps that write variables; None is for ever.

        Raises:
            DeadlineExceededError: if the timeout is over; it says which step was under way.
            FailedPreconditionError: if both sessions are deterministic, and other bits come out
                here than there.
        """
        self.extend()
        self._holdings.put(snapshot, _deadline(timeout))

    @property
    def trips(self) -> dict[str, int]:
        """How often the body of each loop ran in the last run that had it, by the loop's name.

        Of a loop in another one these are its iterations in all of the other's. Only runs that
        ended without an error count. The picture of the graph shows them too (`GraphView`).

        >>> import flowbook as fb
        >>> last = fb.while_loop(lambda i: i < 5, lambda i: i + 1, [0], name="count")
        >>> with fb.Session() as sess:
        ...     _ = sess.run(last)
        ...     print(sess.trips)
        {'count': 5}
        """
        return dict(self.ran().trips)

    def ran(self) -> Ran:
        """What loops and branches did in the last run that had them."""
        return self._ran or (Ran({}, {}) if self._monitor is None else self._monitor.ran())

    @property
    def site(self) -> Site:
        """Where it was made."""
        return self._site

    @property
    def feeding(self) -> Feeding:
        """What fills its queues, where the graph has runners for them."""
        return offered(self._monitor, _SIGHT).feeding

    @property
    def closed(self) -> bool:
        """Whether the session was closed."""
        return self._closed

    def _check_open(self) -> None:
        if not self._closed:
            return
        successor = self._holdings.successor
        if successor is None:
            raise FailedPreconditionError(
                "this session is closed", hint="make a new one: sess = fb.Session()"
            )
        raise FailedPreconditionError(
            f"this session is closed: another was made in its place at {successor.place}",
            hint="use that one; its take_values() brings the values back that this one had",
        )

    def __enter__(self) -> Session:
        self._check_open()
        block = ExitStack()
        self._blocks.append(block)
        if get_default_graph() is not self.graph:
            block.enter_context(self.graph.as_default())
        return self

    def __exit__(self, *_: object) -> None:
        self._blocks.pop().close()
        self.close()

    def list_devices(self) -> list[DeviceDescription]:
        """The devices that its operations run on: name, kind, memory, and what is taken of it.

        What arrays have taken at most, `peak`, is counted all the time, in no trace, of devices
        whose memory is not the host's.
        """
        return self._planner.list_devices()

    def __repr__(self) -> str:
        state = "closed " if self._closed else ""
        return f"<{state}Session of {self.graph!r}, made at {self._site.place}>"


def open_sessions(graph: Graph | None = None) -> list[Session]:
    """The sessions that are not closed, in the order in which they were made.

    A session lives while something refers to it, until it is closed. In a notebook it is closed
    also when the cell that made it has run again and made another in its place.

    Args:
        graph: the graph that they run; None for any.
    """
    # All references at once: other threads make sessions meanwhile.
    made = [reference() for reference in _made.valuerefs()]
    found = [each for each in made if each is not None and not each.closed]
    return [each for each in found if graph is None or each.graph is graph]


def _misfit(method: Callable[..., Any], *args: Any, **kwargs: Any) -> InvalidTypeError:
    found = misfit(method, args, kwargs)
    assert found is not None
    return found


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else deadline_after(timeout)


def _lossy(given: Any) -> bool | tuple[Tensor | str, ...]:
    if isinstance(given, bool):
        return given
    if not isinstance(given, list | tuple) or not all(isinstance(e, Tensor | str) for e in given):
        raise InvalidTypeError(
            f"lossy_transfer is a bool, or a list of tensors and their names, not {given!r:.80}"
        )
    return tuple(given)


def _listed(feeds: Any) -> list[Any]:
    if not isinstance(feeds, list | tuple):
        raise InvalidTypeError(f"feeds is a list of the tensors to feed, not {feeds!r}")
    return list(feeds)
