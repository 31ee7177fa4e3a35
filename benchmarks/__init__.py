"""Flowbook measured side by side with the systems that do the same work.

One module of `benchmarks.rows` per row of the table (or per family of rows that share their
graph); `benchmarks.driver` runs the systems in turn, each in an interpreter of its own.
Benchmarks are not tests: nothing here gates anything.  See `benchmarks/README.md`.
"""
