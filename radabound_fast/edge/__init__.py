"""The state of a guard on a microcontroller, and the tables that its compiler needs."""

from radabound_fast.edge.state import EdgeState, margins, margins_header

__all__ = ["EdgeState", "margins", "margins_header"]
