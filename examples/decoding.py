"""Ways to write what a translator finds likely: loops that end when all is written.

A model, such as that of `translation.py`, has `following(last, state)`, which tells how likely each
symbol is after the last ones, as logarithms, and the next state; `first_state`, the state before
the first symbol; and `count`, how many sources it has read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import flowbook as fb
from examples.numbers_in_words import END, START, SYMBOLS

# Six digits and the end.
LONGEST = 7


class Written(NamedTuple):
    """Translations.

    Attributes:
        symbols: [batch, steps], or of a beam [batch, width, steps], the best first.
        scores: [batch], or [batch, width]: the logarithms of their probabilities, in a beam search
            over the penalties of their lengths.
    """

    symbols: Any
    scores: Any


def greedy(model: Any, longest: int = LONGEST) -> Written:
    """Write the likeliest symbol at each step, until the end or `longest` of them."""
    return _chosen(model, lambda likely, step: fb.argmax(likely, 1, fb.int32), longest)


def sampled(model: Any, seed: Any, temperature: Any = 1.0, longest: int = LONGEST) -> Written:
    """Draw each symbol.

    Args:
        model: what reads and writes.
        seed: an int32 scalar: the same one draws the same.
        temperature: below 1 likely symbols become more likely, above 1 less.
        longest: after how many symbols a translation ends in any case.
    """

    def draw(likely: Any, step: Any) -> Any:
        seeds = fb.stack([seed, step])
        return fb.stateless_random_categorical(likely / temperature, 1, seeds, fb.int32)[:, 0]

    return _chosen(model, draw, longest)


def _chosen(model: Any, choose: Callable[[Any, Any], Any], longest: int) -> Written:
    """Write what is chosen at each step."""

    def body(last: Any, step: Any, state: Any, scores: Any, written: Any) -> Any:
        is_over = fb.equal(last, END)
        likely, state = model.following(last, state)
        last = fb.where(is_over, END, choose(likely, step))
        scores += fb.where(is_over, 0.0, fb.gather(likely, last, batch_dims=1))
        return last, step + 1, state, scores, written.write(step, last)

    start = (
        fb.fill([model.count], START),
        0,
        model.first_state,
        fb.zeros([model.count]),
        fb.TensorArray(fb.int32, dynamic_size=True),
    )
    *_, scores, written = fb.while_loop(_is_unfinished, body, start, maximum_iterations=longest)
    return Written(fb.transpose(written.stack()), scores)


def beam_search(model: Any, width: int, alpha: float = 0.6, longest: int = LONGEST) -> Written:
    """Follow the best hypotheses, until all of them have ended or are `longest`.

    Args:
        model: what reads and writes.
        width: how many of each source there are.
        alpha: how much long ones are preferred. A score is the logarithm of the probability
            over `((5 + length) / 6) ** alpha` (Wu et al., "Google's neural machine translation
            system", 2016, section 7); the end counts as a symbol.
        longest: after how many symbols a translation ends in any case.
    """
    # What is over goes on in one way only, and stays as likely as it was.
    nothing = fb.log(fb.one_hot(END, SYMBOLS))

    def body(last: Any, state: Any, totals: Any, lengths: Any, _: Any, written: Any) -> Any:
        is_over = fb.equal(last, END)
        likely, state = model.following(last, state)
        totals = totals[:, None] + fb.where(is_over[:, None], nothing, likely)
        lengths += fb.where(is_over, 0.0, 1.0)
        scores = totals / ((5.0 + lengths[:, None]) / 6.0) ** alpha
        scores, best = fb.nn.top_k(fb.reshape(scores, [model.count, -1]), width)
        begun = width * fb.range(model.count)[:, None] + best // SYMBOLS
        begun, last = fb.reshape(begun, [-1]), fb.reshape(best % SYMBOLS, [-1])
        return (
            last,
            tuple(fb.gather(part, begun) for part in state),
            fb.gather_nd(totals, fb.stack([begun, last], 1)),
            fb.gather(lengths, begun),
            scores,
            fb.concat([fb.gather(written, begun), last[:, None]], 1),
        )

    hypotheses = model.count * width
    # All begin alike, so that only the first of each source counts.
    totals = fb.tile(fb.log(fb.one_hot(0, width)), [model.count])
    start = (
        fb.fill([hypotheses], START),
        tuple(fb.repeat(part, width, 0) for part in model.first_state),
        totals,
        fb.zeros([hypotheses]),
        fb.reshape(totals, [model.count, width]),
        fb.zeros([hypotheses, 0], fb.int32),
    )
    *_, scores, written = fb.while_loop(
        _is_unfinished,
        body,
        start,
        shape_invariants=(*[None] * 5, [None, None]),
        maximum_iterations=longest,
    )
    return Written(fb.reshape(written, [model.count, width, -1]), scores)


def _is_unfinished(last: Any, *_: Any) -> Any:
    return fb.reduce_any(fb.not_equal(last, END))
