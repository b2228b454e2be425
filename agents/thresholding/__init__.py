"""Algorithms for thresholding, and by the margin for all local problems such as feasible arms."""
