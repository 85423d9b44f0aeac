"""The guards, and what they answer.  `radabound_fast.guards.base` has their family tree.

=====================  ============================================================================
`base`                 what every guard has
`declared_search`      `DeclaredSearch`; `search_rows` reads, `search_answers` answers
`confirmed_search`     `ConfirmedSearch`; `search_parts` splits the rows, `confirmation` judges the
                       finalists, `confirmed_answers` answers, `confirmed_report` reports
`halting_guard`        guards that count their answers, in memory or in a database (`opening`)
`signed`               the part that `radabound` and `fixed_sequence` share; `halting` is the rule
`mean_guard`           the part that `guess_and_check` and `ladder` share: `reader` reads,
                       `guess_guard` takes guesses, `progress` is what queries change
`answers`, `exhausted` what queries return and raise
`report`               what a search came to
`log`                  the logger "radabound_fast"
=====================  ============================================================================
"""
