"""The compiled modules: arrays in, answers out.

=============  ===================================================================================
`support`      tracebacks without variables, a lock, state that changes whole or not at all, files
`rows`         what an array becomes: bits, units of 2**-24, signs, sums, fingerprints; and one
               thread's memory for the rows of a call
`guard`        signed sums of rows through a guard's state, behind its gate, and the answers
`studentised`  the extremes of studentised sums, for pools of models
`search`       what a declared search stores of its queries, and the binomial tails of its limits
`limits`       confidence limits that are a root of a capital, and those of gains
=============  ===================================================================================

Calls go downwards only: `guard` and `studentised` use `rows`, `guard` and `search` use `support`,
and all of them the C sources, of which `rows` holds those for each instruction set.

Who does what.  Python code says which arguments make sense.  These modules check types, lengths and
values, allocate memory, raise errors and let go of the GIL.  C raises nothing, and allocates
nothing but the tables and scratch memory of bit-sliced blocks, and of exact limits.

Another Cython module may cimport what __init__.pxd declares.
"""

from radabound_fast._kernels.rows import SignStore as SignStore
