"""The release gate: `gate` asks and stores, `rules` decides, `verdicts` has the history."""
