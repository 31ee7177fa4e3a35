"""Exchange with other frameworks by ONNX models: `load` and `save`.

Both need the onnx package (`pip install onnx`), which is imported when they are called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flowbook.graph.building.graph import Graph
from flowbook.graph.model.errors import hides_frames

if TYPE_CHECKING:
    from flowbook.exec.session.session import Session
    from flowbook.onnx.reading.model import Model

__all__ = ["load", "save"]


@hides_frames
def load(
    model: Any,
    *,
    graph: Graph | None = None,
    name: str | None = None,
    trainable: bool = False,
    values: Mapping[str, Any] | None = None,
    shapes: Mapping[str, Any] | None = None,
    base_folder: Any = None,
) -> Model:
    """Make an ONNX model part of a graph, to be run, extended and differentiated.

    Each node becomes operations of Flowbook in a name scope of its own; functions are expanded.
    An If becomes what `fb.cond` builds, a Loop or Scan what `fb.while_loop` builds; what carries
    sequences of tensors is unrolled, and so are loops whose results decide what is built. The
    values of inputs that are such sequences, which are lists, or optional, which are perhaps None,
    must be known when the model is loaded.

    Args:
        model: a path, the bytes of a model, or an onnx.ModelProto.
        graph: the graph to extend; by default the default graph.
        name: the name scope of the model's operations; by default the model's own name.
        trainable: whether the stored floating-point values become variables rather than constants.
        values: values of inputs, by their names, that are fixed now. Some operators are built
            only for a known axis or size; a model that takes it as an input needs it here.
        shapes: shapes of inputs, by their names, where the model leaves dimensions open.
        base_folder: the folder below which tensors may lie that the model keeps in other files;
            by default such a model is refused.

    Returns:
        A Model: `.inputs`, `.outputs` and `.initializers` are dicts by the names in the model.

    Raises:
        UnimplementedError: if the onnx package is not installed.
        NotFoundError: if there is no such file.
        DataLossError: if it holds no model.
        InvalidArgumentError: if the model is not valid.
        UnimplementedError: if it uses operators without a translation, all of which are named.

    Source: ONNX, operator sets up to 28, https://onnx.ai/onnx/operators.

    ```python
    model = fb.onnx.load("resnet.onnx")
    with fb.Session() as sess:
        [scores] = sess.run(list(model.outputs.values()), {model.inputs["image"]: image})
    ```
    """
    from flowbook.onnx.reading.model import load as read

    return read(
        model,
        graph=graph,
        name=name,
        trainable=trainable,
        values=values,
        shapes=shapes,
        base_folder=base_folder,
    )


@hides_frames
def save(
    fetches: Any,
    inputs: Any,
    path: Any = None,
    *,
    session: Session | None = None,
    opset: int = 21,
    name: str = "flowbook",
) -> Any:
    """Write the part of a graph that computes some tensors from others as an ONNX model.

    What `fb.cond` built becomes an If. What goes over a known number of elements, as `fb.map_fn`,
    `fb.scan` and `fb.nn.dynamic_rnn` build it, becomes a Scan, and every other `fb.while_loop` a
    Loop: over any number of elements too, as runtimes have no Scan over none. An array into which
    each iteration writes the next element is what these collect. Other arrays become tensors of
    all their elements, whose shape has to be known, or, with `infer_shape=False`, sequences; what a
    TensorArray refuses in a run, such as reading what was not written, the model does not.

    Args:
        fetches: the tensors that the model computes: one, a list, or a dict by the names that they
            get in the model. In a list they get their operations' names.
        inputs: the tensors that the model takes, likewise; any tensors may be, not placeholders
            alone.
        path: the file to write; None writes none.
        session: where the values of variables come from; they are stored in the model.
        opset: the version of ONNX's operator set to write for, 18 to 28.
        name: the model's name.

    Returns:
        The model, an onnx.ModelProto.

    Raises:
        UnimplementedError: if the onnx package is not installed.
        InvalidArgumentError: if a placeholder is needed that is not among the inputs, or variables
            are read and there is no session.
        UnimplementedError: if operation types cannot be written, all of which are named. No file
            is written then.
        ResourceExhaustedError: if the model is larger than a file of this kind can be.

    Source: ONNX, https://onnx.ai/onnx/operators.

    ```python
    fb.onnx.save({"scores": scores}, {"image": x}, "model.onnx", session=sess)
    ```
    """
    from flowbook.onnx.saving.model import save as write

    return write(fetches, inputs, path, session=session, opset=opset, name=name)
