"""Functions: parts of a graph that are built once and called often (`fb.function`).

A body lies in its graph as the inside of a loop does, in a frame of its own: what its Parameters
give is in it, and its Function, which takes what the body gives, leaves it. So the graph's
structure alone says what belongs to a function: a stored graph tells as much, and a cell that
defines a function anew replaces it as it would a loop. A body itself never runs.

A call is a copy of the body: one that joins the graph, or, where it is kept, one Call operation
that stands for such a copy. A kept call's copy is made when something needs it, of operations whose
ids were reserved when the Call joined, so that their order is that in which the copy would have
been built. What a run needs is looked for through it (`rewrite/prune.py`), and what runs knows no
functions.
"""
