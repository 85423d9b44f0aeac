"""The guards, and what they answer.  `radabound_fast.guards.base` has their family tree.

=====================  ============================================================================
`base`, `opening`      what every guard has, and how each is opened from a database
`declared`             `DeclaredSearch`, its answers, and rows that are counted elsewhere
`confirmed`            `ConfirmedSearch`: rows in two parts, and finalists
`gate`                 `Gate`: conditions, verdicts, and what is told at the end
`candidates`           what the last two have of predictions: values, gains, and how they are stored
`halting_guard`        guards that count their answers, in memory or in a database
`signed`               the part that `radabound` and `fixed_sequence` share; `halting` is the rule
`mean_guard`           the part that `guess_and_check` and `ladder` share
`answers`, `release`   what queries return and raise; how much of a score
`report`               what a search came to
`reach`                what a first answer needs
`log`                  the logger "radabound_fast"
=====================  ============================================================================
"""
