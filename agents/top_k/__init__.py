"""Algorithms for the k best arms, a file for each paper's."""
