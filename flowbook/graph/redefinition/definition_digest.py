"""Whether two tensors are defined alike: a digest of all that determines a value."""

from __future__ import annotations

import hashlib
import weakref

from flowbook.graph.model.attributes import update_digest
from flowbook.graph.model.operation import Operation
from flowbook.graph.model.tensor import Tensor

_digests: weakref.WeakKeyDictionary[Operation, bytes] = weakref.WeakKeyDictionary()


def definition_digest(tensor: Tensor) -> str:
    """A digest of all that determines a tensor's value: operations, attributes, seeds.

    Two tensors of equal digest have equal definitions. Random operations count by name too, which
    their default seeds come from, and variables by name.
    """
    stack = [tensor.op]
    while stack:
        op = stack[-1]
        if op in _digests:
            stack.pop()
            continue
        missing = [i.op for i in op.inputs if i.op not in _digests]
        missing += [c for c in op.control_inputs if c not in _digests]
        if missing:
            stack.extend(missing)
            continue
        digest = hashlib.blake2b(digest_size=16)
        # The lengths of all parts go first, so that no two definitions read the same.
        update_digest(digest, (op.type, op.name if not op.op_def.is_pure else None))
        update_digest(digest, (len(op.attributes), len(op.inputs), len(op.control_inputs)))
        for key in sorted(op.attributes):
            update_digest(digest, key)
            update_digest(digest, op.attributes[key])
        for source in op.inputs:
            digest.update(_digests[source.op] + source.index.to_bytes(4))
        for control in op.control_inputs:
            digest.update(_digests[control])
        _digests[op] = digest.digest()
        stack.pop()
    return f"{_digests[tensor.op].hex()}:{tensor.index}"
