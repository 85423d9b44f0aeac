"""Speed and memory, measured: `make bench`, `make bench-quick`; results in RESULTS.md."""
