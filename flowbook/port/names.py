"""What a name of TensorFlow 1 is here, as the errors say that Flowbook raises for it."""

from __future__ import annotations

import inspect
import re
import sys
from typing import Any, NamedTuple

from flowbook._renamed import IN_CONTRIB, OF_COLLECTIONS
from flowbook.graph.definition.keywords import GONE, RENAMED, hint_for

# Where TensorFlow 1 has names that are found in another namespace here.
_MOVED = {
    "compat.v1": "",
    "contrib.framework": "",
    "contrib.layers.l1_regularizer": "regularizers.l1",
    "contrib.layers.l2_regularizer": "regularizers.l2",
    "contrib.layers.xavier_initializer": "initializers.glorot_uniform",
    "contrib.layers.flatten": "layers.flatten",
    "contrib.lookup": "lookup",
    "contrib.rnn": "nn",
    "lookup.experimental": "lookup",
    "contrib.slim": "contrib.layers",
    "inv": "reciprocal",
    "models.rnn": "python.ops",
    "nn.rnn_cell": "nn",
    "nn.seq2seq": "contrib.legacy_seq2seq",
    "python.ops.rnn": "nn",
    "python.ops.rnn_cell": "nn",
    "python.ops.seq2seq": "contrib.legacy_seq2seq",
    "python_io.TFRecordWriter": "train.RecordWriter",
    "python_io.tf_record_iterator": "train.read_records",
}
# What is taken in another order there.
_ORDERS = {
    "nn.bidirectional_dynamic_rnn": (
        *("cell_fw", "cell_bw", "inputs", "sequence_length", "initial_state_fw"),
        *("initial_state_bw", "dtype", "parallel_iterations", "swap_memory", "time_major"),
    ),
    "nn.dynamic_rnn": (
        *("cell", "inputs", "sequence_length", "initial_state", "dtype", "parallel_iterations"),
        *("swap_memory", "time_major", "scope"),
    ),
    "nn.static_bidirectional_rnn": (
        *("cell_fw", "cell_bw", "inputs", "initial_state_fw", "initial_state_bw", "dtype"),
        *("sequence_length", "scope"),
    ),
    "nn.static_rnn": ("cell", "inputs", "initial_state", "dtype", "sequence_length", "scope"),
    "random_categorical": ("logits", "num_samples", "seed", "name", "dtype"),
}
_USE = ": use "
_PATH = re.compile(r"fb((?:\.\w+)+)")


class Spelling(NamedTuple):
    """How a name is spelt here.

    Attributes:
        path: what follows the module's name, such as "nn.relu"; None if there is no such name.
        instead: what a person is told to write, where there is none; it may be empty.
    """

    path: str | None
    instead: str = ""


def moved(path: str) -> str:
    """What a name of TensorFlow 1's own would be, if it had all names in the same places."""
    for there, here in _MOVED.items():
        if path == there or path.startswith(there + "."):
            return moved(".".join(filter(None, (here, path.removeprefix(there)[1:]))))
    return path


def order(path: str) -> tuple[str, ...]:
    """The arguments of a function there, by its name here, if it takes them in another order."""
    return _ORDERS.get(path, ())


def spelling(path: str) -> Spelling:
    """How a name of TensorFlow 1 is spelt here.

    Args:
        path: what follows the module's name, such as "nn.sigmoid".
    """
    path = moved(path)
    if not path:
        return Spelling(None)
    parts = path.split(".")
    found: Any = sys.modules["flowbook"]
    for position, part in enumerate(parts):
        try:
            found = getattr(found, part)
        except AttributeError as error:
            rest = ".".join(parts[position + 1 :])
            instead = _of_contrib(rest) if part == "contrib" else str(error).partition(_USE)[2]
            if part == "GraphKeys":
                instead = OF_COLLECTIONS.get(rest, instead)
            return _from(instead, part, rest if part != "contrib" else "")
    return Spelling(path)


def _of_contrib(path: str) -> str:
    """What there is for a name of TensorFlow 1's `contrib`."""
    while path and path not in IN_CONTRIB:
        path = path.rpartition(".")[0]
    return IN_CONTRIB[path]


def _from(instead: str, name: str, rest: str) -> Spelling:
    """The spelling that an error tells of, for a name that is not there and what follows it."""
    if instead.startswith("the names themselves") and rest:
        direct = spelling(rest)
        return direct if direct.path else spelling(f"{name}_{rest}")
    renamed = _PATH.fullmatch(instead)
    if renamed is None:
        return Spelling(None, instead)
    return spelling(".".join(filter(None, (renamed[1][1:], rest))))


def member(path: str) -> Any:
    """What has a name of Flowbook's."""
    found: Any = sys.modules["flowbook"]
    for part in path.split("."):
        found = getattr(found, part)
    return found


def keyword(path: str, given: str) -> Spelling:
    """How a keyword of a function is spelt here; "" where it is to be left out.

    Args:
        path: the function's name here.
        given: the keyword.
    """
    try:
        parameters = inspect.signature(member(path)).parameters
    except (TypeError, ValueError):
        return Spelling(given)
    if given in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return Spelling(given)
    renamed = [new for new in RENAMED.get(given, ()) if new in parameters]
    if renamed:
        return Spelling(renamed[0])
    if GONE.get(given, "").startswith("leave it out") or path == "Session":
        return Spelling("")
    hint = hint_for(given, list(parameters)) or "there is no such argument"
    return Spelling(None, hint)
