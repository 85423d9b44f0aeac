"""Adapters to tools that search for models; each module imports the tool that it is named for.

Workers fit and predict; the one owner of the labels queries the guard in submission order.
"""
