"""What `main` of an example tells shows that it learns; here it has few steps."""

from __future__ import annotations

import numpy as np
import pytest

import flowbook as fb
from examples import (
    cart_pole,
    character_model,
    cifar10,
    data_parallel,
    gan,
    googlenet,
    graph_convolution,
    language_model,
    lenet,
    physics_informed,
    policy_gradient,
    q_learning,
    transformer,
    vae,
    word2vec,
)


def test_a_gan_s_images_come_nearer_to_digits() -> None:
    before, after = gan.main(steps=300, batch=32)
    assert after < 0.85 * before


def test_samples_of_one_distribution_are_nearer_than_of_two() -> None:
    rng = np.random.default_rng(0)
    some, same, other = rng.normal(size=(3, 100, 4)) + np.reshape([0, 0, 1], (3, 1, 1))
    with fb.Session() as sess:
        near, far = sess.run([gan.energy_distance(some, each) for each in (same, other)])
    assert 0 <= near < 0.1 * far


def test_two_towers_read_digits() -> None:
    assert data_parallel.main(steps=100) > 0.8


def test_lenet_reads_digits() -> None:
    assert lenet.main(steps=60, batch=16) > 0.6


def test_cifar10_reads_digits() -> None:
    assert cifar10.main(steps=50, batch=16) > 0.25


def test_a_thin_googlenet_learns_digits() -> None:
    # It takes a while to begin.
    assert googlenet.main(steps=50) > 0.2


def test_a_language_model_learns_which_words_there_are() -> None:
    perplexity, simple = language_model.main(steps=80)
    # Of 500 words.
    assert simple < perplexity < 1.5 * simple


def test_a_transformer_begins_to_write_backwards() -> None:
    assert transformer.main(steps=50) > 0.3


def test_words_are_near_to_their_kind() -> None:
    before, after = word2vec.main(steps=1000)
    assert before < 0.5
    assert after > 0.8


def test_an_autoencoder_knows_more_than_how_dark_pixels_are() -> None:
    bound, simple = vae.main(steps=200)
    assert bound > simple + 0.5


def test_a_cart_rolls_where_it_is_pushed() -> None:
    carts = np.array([[0, 0, 0.1, 0], [0.1, -0.5, 0.1, 0.7], [2.5, 0, 0, 0]], np.float32)
    with fb.Session() as sess:
        after, up = sess.run([cart_pole.roll(carts, [0, 1, 1]), cart_pole.is_up(carts)])
    # The equations of motion (Barto, Sutton, Anderson, appendix), worked out in float64.
    expected = [[0, -0.196403, 0.1, 0.322484], [0.09, -0.306396, 0.114, 0.440396]]
    np.testing.assert_allclose(after[:2], expected, atol=1e-5)
    assert up.tolist() == [True, True, False]


def test_a_policy_learns_to_balance() -> None:
    before, after = policy_gradient.main(steps=20, longest=80)
    assert before < 40
    assert after > 60


def test_q_learning_learns_to_balance() -> None:
    before, after = q_learning.main(steps=600)
    assert before < 20
    assert after > 40


def test_groups_are_found_from_one_of_each() -> None:
    assert graph_convolution.main(steps=40) > 0.9


def test_the_heat_equation_is_solved() -> None:
    assert physics_informed.main(iterations=50) < 0.2


def test_letters_are_told_from_those_before_them() -> None:
    cost, simple = character_model.main(steps=80, units=32, length=15)
    assert cost < simple - 0.2


@pytest.mark.parametrize("training", [[0, 1], [0, 0, 0, 1]])
def test_frequencies_cost_what_their_entropy_says(training: list[int]) -> None:
    text = np.tile(training, 1000)
    chances = np.bincount(training) / len(training)
    expected = -np.sum(chances * np.log2(chances))
    found = character_model.bits_by_frequency(text, text, 2)
    assert found == pytest.approx(expected, abs=1e-4)
