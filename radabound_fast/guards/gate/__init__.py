"""The release gate: `gate` asks and stores, `rules` decides, `history` counts, `report` closes."""
