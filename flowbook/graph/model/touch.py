"""What running an operation does to a resource, or to the world outside the graph.

An operation touches at most one resource: one that it owns, or one whose handle it takes. How the
touches of one resource are ordered within a step, where no path orders them, is no property of the
operation but a policy of the resource's kind.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, NamedTuple

from flowbook.graph.model.errors import AlreadyExistsError, NotFoundError

__all__ = ["Access", "Touch"]


class Access(Enum):
    """How a resource is touched."""

    READ = "reads"
    WRITE = "writes"
    DRAW = "draws from"
    WAIT = "waits on"
    # Only the order that the graph itself says counts; nothing of it is left when the step ends.
    STEP = "changes what lives within a step"
    OUTSIDE = "acts outside the graph"


class Touch(NamedTuple):
    """Which resource running an operation touches, and how.

    Attributes:
        access: what is done to it.
        argument: the place of the input that takes its handle; None for the resource that the
            operation owns, and for the world outside.
        only_fails: whether nobody can tell that it ran unless it fails the step, as an assertion,
            which only takes part in the order of what happens outside.
        takes: whether it takes elements out of a queue or its like, and puts them back where a step
            is given up that has not used them (`AsyncContext.on_cancel`).
        puts: whether it puts elements into a queue.
        holds: whether it has what it waited for until its step ends, or an operation that ends
            waits, to which what it gave has led, lets go of that.
        ends_waits: whether it may let go on what waits there to take or to hold, as what closes or
            releases does.
    """

    access: Access
    argument: int | None = None
    only_fails: bool = False
    takes: bool = False
    puts: bool = False
    holds: bool = False
    ends_waits: bool = False

    @property
    def gives(self) -> bool:
        """Whether what waits there to take may go on for it."""
        return self.puts or self.ends_waits

    @property
    def is_undone(self) -> bool:
        """Whether nothing of it is left where the step fails in which it was done."""
        is_passing = self.access in (Access.READ, Access.DRAW, Access.STEP)
        return is_passing or self.takes or self.holds or self.only_fails

    def is_woken_by(self, other: Touch) -> bool:
        """Whether an operation that touches the same resource so may let one go on that waits."""
        wants = self.takes or self.holds
        return (wants and other.gives) or (self.puts and other.takes)


READS = Touch(Access.READ, 0)
WRITES = Touch(Access.WRITE, 0)
DRAWS = Touch(Access.DRAW)
WAITS = Touch(Access.WAIT, 0)
ENDS_WAITS = WAITS._replace(ends_waits=True)
TAKES = WAITS._replace(takes=True)
PUTS = WAITS._replace(puts=True)
HOLDS = WAITS._replace(holds=True)
WITHIN_STEP = Touch(Access.STEP)
OUTSIDE = Touch(Access.OUTSIDE)
ASSERTS = Touch(Access.OUTSIDE, only_fails=True)


class Order(Enum):
    """How touches of one resource are ordered in a step, where no path orders them."""

    # A read sees the value from before the writes; writes go in the order of construction.
    READS_FIRST = "reads first"
    # Every touch has a number of its own (its place in a sequence of draws), whenever it happens.
    NUMBERED = "numbered"
    # What holds it does so one after the other, in the order of construction.
    IN_TURN = "in turn"
    # None: they meet in the resource as they come, and wait there for one another.
    FREE = "free"


class ResourceKind(NamedTuple):
    """A kind of resource.

    Attributes:
        name: such as "variable".
        order: how unordered touches of one such resource are ordered.
        is_shared: whether a named container shares it by name; if not, it belongs to its session.
        is_closable: whether operations close it.
        is_queue: whether what is put in is taken out again, by what waits for it.
        held: the attribute that says, of what owns one, of which dtype the arrays are that lie in
            it, on the device where it lives; empty if there are none, or in host memory alone.
        is_seeded: whether the numbers that it draws follow from the attributes `graph_seed` and
            `seed` of what owns one, or, where there is a graph's seed alone, from that and its
            name.
        comes_of_python: whether what it gives is what Python code gives, which begins with the
            first again when its cell runs again.
    """

    name: str
    order: Order
    is_shared: bool
    is_closable: bool = False
    is_queue: bool = False
    held: str = ""
    is_seeded: bool = False
    comes_of_python: bool = False

    @property
    def attributes(self) -> list[str]:
        """Those that what owns one has."""
        seeds = ["graph_seed", "seed"] if self.is_seeded else []
        return [self.held, *seeds] if self.held else seeds


_kinds: dict[str, ResourceKind] = {}


def define_resource_kind(name: str, order: Order, is_shared: bool, **others: Any) -> ResourceKind:
    """Admit a kind of resource; what makes resources of it is registered in `exec`.

    Args:
        name, order, is_shared, others: as of `ResourceKind`.

    Raises:
        AlreadyExistsError: if there is a kind of that name.
    """
    if name in _kinds:
        raise AlreadyExistsError(f"there is a kind of resource {name!r} already")
    kind = _kinds[name] = ResourceKind(name, order, is_shared, **others)
    return kind


def resource_kind(name: str) -> ResourceKind:
    """The kind of resource of that name.

    Raises:
        NotFoundError: if there is none.
    """
    try:
        return _kinds[name]
    except KeyError:
        raise NotFoundError(
            f"{name!r} is no kind of resource", hint=f"there are {', '.join(sorted(_kinds))}"
        ) from None


VARIABLE = define_resource_kind("variable", Order.READS_FIRST, is_shared=True, held="dtype")
RANDOM_STATE = define_resource_kind("random_state", Order.NUMBERED, is_shared=False, is_seeded=True)
HASH_TABLE = define_resource_kind("hash_table", Order.READS_FIRST, is_shared=True)
# What saves and restores: it acts outside the graph, in that order.
CHECKPOINT_FILES = define_resource_kind("checkpoint_files", Order.FREE, is_shared=False)
COUNTER = define_resource_kind("counter", Order.NUMBERED, is_shared=False)
STREAM = define_resource_kind("stream", Order.FREE, is_shared=False, comes_of_python=True)


def _queue_kind(name: str, **others: bool) -> ResourceKind:
    return define_resource_kind(name, Order.FREE, True, is_closable=True, is_queue=True, **others)


FIFO_QUEUE = _queue_kind("fifo_queue")
# What a source gives, one after the other.
SOURCE_QUEUE = _queue_kind("source_queue", comes_of_python=True)
# Its elements belong to a checkpoint.
SAVED_QUEUE = _queue_kind("saved_queue")
PADDING_FIFO_QUEUE = _queue_kind("padding_fifo_queue")
PRIORITY_QUEUE = _queue_kind("priority_queue")
RANDOM_SHUFFLE_QUEUE = _queue_kind("random_shuffle_queue", is_seeded=True)
STACK = _queue_kind("stack")
BUCKET_QUEUE = _queue_kind("bucket_queue")

MUTEX = define_resource_kind("mutex", Order.IN_TURN, is_shared=True)
BARRIER = define_resource_kind("barrier", Order.FREE, True, is_closable=True)
ACCUMULATOR = define_resource_kind("accumulator", Order.FREE, is_shared=True, held="dtype")
SPARSE_ACCUMULATOR = define_resource_kind("sparse_accumulator", Order.FREE, is_shared=True)
# What runs leave for later ones, by handles.
SESSION_TENSORS = define_resource_kind("session_tensors", Order.FREE, is_shared=True)
READER = define_resource_kind("reader", Order.FREE, is_shared=True)
# What reads and writes files, as operations: it acts outside the graph, in that order.
FILES = define_resource_kind("files", Order.FREE, is_shared=False)
