"""The largest of a few numbers, for compiled functions."""

from __future__ import annotations

from .compiled import part


@part
def largest(x, n, count, without, out):
    """Fill out[:count] with the largest of x[:n], in falling order, without x[without] (-1: of all)."""
    found = 0
    for i in range(n):
        if i != without and (found < count or x[i] > out[count - 1]):
            j = min(found, count - 1)
            while j > 0 and out[j - 1] < x[i]:
                out[j] = out[j - 1]
                j -= 1
            out[j] = x[i]
            found = min(found + 1, count)
