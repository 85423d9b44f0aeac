"""Pools of models that were fixed beforehand: which are better, and which may be the best."""
