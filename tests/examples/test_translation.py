"""The translator learns, and each way of writing gives what it says."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import flowbook as fb
from examples import decoding, numbers_in_words, translation
from examples.numbers_in_words import END, SYMBOLS, WORDS, batch_of, in_digits, in_words
from examples.translation import Translator

# All that is written in two steps.
PAIRS = [(END, END), *itertools.product(range(END), range(SYMBOLS))]


class Learnt(NamedTuple):
    """A small translator after some steps, which is not always right."""

    model: Translator
    source: Any
    target: Any
    loss: Any
    losses: list[float]
    session: fb.Session

    def run(self, fetches: Any, numbers: Any, feeds: Any = None) -> Any:
        """The fetches for these sources."""
        return self.session.run(fetches, {self.source: batch_of(numbers)[0], **(feeds or {})})

    def likelihood(self, number: int, symbols: Any, alpha: float = 0.0) -> float:
        """The logarithm of the probability of symbols, over the penalty of their length."""
        length = [*symbols, END].index(END) + 1 if END in symbols else len(symbols)
        loss = self.run(self.loss, [number], {self.target: [symbols]})
        return float(-length * loss / ((5 + length) / 6) ** alpha)


@pytest.fixture(scope="module")
def trained() -> Iterator[Learnt]:
    rng = np.random.default_rng(0)
    with fb.Graph().as_default():
        fb.set_random_seed(1)
        source = fb.placeholder(fb.int32, [None, None])
        target = fb.placeholder(fb.int32, [None, None])
        model = Translator(source, width=16, units=32)
        loss = model.loss(target)
        step = translation.training_step(loss, 200)
        session = fb.Session()
    losses = []
    for _ in range(200):
        sources, targets = batch_of(numbers_in_words.drawn(32, rng, is_held_out=False))
        losses.append(session.run([loss, step], {source: sources, target: targets})[0])
    with contextlib.closing(session):
        yield Learnt(model, source, target, loss, losses, session)


@pytest.fixture
def learnt(trained: Learnt) -> Iterator[Learnt]:
    with trained.loss.graph.as_default():
        yield trained


def held_out(count: int = 60) -> Any:
    return numbers_in_words.drawn(count, np.random.default_rng(2), is_held_out=True)


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "one"),
        (19, "nineteen"),
        (20, "twenty"),
        (45, "forty five"),
        (100, "one hundred"),
        (7005, "seven thousand and five"),
        (70_500, "seventy thousand five hundred"),
        (999_999, "nine hundred and ninety nine thousand nine hundred and ninety nine"),
    ],
)
def test_numbers_are_said(number: int, words: str) -> None:
    assert " ".join(in_words(number)) == words


def test_a_batch_is_filled_up_and_reads_as_its_numbers() -> None:
    sources, targets = batch_of([7, 420])
    assert [WORDS[word] for word in sources[1]] == ["four", "hundred", "and", "twenty"]
    assert sources[0].tolist() == [7, 0, 0, 0]
    assert targets.tolist() == [[7, END, END, END], [4, 2, 0, END]]
    assert in_digits(targets) == ["7", "420"]


def test_no_number_is_both_trained_and_held_out() -> None:
    rng = np.random.default_rng(0)
    trained = numbers_in_words.drawn(100_000, rng, is_held_out=False)
    tried = numbers_in_words.drawn(100_000, rng, is_held_out=True)
    assert not set(trained) & set(tried)
    for numbers in (trained, tried):
        assert numbers.min() >= 1
        assert numbers.max() < 1_000_000
    assert {len(str(number)) for number in tried} == {2, 3, 4, 5, 6}


def test_its_parameters_are_counted() -> None:
    source = fb.placeholder(fb.int32, [None, None])
    model = Translator(source, width=32, units=64)
    model.loss(fb.placeholder(fb.int32, [None, None]))
    decoding.greedy(model)
    decoding.beam_search(model, 4)
    # A cell has (width + units + 1) 3 units; both loops and the training share the decoder's.
    cells = 2 * (32 + 64 + 1) * 3 * 64 + (32 + 64 + 64 + 1) * 3 * 64
    embeddings = (31 + 12) * 32
    dense = 128 * 64 + 129 * 64 + 192 * 64 + 64 * 11
    assert fb.parameter_counts().total.parameters == cells + embeddings + dense == 98_976
    assert not fb.lint()


def test_the_loss_falls(learnt: Learnt) -> None:
    assert learnt.losses[0] == pytest.approx(np.log(SYMBOLS), rel=0.1)
    assert np.mean(learnt.losses[-10:]) < 0.4 * learnt.losses[0]


def test_greedy_is_a_beam_of_one(learnt: Learnt) -> None:
    greedy, beam = decoding.greedy(learnt.model), decoding.beam_search(learnt.model, 1, alpha=0.0)
    one, other = learnt.run([greedy, beam], held_out())
    np.testing.assert_array_equal(one.symbols, other.symbols[:, 0])
    np.testing.assert_allclose(one.scores, other.scores[:, 0], rtol=1e-5)


def test_scores_are_the_probabilities_of_what_is_written(learnt: Learnt) -> None:
    """As training computes them, from all that is written at once."""
    both = [decoding.greedy(learnt.model), decoding.beam_search(learnt.model, 3, alpha=0.6)]
    greedy, beam = learnt.run(both, held_out(20))
    for row, number in enumerate(held_out(20)):
        expected = learnt.likelihood(number, greedy.symbols[row])
        assert greedy.scores[row] == pytest.approx(expected, rel=1e-3, abs=1e-4)
        expected = [learnt.likelihood(number, each, 0.6) for each in beam.symbols[row]]
        assert beam.scores[row] == pytest.approx(expected, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 2.0])
def test_a_beam_as_wide_as_all_finds_the_best_of_all(learnt: Learnt, alpha: float) -> None:
    """As many hypotheses as there are symbols leave nothing out within two steps."""
    scores = {pair: learnt.likelihood(7, pair, alpha) for pair in PAIRS}
    best = sorted(scores, key=lambda pair: -scores[pair])[:SYMBOLS]
    beam = learnt.run(decoding.beam_search(learnt.model, SYMBOLS, alpha, longest=2), [7])
    assert [tuple(pair) for pair in beam.symbols[0]] == best
    np.testing.assert_allclose(beam.scores[0], [scores[pair] for pair in best], rtol=1e-3)


def test_wider_beams_find_no_worse(learnt: Learnt) -> None:
    """No theorem says so, but of a trained model it holds; somewhere they find better ones."""
    numbers = held_out()
    greedy = learnt.run(decoding.greedy(learnt.model).scores, numbers)
    best = learnt.run(decoding.beam_search(learnt.model, 4, alpha=0.0).scores, numbers)
    assert (best[:, 0] >= greedy - 1e-4).all()
    assert (best[:, 0] > greedy + 0.01).any()
    assert (np.diff(best, axis=1) <= 0).all()


def ways(model: Translator, longest: int) -> list[Any]:
    """All ways of writing."""
    return [
        decoding.greedy(model, longest),
        decoding.sampled(model, 1, 3.0, longest),
        decoding.beam_search(model, 3, 0.6, longest),
    ]


def test_all_stop_when_the_last_has_ended(learnt: Learnt) -> None:
    for symbols, _ in learnt.run(ways(learnt.model, 50), held_out()):
        is_over = np.equal(symbols, END)
        # What has ended goes on with nothing else.
        np.testing.assert_array_equal(is_over, np.maximum.accumulate(is_over, axis=-1))
        ends = np.argmax(is_over, axis=-1)
        assert is_over[..., -1].all()
        assert ends.max() == symbols.shape[-1] - 1
        assert ends.min() < ends.max() < 49


def test_all_stop_at_the_longest(learnt: Learnt) -> None:
    shapes = [np.shape(way.symbols) for way in learnt.run(ways(learnt.model, 2), [123_456, 777])]
    assert shapes == [(2, 2), (2, 2), (2, 3, 2)]


def test_nothing_but_the_likeliest_is_drawn_at_a_low_temperature(learnt: Learnt) -> None:
    both = [decoding.greedy(learnt.model), decoding.sampled(learnt.model, 1, temperature=1e-6)]
    greedy, sampled = learnt.run(both, held_out())
    np.testing.assert_array_equal(greedy.symbols, sampled.symbols)
    np.testing.assert_allclose(greedy.scores, sampled.scores, rtol=1e-6)


def test_a_source_is_translated_alike_beside_longer_ones(learnt: Learnt) -> None:
    both = [decoding.greedy(learnt.model), decoding.beam_search(learnt.model, 3)]
    alone = learnt.run(both, [33])
    beside = learnt.run(both, [33, 777_777])
    for one, other in zip(alone, beside, strict=True):
        steps = one.symbols.shape[-1]
        np.testing.assert_array_equal(one.symbols[0], other.symbols[0, ..., :steps])
        np.testing.assert_allclose(one.scores[0], other.scores[0], rtol=1e-4, atol=1e-6)


def test_a_seed_draws_the_same_again(learnt: Learnt) -> None:
    seed = fb.placeholder(fb.int32, [])
    sampled = decoding.sampled(learnt.model, seed, temperature=2.0)
    first, again, other = (learnt.run(sampled, held_out(), {seed: number}) for number in (1, 1, 2))
    np.testing.assert_array_equal(first.symbols, again.symbols)
    np.testing.assert_array_equal(first.scores, again.scores)
    assert in_digits(first.symbols) != in_digits(other.symbols)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_symbols_are_drawn_by_their_probabilities(learnt: Learnt, temperature: float) -> None:
    likelihoods = [learnt.likelihood(606, [symbol]) for symbol in range(SYMBOLS)]
    expected = np.exp(np.divide(likelihoods, temperature))
    sampled = decoding.sampled(learnt.model, 3, temperature, longest=1)
    drawn = learnt.run(sampled.symbols, [606] * 4000)
    found = np.bincount(drawn[:, 0], minlength=SYMBOLS) / len(drawn)
    np.testing.assert_allclose(found, expected / expected.sum(), atol=0.03)


def test_a_step_s_draw_is_independent_of_the_last_one_s(learnt: Learnt) -> None:
    drawn = learnt.run(decoding.sampled(learnt.model, 3, longest=2).symbols, [606] * 4000)
    for pair in PAIRS:
        found = (drawn == pair).all(axis=1).mean()
        assert found == pytest.approx(np.exp(learnt.likelihood(606, pair)), abs=0.03)


def test_it_learns_to_translate() -> None:
    right = translation.main(300, batch=32)
    assert right["greedy"] > 0.9
    assert right["beam search"] > 0.9
    assert right["sampled"] > 0.7
