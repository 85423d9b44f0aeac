"""The paper's evaluation with error bars, and what it leaves out: ``radabound reproduce``.

section5      Figures 1 to 6: the greedy search of Section V
sample_sizes  Section VI: samples that Thresholdout and the guards need
attack        the weighted vote against every guard
real          searches on real data (data, searches) against every guard
runner        cells that are run once, and their rows; figures: what is drawn of them
reproduce     all of it
"""
