"""Algorithms with a budget for arms that are the columns of one table, a file for each paper's.

The n-th pull of every arm is its score in the n-th row, and the rows come in one random order in each episode.
"""
