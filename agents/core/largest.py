"""The largest of some numbers, for compiled functions of one episode: by selection, or in order by a heap."""

from bandit_envs.kernels import inlined, part


@inlined
def size_of(S):
    """How many arms the mask S (K,) has."""
    n = 0
    for i in range(len(S)):
        n += S[i]
    return n


@part
def smallest(work, n, q):
    """The q-th smallest, 1 <= q <= n, of work[:n], which is reordered."""
    low, high = 0, n - 1
    while low < high:
        pivot, i, j = work[(low + high) // 2], low, high
        while i <= j:
            while work[i] < pivot:
                i += 1
            while work[j] > pivot:
                j -= 1
            if i <= j:
                work[i], work[j] = work[j], work[i]
                i += 1
                j -= 1
        if q - 1 <= j:
            high = j
        elif q - 1 >= i:
            low = i
        else:
            break
    return work[q - 1]


@part
def nth_largest(m, S, n, work):
    """The n-th largest m of the arms of S (K,), 1 <= n <= |S|. work (K,): scratch."""
    size = 0
    for i in range(len(S)):
        if S[i]:
            work[size] = -m[i]
            size += 1
    return -smallest(work, size, n)


@part
def keep_largest(m, S, n, work):
    """Leave the n arms with the largest m in S (K,), ties to the lowest arm. work (K,): scratch."""
    size = size_of(S)
    if n >= size:
        return
    bar = nth_largest(m, S, n, work) if n > 0 else 0.0
    places = n
    for i in range(len(S)):
        places -= n > 0 and S[i] and m[i] > bar
    for i in range(len(S)):
        ties = n > 0 and S[i] and m[i] == bar and places > 0
        places -= ties
        S[i] = ties or (n > 0 and S[i] and m[i] > bar)


@inlined
def precedes(m, i, j):
    """Whether arm i comes before arm j: by a larger m, or by its number where they are equal."""
    return m[i] > m[j] or (m[i] == m[j] and i < j)


@part
def in_order(m, S, order):
    """Begin `order` (K,) with the arms of S (K,), those with the largest m first; how many they are."""
    size = 0
    for i in range(len(S)):
        if S[i]:
            order[size] = i
            size += 1
    begin, end = size // 2, size
    while end > 1:  # a heap with the last arm on top
        if begin > 0:
            begin -= 1
        else:
            end -= 1
            order[0], order[end] = order[end], order[0]
        j, child = begin, 2 * begin + 1
        while child < end:
            child += child + 1 < end and precedes(m, order[child], order[child + 1])
            if not precedes(m, order[j], order[child]):
                break
            order[j], order[child] = order[child], order[j]
            j, child = child, 2 * child + 1
    return size
