"""Figures are drawn as files, the same of the same values, and show what they are given."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples import concurrent_steps, figures, model_parallel


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    return tmp_path / "figure.svg"


def texts(picture: Path) -> list[tuple[str, str]]:
    """The texts of a picture, each with the colour that it has."""
    found = re.findall(r"<text style=\"([^\"]*)\"[^>]*>([^<]*)<", picture.read_text())
    return [(text, "".join(re.findall(r"fill: (#\w+)", style))) for style, text in found]


def test_the_same_values_make_the_same_file(tmp_path: Path) -> None:
    one, two = tmp_path / "one.svg", tmp_path / "two.svg"
    for path in (one, two):
        figures.curves(path, "loss", 9, {"read": [3.0, 2.0, 1.0]}, by_chance=3.0)
    assert {"step", "loss", "read", "without learning"} <= {text for text, _ in texts(one)}
    assert one.read_bytes() == two.read_bytes()


def test_each_row_of_images_has_its_caption(picture: Path) -> None:
    images = np.random.default_rng(0).random([3, 4, 4])
    figures.rows(picture, {"at first": images, "learnt": images})
    assert [text for text, _ in texts(picture)] == ["at first", "learnt"]
    assert picture.read_text().count("<image") == 1


def test_what_was_read_wrongly_has_another_colour(picture: Path) -> None:
    figures.readings(picture, np.ones([2, 4, 4]), [7, 3], [7, 8])
    assert texts(picture) == list(zip("73", figures.COLOURS, strict=False))


def spans(picture: Path) -> set[str]:
    return set(re.findall(r"fill: (#\w+)", picture.read_text())) & set(figures.COLOURS)


@pytest.mark.parametrize("example", [model_parallel, concurrent_steps], ids=lambda m: m.__name__)
def test_each_of_three_devices_has_a_lane_and_each_turn_a_colour(
    example: Any, picture: Path
) -> None:
    example.main(figure=picture)
    assert {"cpu:0", "cpu:1", "cpu:2"} <= {text for text, _ in texts(picture)}
    assert spans(picture) == set(figures.COLOURS)


def test_three_devices_end_sooner_and_make_more_steps() -> None:
    # The pipeline has to fill and to empty: of seven turns each of the three works in five.
    assert model_parallel.main() < 0.6
    assert concurrent_steps.main() > 2.0
