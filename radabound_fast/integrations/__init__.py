"""Adapters to tools that search for models; each module imports the tool that it is named for.

Workers fit, predict and send predictions.  The one owner, who holds the labels, queries the
guard in submission order and decides.
"""
