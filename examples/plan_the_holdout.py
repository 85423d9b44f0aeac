"""How many rows must be held out, and what do they afford? Asked before any is spent."""

from radabound_fast import plan

for n_samples in (1_000, 10_000, 100_000):
    made = plan(n_samples, delta=0.1, space_size=10**6)
    print(f"{n_samples:,} rows: an error of 0.25 is known to be {made.low:.3f} to {made.high:.3f}")
