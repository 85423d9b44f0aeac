from radabound_fast.integrations.optuna import guarded_objective

__all__ = ["guarded_objective"]
