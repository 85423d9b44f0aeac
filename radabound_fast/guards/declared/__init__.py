"""A search over a declared space: `search` asks and stores, `answers` has limits on demand."""
