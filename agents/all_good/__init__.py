"""Algorithms for all epsilon-good arms, a file for each paper's."""
