"""From a piece of a program to a part: its nodes and values numbered anew."""

from __future__ import annotations

from flowbook.exec.plan.drafts import Draft, Piece, with_followers
from flowbook.exec.plan.program import Block, Part, PlanNode, Program
from flowbook.graph.model.registry import op_keyed
from flowbook.graph.model.retag import Retag


def part_of(piece: Piece, program: Program, port: int) -> Part:
    """The part that a piece becomes.

    Args:
        piece: what one device does.
        program: the program of one part that it is a piece of.
        port: the number of the value that is the piece's door to the others.
    """
    (whole,) = program.parts
    frames = list(whole.block.walk())
    place_of = {block.frame: place for place, block in enumerate(frames)}

    def is_idle(draft: Draft) -> bool:
        """Whether it enters a loop in which the device has nothing to do: others have their own."""
        is_entrance = op_keyed(draft.node.type).retag is Retag.PUSH
        return is_entrance and place_of[draft.node.attributes["frame_name"]] not in piece.drafts

    ordered = {
        frame: [draft for draft in with_followers(drafts) if not is_idle(draft)]
        for frame, drafts in piece.drafts.items()
    }
    drafts = [draft for frame in sorted(ordered) for draft in ordered[frame]]
    numbers = {id(draft): index for index, draft in enumerate(drafts)}
    taken = {v for d in drafts for v in d.node.inputs}.union(v for _, v, _ in piece.fetches)
    own, known_before = len(whole.feeds), whole.constants
    hosted = {n: old for old, n in piece.hosted.items() if old < own or old in known_before}
    known = {value: hosted.get(value, value) for value in sorted(taken)}
    feeds = [value for value, old in known.items() if old < own]
    values = {value: place for place, value in enumerate([*feeds, port])}
    constants = [value for value, old in known.items() if old in known_before]
    for value in constants:
        values[value] = len(values)
    for draft in drafts:
        for value in draft.node.outputs:
            values.setdefault(value, len(values))

    def numbered(draft: Draft) -> PlanNode:
        node = draft.node
        return node._replace(
            inputs=tuple([values[v] for v in node.inputs]),
            outputs=tuple([values[v] for v in node.outputs]),
            after=tuple(dict.fromkeys(numbers[id(d)] for d in draft.after)),
            behind=tuple(dict.fromkeys(numbers[id(d)] for d in draft.behind)),
        )

    def block(frame: int) -> Block:
        inner = [place_of[each.frame] for each in frames[frame].blocks]
        return frames[frame]._replace(
            nodes=tuple([numbered(draft) for draft in ordered[frame]]),
            blocks=tuple([block(each) for each in inner if each in ordered]),
        )

    return Part(
        device=piece.device,
        feeds=(*[whole.feeds[known[v]] for v in feeds], len(program.feeds)),
        values=len(values),
        block=block(0),
        fetches=tuple([values[value] for _, value, _ in piece.fetches]),
        ownership=tuple([ownership for _, _, ownership in piece.fetches]),
        targets=tuple([numbers[id(draft)] for draft in piece.targets]),
        constants={values[v]: known_before[known[v]] for v in constants},
        on_host=tuple([values[v] for v in hosted if v in values]),
    )
