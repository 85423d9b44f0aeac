"""A search over a declared space: `search` asks and stores; `answers` has limits on demand.

`rows` is what is stored of predictions, `improvements` the answers to a tool that sees the best
score so far.
"""
