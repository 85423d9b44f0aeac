"""Any search on some rows, its finalists confirmed on the others: `search` asks and stores.

`parts` splits the rows, `history` says what batches cost and release, `report` what came of it.
"""
