"""Exchange with TensorFlow by its own files, without TensorFlow: graphs and V2 checkpoints."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.dtypes import DType
from flowbook.graph.model.errors import hides_frames
from flowbook.graph.ops.state.variables import Variable

if TYPE_CHECKING:
    from flowbook.exec.session.session import Session
    from flowbook.tensorflow.model import Model

__all__ = ["list_variables", "load", "load_variable", "restore", "save"]


@hides_frames
def load(
    model: Any,
    *,
    graph: Graph | None = None,
    name: str | None = None,
    outputs: Sequence[str] | None = None,
    input_map: Mapping[str, Any] | None = None,
    tags: Sequence[str] | None = None,
    clear_devices: bool = False,
) -> Model:
    """Make a graph of TensorFlow part of a graph, to be run, extended, trained and saved.

    Each node becomes an operation of its name, or several, the last of which has it. Branches and
    loops, variables, queues and their runners, control dependencies and devices are what they were.
    Nodes that save and restore variables, or write summaries, are left out: `Model.restore` reads
    checkpoints. Which variables are trained a MetaGraph says; of a graph alone, those of floating
    point.

    Calls of functions become copies of these, in a scope of the call's name, and branches and loops
    by functions Flowbook's own; so saved models of TensorFlow 2 are read, with their signatures.
    Gradients are those of what a function consists of: which function is to give them instead, as
    `tf.custom_gradient` has it, no file says.

    Args:
        model: a path, or the bytes, of a GraphDef ("frozen.pb"), a MetaGraph ("model.ckpt.meta") or
            a saved model ("saved_model.pb", or its folder), in binary or as text; or a message of
            one of these types from TensorFlow itself.
        graph: the graph to extend; by default the default graph.
        name: a name scope for its operations; by default they keep their names.
        outputs: names of tensors or operations: only what these need is read.
        input_map: tensors that stand for some of the graph's, by their names there; of the nodes
            that give those nothing is read, so that their types need no translation.
        tags: which graph of a saved model that has several.
        clear_devices: whether to forget on which devices nodes are to run.

    Returns:
        A Model: `model["name:0"]` is a tensor by its name in the file; `.inputs`, `.outputs`,
        `.variables` and `.signatures` are dicts; `model.restore(sess)` gives the variables the
        values of the checkpoint beside the file.

    Raises:
        NotFoundError: if there is no such file, or no such node.
        DataLossError: if it holds no graph.
        InvalidArgumentError: if the graph is not valid.
        AlreadyExistsError: if names are taken; a scope of their own keeps them apart.
        UnimplementedError: if it has types of operations without a translation, all of which are
            named, with a node of each.

    Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/train/import_meta_graph.

    ```python
    model = fb.tensorflow.load("run/model.ckpt-100.meta")
    with fb.Session() as sess:
        model.restore(sess)
        scores = sess.run(model["softmax:0"], {model["x:0"]: images})
    ```
    """
    from flowbook.tensorflow.model import load as read
    from flowbook.tensorflow.opening import checkpoint_beside, folder_of, opened

    is_path = isinstance(model, str | os.PathLike)
    return read(
        opened(model, tags),
        checkpoint_beside(model) if is_path else None,
        folder_of(model) if is_path else None,
        graph=graph,
        name=name,
        outputs=outputs,
        input_map=input_map,
        clear_devices=clear_devices,
    )


@hides_frames
def save(
    fetches: Any,
    path: Any = None,
    *,
    session: Session | None = None,
    inputs: Any = (),
    as_text: bool = False,
) -> Any:
    """Write the part of a graph that computes some tensors as a GraphDef of TensorFlow.

    Nodes have the names of operations. With a session, variables become constants of the values
    that they have there: the graph is frozen. Without one they are variables there too; what
    initialises them all is the node "init".

    Args:
        fetches: tensors and operations: one, or a list.
        path: the file to write; None writes none.
        session: where the values of variables come from.
        inputs: tensors that become placeholders, whatever computes them here.
        as_text: whether the file is one of text.

    Returns:
        The GraphDef, whose `SerializeToString()` TensorFlow reads.

    Raises:
        UnimplementedError: if operation types cannot be written, all of which are named. No file
            is written then.
        ResourceExhaustedError: if the graph is larger than a file of this kind can be.

    Source: https://www.tensorflow.org/api_docs/python/tf/compat/v1/GraphDef.

    ```python
    fb.tensorflow.save([scores], "frozen.pb", session=sess)
    ```
    """
    from flowbook.tensorflow.writing import save as write

    return write(fetches, path, session=session, inputs=inputs, as_text=as_text)


@hides_frames
def list_variables(path: Any) -> list[tuple[str, DType, tuple[int, ...]]]:
    """The names, dtypes and shapes of what a V2 checkpoint of TensorFlow holds, sorted by name.

    Args:
        path: what its files' names begin with, such as "run/model.ckpt-100", or a URL of that.

    Raises:
        NotFoundError: if there is none.
        DataLossError: if its index is damaged.
        UnimplementedError: if google-crc32c is missing, or the index is compressed otherwise than
            by snappy.
    """
    from flowbook.tensorflow.restoring import list_variables as listed

    return listed(path)


@hides_frames
def load_variable(path: Any, name: str) -> Any:
    """A value from a V2 checkpoint of TensorFlow; what was saved in parts is put together.

    Args:
        path: the checkpoint, as for `list_variables`.
        name: as `list_variables` gives it.

    Returns:
        An array; of strings, one of bytes.

    Raises:
        NotFoundError: if there is none.
        DataLossError: if it is damaged; it says in which file, at which byte.
    """
    from flowbook.tensorflow.restoring import load_variable as loaded

    return loaded(path, name)


@hides_frames
def restore(
    sess: Session,
    path: Any,
    var_list: Mapping[str, Variable] | Iterable[Variable] | None = None,
    *,
    partial: bool = False,
) -> list[str]:
    """Give variables the values of a V2 checkpoint of TensorFlow: all, or none if one is wrong.

    Args:
        sess: the session.
        path: the checkpoint, as for `list_variables`.
        var_list: the variables, or a dictionary of them by their names in the checkpoint. By
            default all variables of the graph.
        partial: whether variables that the checkpoint does not have keep what they have.

    Returns:
        The names, in the graph, of the variables that were restored.

    Raises:
        NotFoundError: if there is no checkpoint, or it lacks a variable; it gives the nearest name.
        InvalidArgumentError: if a value has another dtype, or another shape.
        DataLossError: if it is damaged.

    ```python
    fb.tensorflow.restore(sess, "run/model.ckpt-100", {"dense/kernel": W, "dense/bias": b})
    ```
    """
    from flowbook.tensorflow.restoring import restore as restored

    return restored(sess, path, var_list, partial=partial)
