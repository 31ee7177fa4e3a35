"""Products and factorisations of kernels go through one place, whoever computes them there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import flowbook.graph.ops
from flowbook.graph.numerics import products

# What BLAS and LAPACK compute, of an array module: called, and not handed to `factorised`.
_BY_ITSELF = re.compile(r"\bxp\.(matmul|dot|vdot|inner|tensordot)\b|\bxp\.linalg\.\w+\(")


def test_no_kernel_multiplies_or_factorises_by_itself() -> None:
    found = [
        f"{file.name}: {line.strip()}"
        for file in Path(flowbook.graph.ops.__path__[0]).rglob("*.py")
        for line in file.read_text().splitlines()
        if _BY_ITSELF.search(line)
    ]
    assert found == []


def test_who_is_told_computes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "_multiply", products._multiply)
    monkeypatch.setattr(products, "_factorise", products._factorise)
    products.compute_with(lambda x, y, out: ("product", x, y, out), lambda *given: given)
    assert products.matmul(np, 1, 2) == ("product", 1, 2, None)
    assert products.factorised(np.linalg.inv, 3) == (np.linalg.inv, 3)


def test_other_arrays_are_multiplied_by_their_own_module() -> None:
    class Module:
        @staticmethod
        def matmul(x: int, y: int, out: int | None = None) -> tuple[int, int, int | None]:
            return x, y, out

    assert products.matmul(Module, 1, 2) == (1, 2, None)
    assert products.matmul(Module, 1, 2, 3) == (1, 2, 3)
