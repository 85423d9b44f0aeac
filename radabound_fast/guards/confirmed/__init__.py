"""Any search on some rows, its finalists confirmed on the others: `search` asks and stores.

`parts` splits the rows, `history` says what earlier batches cost, `answers` and `report` tell.
"""
