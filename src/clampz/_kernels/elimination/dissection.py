"""Stages of an elimination by the shape of the graph: what greed does not see.

A sweep goes through a graph from one end to the other, level by level, as reverse Cuthill-McKee does: on an open grid
no table is wider than the grid.  A dissection cuts it in two by a small separator, the parts again, and so on;
separators come last.  Within a stage the greedy rule of `elimination_order` chooses.

start, neighbour (n + 1,), (2m,)   neighbour lists of the graph
queue            (n,)              variables in the order in which they are come to
part_of          (n,)              the part that a variable is in; -1 once it is done with
stage            (n,)              variables of a lower stage are eliminated first
cancel_flag             (1,)              raised from outside when the run is over; looked at before each path
"""

from typing import Any, NamedTuple

import numpy as np

from clampz._kernels.jit import kernel, part

# Rounds in which an end of a graph is looked for.
ROUNDS = 4
# Where a search came from: nowhere yet, or where it began.
NOWHERE, BEGINNING = -1, -2


@part
def _spread(start, neighbour, part_of, root, queue, level):
    """Breadth first from a root through its part: fills `queue` and the `level` of each, returns how many there are."""
    part = part_of[root]
    part_of[root] = -2 - part  # it was come to
    queue[0] = root
    level[root] = 0
    count = 1
    done = 0
    while done < count:
        v = queue[done]
        done += 1
        for p in range(start[v], start[v + 1]):
            u = neighbour[p]
            if part_of[u] == part:
                part_of[u] = -2 - part
                level[u] = level[v] + 1
                queue[count] = u
                count += 1
    for p in range(count):
        part_of[queue[p]] = part
    return count


@part
def _from_an_end(start, neighbour, part_of, root, queue, level):
    """Breadth first from an end of what is connected to the root: from what is farthest from it, from what is farthest
    from that, and so on while that is farther."""
    count = _spread(start, neighbour, part_of, root, queue, level)
    depth = -1
    for _ in range(ROUNDS):
        end = queue[count - 1]
        if level[end] <= depth:
            break
        depth = level[end]
        p = count - 1
        while p >= 0 and level[queue[p]] == depth:  # the one with the fewest neighbours
            v = queue[p]
            if start[v + 1] - start[v] <= start[end + 1] - start[end]:
                end = v
            p -= 1
        count = _spread(start, neighbour, part_of, end, queue, level)
    return count


@kernel
def sweep(start, neighbour, root):
    """The stages of a sweep, level by level, from an end that is far from a variable; components beside each other."""
    n = start.size - 1
    part_of = np.zeros(n, dtype=np.int64)
    queue = np.empty(n, dtype=np.int64)
    stage = np.empty(n, dtype=np.int64)
    for i in range(n):
        v = (root + i) % n
        if part_of[v] == 0:
            count = _from_an_end(start, neighbour, part_of, v, queue, stage)
            for p in range(count):
                part_of[queue[p]] = -1
    return stage


class Paths(NamedTuple):
    """Paths through a part that share no variable, and the search for one more; of a variable v, 2v is where it is
    entered and 2v + 1 where it is left."""

    taken: Any  # (n,) whether a path goes through it
    previous: Any  # (n,) the variable before it on its path
    came_from: Any  # (2n,)
    queue: Any  # (2n,)


@part
def _one_more(start, neighbour, part_of, part, num_sources, sink, paths):
    """Look for one more path from the first variables of a part to its `sink`, and take it; whether there is one, and
    how many neighbours were looked at."""
    taken, previous, came_from, queue = paths
    own = part_of[part[0]]
    for p in range(part.size):
        came_from[2 * part[p]] = NOWHERE
        came_from[2 * part[p] + 1] = NOWHERE
    for p in range(num_sources):
        came_from[2 * part[p]] = BEGINNING
        queue[p] = 2 * part[p]
    count = num_sources
    done = 0
    work = part.size
    at = NOWHERE
    while done < count:
        at = queue[done]
        done += 1
        v = at // 2
        if at % 2 == 0:
            # through it if no path is in the way; if one is, back along that to where it may go another way
            to = 2 * v + 1
            if taken[v]:
                if previous[v] == BEGINNING:
                    continue
                to = 2 * previous[v] + 1
            if came_from[to] == NOWHERE:
                came_from[to] = at
                queue[count] = to
                count += 1
            continue
        if sink[v]:
            break
        if taken[v] and came_from[2 * v] == NOWHERE:
            came_from[2 * v] = at
            queue[count] = 2 * v
            count += 1
        work += start[v + 1] - start[v]
        for p in range(start[v], start[v + 1]):
            u = neighbour[p]
            if part_of[u] == own and came_from[2 * u] == NOWHERE:
                came_from[2 * u] = at
                queue[count] = 2 * u
                count += 1
        at = NOWHERE
    if at == NOWHERE or at % 2 == 0:
        return False, work
    while at != BEGINNING:
        before = came_from[at]
        v = at // 2
        if at % 2 == 1:
            if before == 2 * v:
                taken[v] = True
        elif before == BEGINNING:
            previous[v] = BEGINNING
        elif before == 2 * v + 1:
            taken[v] = False
        else:
            previous[v] = before // 2
        at = before
    return True, work


@kernel
def dissection(start, neighbour, most, leaf, share, root, cancel_flag):
    """The stages of a nested dissection: parts of at most `leaf` variables are of stage 0, and separators are above
    what they separate, each the smallest between a `share` of its part at one end of it and one at the other (by as
    many paths that share no variable, Menger 1927).

    A part whose separator has more than `most` variables stays whole, as all do once the flag is raised.  Returns the
    stages and the work: neighbours looked at.
    """
    n = start.size - 1
    part_of = np.zeros(n, dtype=np.int64)
    level = np.empty(n, dtype=np.int64)
    sink = np.zeros(n, dtype=np.bool_)
    paths = Paths(
        np.zeros(n, dtype=np.bool_),
        np.empty(n, dtype=np.int64),
        np.empty(2 * n, dtype=np.int64),
        np.empty(2 * n, dtype=np.int64),
    )
    stage = np.zeros(n, dtype=np.int64)
    # variables by part: parts that wait are ranges of these, each with how many separators are above it
    variables = (np.arange(n) + root) % max(n, 1)
    waiting = np.empty((n + 1, 3), dtype=np.int64)
    waiting[0, 0], waiting[0, 1], waiting[0, 2] = 0, n, 1
    num_waiting = 1 if n > leaf else 0
    own = 0
    deepest = 0
    work = 0
    while num_waiting > 0:
        num_waiting -= 1
        begin, end, depth = waiting[num_waiting, 0], waiting[num_waiting, 1], waiting[num_waiting, 2]
        own += 1
        for p in range(begin, end):
            part_of[variables[p]] = own
        count = _from_an_end(start, neighbour, part_of, variables[begin], paths.queue, level)
        part = paths.queue[:count].copy()
        for p in range(count):
            work += ROUNDS * (1 + start[part[p] + 1] - start[part[p]])
        for p in range(count):
            part_of[part[p]] = 0
        rest = begin + count
        for p in range(begin, end):  # what is not connected to it
            if part_of[variables[p]] == own:
                paths.queue[rest - begin] = variables[p]
                rest += 1
        for p in range(begin + count, end):
            variables[p] = paths.queue[p - begin]
        if end - begin - count > leaf:
            waiting[num_waiting, 0], waiting[num_waiting, 1], waiting[num_waiting, 2] = begin + count, end, depth
            num_waiting += 1
        own += 1
        for p in range(count):
            variables[begin + p] = part[p]
            part_of[part[p]] = own
            paths.taken[part[p]] = False
        if count <= leaf:
            continue
        num_ends = max(1, int(share * count))
        for p in range(count - num_ends, count):
            sink[part[p]] = True
        size = 0
        one_more = True
        while one_more and size <= most and cancel_flag[0] == 0:
            one_more, looked_at = _one_more(start, neighbour, part_of, part, num_ends, sink, paths)
            size += one_more
            work += looked_at
        for p in range(count - num_ends, count):
            sink[part[p]] = False
        if size > most or cancel_flag[0] != 0:
            continue
        # between what the last search came to and what it did not
        kept = begin
        for p in range(count):
            v = part[p]
            if paths.came_from[2 * v] != NOWHERE and paths.came_from[2 * v + 1] == NOWHERE:
                stage[v] = -depth
                part_of[v] = -1
            else:
                variables[kept] = v
                kept += 1
        deepest = max(deepest, depth)
        if kept - begin > leaf:
            waiting[num_waiting, 0], waiting[num_waiting, 1], waiting[num_waiting, 2] = begin, kept, depth + 1
            num_waiting += 1
    for v in range(n):
        if stage[v] < 0:
            stage[v] += deepest + 1
    return stage, work
