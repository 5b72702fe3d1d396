"""Mini-buckets: the functions of a bucket are partitioned into mini-buckets whose tables stay within the limit.

The arrays are those of `structure`.
"""

from clampz._kernels.jit import inline, part_in_place

# Mini-buckets of a variable that a function may still go to: one bit for each.  Those before are full by then.
OPEN = 62


@part_in_place
def partition_functions(f, chosen, v, states, limit, member_of, bucket, entries, head, member, after):
    """Partition the functions of a bucket: each goes to the first mini-bucket that stays within the limit or gains
    nothing, else it opens one.

    chosen         functions, in this order
    bucket         which mini-bucket each goes to
    entries, head  of a mini-bucket: its table's, as they are counted, and the first of its variables beside v
    member, after  those variables, linked
    member_of      bit b: a variable is in mini-bucket b of the last few; all 0 before and afterwards

    Returns the number of mini-buckets, and of their variables.
    """
    count = 0
    used = 0
    for k in range(chosen.size):
        number = chosen[k]
        into = -1
        for b in range(max(0, count - OPEN), count):
            size = entries[b]
            for q in range(f.begin[number], f.end[number]):
                u = f.scope[q]
                if u != v and (member_of[u] >> (b % OPEN)) & 1 == 0:
                    size *= counted_states(states, u)
            if size <= limit or size == entries[b]:
                into = b
                break
        if into < 0:
            into = count
            count += 1
            if into >= OPEN:
                _leave(member_of, head[into - OPEN], member, after, into % OPEN)
            entries[into] = counted_states(states, v)
            head[into] = -1
        bucket[k] = into
        own = 1 << (into % OPEN)
        for q in range(f.begin[number], f.end[number]):
            u = f.scope[q]
            if u != v and member_of[u] & own == 0:
                member_of[u] |= own
                entries[into] *= counted_states(states, u)
                member[used] = u
                after[used] = head[into]
                head[into] = used
                used += 1
    for b in range(max(0, count - OPEN), count):
        _leave(member_of, head[b], member, after, b % OPEN)
    return count, used


@part_in_place
def _leave(member_of, p, member, after, b):
    """Remove the variables linked from p from the mini-bucket of bit b."""
    while p >= 0:
        member_of[member[p]] &= ~(1 << b)
        p = after[p]


@inline
def counted_states(states, v):
    """Count the states of a variable for a limit, one as two: else cliques could have any number of variables."""
    return max(states[v], 2.0)
