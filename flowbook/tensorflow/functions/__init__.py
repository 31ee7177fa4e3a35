"""Functions of a graph: their calls, and the branches and loops that are written by functions.

A graph carries a library of functions. Nodes call them, and later graphs write branches and loops
so: an If names two functions, a While two. All are expanded before anything is built, to nodes
that name no functions: a call to a copy of the body, an If to Switches and Merges, a While to a
frame, as TensorFlow 1 writes them itself. So what builds operations knows no functions, and
variables, array handles and gradients go through calls as through other nodes.

    library.py    the functions, and which output of a node a body means
    copies.py     a body's nodes in the place of one that calls it
    expanding.py  from node to node, until none names a function
"""
