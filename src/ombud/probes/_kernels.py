"""Compiled passes over the scores of many edits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ombud.systems.recommenders.kernels._jit import kernel
from ombud.systems.recommenders.kernels.topn import offer, write_sorted


@kernel()
def thresholds(
    scores: NDArray[np.float32],
    seen: NDArray[np.bool_],
    items: NDArray[np.int32],
    adds: NDArray[np.bool_],
    removes: NDArray[np.bool_],
    k: int,
    top: NDArray[np.float32],
    last: NDArray[np.float32],
    after: NDArray[np.float32],
) -> None:
    """Mask what is seen after each edit (-inf) and find the best, k-th and next score of each row.

    ``top``, ``last`` and ``after`` are -inf where a row has too few scores.
    """
    n_items = scores.shape[1]
    low = np.float32(-np.inf)
    for r in range(scores.shape[0]):
        row = scores[r]
        came_back = items[r] if removes[r] else -1
        for j in range(n_items):
            if (seen[j] and j != came_back) or row[j] != row[j]:
                row[j] = low
        if adds[r]:
            row[items[r]] = low
        heap = np.full(k + 1, low, np.float32)
        for j in range(n_items):
            value = row[j]
            if value > heap[0]:
                # Sift down a heap whose root is the least of the k + 1 best.
                place = 0
                while True:
                    child = 2 * place + 1
                    if child > k:
                        break
                    if child + 1 <= k and heap[child + 1] < heap[child]:
                        child += 1
                    if heap[child] >= value:
                        break
                    heap[place] = heap[child]
                    place = child
                heap[place] = value
        after[r] = heap[0]
        second, best = np.float32(np.inf), low
        for p in range(k + 1):
            best = max(best, heap[p])
            if p > 0:
                second = min(second, heap[p])
        last[r] = second
        top[r] = best


@kernel()
def scan(
    scores: NDArray[np.float32],
    scale: np.float32,
    shift: NDArray[np.float32],
    last: NDArray[np.float32],
    after: NDArray[np.float32],
    first: int,
    best: NDArray[np.float32],
    arg: NDArray[np.int32],
    margin: NDArray[np.float32],
    margin_arg: NDArray[np.int32],
) -> None:
    """Keep, for each item, the edit of greatest log-probability and of greatest margin.

    The log-probability is ``scale score - shift``; with a scale of 0 it is not kept. The margin is
    the score less the k-th best of the other items: zero or more for an item in the list.
    """
    for r in range(scores.shape[0]):
        row = scores[r]
        a, b = last[r], after[r]
        number = np.int32(first + r)
        if scale > 0:
            move = shift[r]
            for j in range(row.shape[0]):
                value = scale * row[j] - move
                if value > best[j]:
                    best[j] = value
                    arg[j] = number
        for j in range(row.shape[0]):
            value = row[j] - a if row[j] < a else row[j] - b
            if value > margin[j]:
                margin[j] = value
                margin_arg[j] = number


@kernel()
def item_edits(
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    removed: NDArray[np.bool_],
    row_of: NDArray[np.int32],
    codes: NDArray[np.int32],
    similarities: NDArray[np.float32],
    starts: NDArray[np.int64],
    near: NDArray[np.float32],
    near_values: NDArray[np.float32],
    near_items: NDArray[np.int32],
    average: bool,
    least_count: int,
    most: int,
    base: NDArray[np.float32],
    mean: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    """Write item-kNN's scores after each single edit: only the edited item's neighbours change.

    ``near``, ``near_values`` and ``near_items`` are what the history brings to each item, from
    ``starts``, nearest first and on a tie the lower item. ``values`` and ``near_values`` are less
    the item's mean where scores are averages, and ``mean`` is added again.
    """
    for r in range(len(items)):
        line = out[r]
        for j in range(len(base)):
            line[j] = base[j]
        item = items[r]
        row = row_of[item]
        for q in range(codes.shape[1]):
            j = codes[row, q]
            if j < 0:
                break
            own = similarities[row, q]
            pending = not removed[r]
            total = np.float32(0)
            weight = np.float32(0)
            count = 0
            p = starts[j]
            while count < most:
                if p < starts[j + 1] and near_items[p] == item:
                    p += 1
                    continue
                there = p < starts[j + 1]
                if pending and (
                    not there or own > near[p] or (own == near[p] and item < near_items[p])
                ):
                    total += own * values[r]
                    weight += own
                    pending = False
                elif there:
                    total += near[p] * near_values[p]
                    weight += near[p]
                    p += 1
                else:
                    break
                count += 1
            if count < least_count:
                line[j] = np.nan
            elif average:
                line[j] = total / weight + mean[j]
            else:
                line[j] = total


# All single edits of one person, for some targets, with the model trained again.


@kernel()
def edited_column(
    item: int,
    me: int,
    value: np.float32,
    starts: NDArray[np.int64],
    users: NDArray[np.int64],
    ratings: NDArray[np.float32],
    centred: bool,
) -> tuple[np.float32, np.float32]:
    """Return the mean and one over the length of an item's column after an edit.

    The sums are in 64 bits and in the order of users, as training adds them up. ``value`` is what
    the person's entry becomes, 0 for none.
    """
    total = 0.0
    count = 0
    mean = np.float32(0)
    squares = 0.0
    for step in range(2):
        done = value == 0
        p = starts[item]
        while p < starts[item + 1] or not done:
            if p < starts[item + 1] and (done or users[p] <= me):
                rating = ratings[p]
                own = users[p] == me
                p += 1
                if own:
                    if done:
                        continue
                    rating = value
                    done = True
            else:
                rating = value
                done = True
            if step == 0:
                total += rating
                count += 1
            else:
                apart = np.float64(np.float32(rating - mean))
                squares += apart * apart
        if step == 0 and centred and count > 0:
            mean = np.float32(total / count)
    scale = np.float32(0)
    if squares > 1e-10 * max(count, 1):
        scale = np.float32(1.0 / np.sqrt(squares))
    return mean, scale


@kernel()
def edited_sums(
    item: int,
    me: int,
    values: NDArray[np.float32],
    means: NDArray[np.float32],
    starts: NDArray[np.int64],
    users: NDArray[np.int64],
    ratings: NDArray[np.float32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    apart: NDArray[np.float32],
    sums: NDArray[np.float32],
    seen: NDArray[np.bool_],
    touched: NDArray[np.int64],
) -> int:
    """Add up an item's products with all items, for several values of the person's entry at once.

    The products of a pair are added in the order of users and in 32 bits, as training does. What
    ``sums`` (items x values) holds besides zeros is named by ``touched``; the number is returned.
    """
    n = 0
    many = len(values)
    own = np.empty(many, np.float32)
    done = False
    p = starts[item]
    while p < starts[item + 1] or not done:
        if p < starts[item + 1] and (done or users[p] <= me):
            user = users[p]
            rating = ratings[p]
            p += 1
        else:
            user = me
            rating = np.float32(0)
        if user == me:
            done = True
            for v in range(many):
                own[v] = values[v] - means[v] if values[v] > 0 else np.float32(0)
        else:
            for v in range(many):
                own[v] = rating - means[v]
        for q in range(indptr[user], indptr[user + 1]):
            i = indices[q]
            if not seen[i]:
                seen[i] = True
                touched[n] = i
                n += 1
            other = apart[q]
            for v in range(many):
                sums[i, v] += own[v] * other
    return n


@kernel()
def near_score(
    item: int,
    skip: int,
    starts: NDArray[np.int64],
    near: NDArray[np.float32],
    near_items: NDArray[np.int64],
    near_values: NDArray[np.float32],
    changes: NDArray[np.int64],
    n_changes: int,
    come: NDArray[np.float32],
    extra: np.float32,
    extra_item: int,
    extra_value: np.float32,
    most: int,
    in_order: bool,
    average: bool,
    least_count: int,
    mean: np.float32,
    held: NDArray[np.float32],
    codes: NDArray[np.int64],
    parts: NDArray[np.float32],
) -> np.float32:
    """Return one item's score from the history's items that are its neighbours after an edit.

    ``near`` is what the history brings to each item today, nearest first. ``changes`` are rows of
    (item of the history, item, 1 it comes or 0 it goes) with similarity and value in ``come``. The
    sums are in 32 bits and in the order that `ItemKNN` uses: nearest first where not all count,
    else (``in_order``) the order of the history.
    """
    n = 0
    # Those that come are few: they are merged one at a time, with the extra as the last of them.
    for p in range(starts[item], starts[item + 1]):
        own = near_items[p]
        if own == skip:
            continue
        gone = False
        for c in range(n_changes):
            if changes[c, 2] == 0 and changes[c, 1] == item and changes[c, 0] == own:
                gone = True
        if gone:
            continue
        if n == most:
            break
        held[n] = near[p]
        codes[n] = own
        parts[n] = near_values[p]
        n += 1
    for c in range(n_changes + 1):
        if c == n_changes:
            if not extra > 0:
                continue
            similar = extra
            code = extra_item
            part = extra_value
        else:
            if changes[c, 2] == 0 or changes[c, 1] != item:
                continue
            similar = come[c, 0]
            code = changes[c, 0]
            part = come[c, 1]
        place = n
        while place > 0 and (
            held[place - 1] < similar or (held[place - 1] == similar and codes[place - 1] > code)
        ):
            place -= 1
        if place >= most:
            continue
        for a in range(min(n, most - 1), place, -1):
            held[a] = held[a - 1]
            codes[a] = codes[a - 1]
            parts[a] = parts[a - 1]
        held[place] = similar
        codes[place] = code
        parts[place] = part
        n = min(n + 1, most)
    if n < least_count:
        return np.float32(np.nan)
    if in_order:
        for a in range(1, n):
            similar, code, part = held[a], codes[a], parts[a]
            b = a
            while b > 0 and codes[b - 1] > code:
                held[b] = held[b - 1]
                codes[b] = codes[b - 1]
                parts[b] = parts[b - 1]
                b -= 1
            held[b] = similar
            codes[b] = code
            parts[b] = part
    total = np.float32(0)
    weight = np.float32(0)
    for a in range(n):
        total += held[a] * parts[a]
        weight += held[a]
    if average:
        return np.float32(np.float32(total / weight) + mean)
    return total


@kernel()
def place_among(
    score: np.float32, code: int, best: NDArray[np.float32], codes: NDArray[np.int64], held: int
) -> int:
    """Insert a score among the best, best first, lower code on ties; return how many are held."""
    size = len(best)
    place = held
    while place > 0 and (
        best[place - 1] < score or (best[place - 1] == score and codes[place - 1] > code)
    ):
        place -= 1
    if place >= size:
        return held
    for a in range(min(held, size - 1), place, -1):
        best[a] = best[a - 1]
        codes[a] = codes[a - 1]
    best[place] = score
    codes[place] = code
    return min(held + 1, size)


@kernel()
def margin_of(
    score: np.float32, code: int, best: NDArray[np.float32], codes: NDArray[np.int64], held: int
) -> float:
    """Return the score less that of the last of a full list; below 0 for what is not in it."""
    if score != score:
        return -np.inf
    size = len(best)
    if held < size:
        return np.inf
    apart = np.float64(score) - np.float64(best[size - 1])
    if apart == 0 and code > codes[size - 1]:
        return -1e-30
    return apart


@kernel()
def item_singles(
    me: int,
    edits: NDArray[np.int64],
    values: NDArray[np.float32],
    targets: NDArray[np.int64],
    beta: float,
    k: int,
    stored: int,
    neighbours: int,
    least: np.float32,
    least_count: int,
    average: bool,
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    data: NDArray[np.float32],
    apart: NDArray[np.float32],
    starts: NDArray[np.int64],
    users: NDArray[np.int64],
    ratings: NDArray[np.float32],
    mean: NDArray[np.float32],
    scale: NDArray[np.float32],
    log_probability: NDArray[np.float64],
    margin: NDArray[np.float64],
) -> None:
    """Evaluate item-kNN, trained again, after each single edit of one person's history.

    An edit of an item changes the item's column: its mean and its cosines. So another item's score
    changes only if the two are or were stored neighbours, or if the edited item enters or leaves
    the stored list of an item of the history, whose last neighbour then leaves or returns. All sums
    are those of training, in its precision and order. ``edits`` are the edited items, rising, and
    ``values`` what the entries become (0: taken back). Row 0 of the results is today.
    """
    n_items = len(mean)
    first, last = indptr[me], indptr[me + 1]
    length = last - first
    own = indices[first:last]
    rated = np.zeros(n_items, np.float32)
    for p in range(first, last):
        rated[indices[p]] = data[p]
    most_values = 1
    at = 0
    while at < len(edits):
        end = at
        while end < len(edits) and edits[end] == edits[at]:
            end += 1
        most_values = max(most_values, end - at)
        at = end
    seen = np.zeros(n_items, np.bool_)
    touched = np.empty(n_items, np.int64)
    one = np.zeros((n_items, 1), np.float32)
    value1, mean1 = np.empty(1, np.float32), np.empty(1, np.float32)
    size = stored + 1
    heap, heap_codes = np.empty(size, np.float32), np.empty(size, np.int32)
    # The stored neighbours of the history's items, and the next one.
    list_items = np.full((length, size), -1, np.int32)
    list_near = np.zeros((length, size), np.float32)
    counts = np.zeros(length, np.int64)
    for a in range(length):
        item = own[a]
        value1[0], mean1[0] = rated[item], mean[item]
        n = edited_sums(item, me, value1, mean1, starts, users, ratings, indptr, indices, apart,
                        one, seen, touched)  # fmt: skip
        held = 0
        for b in range(n):
            i = touched[b]
            similar = one[i, 0] * (scale[item] * scale[i])
            one[i, 0] = 0
            seen[i] = False
            if i != item and similar >= least and (held < size or similar >= heap[0]):
                held = offer(heap, heap_codes, held, similar, i)
        counts[a] = held
        write_sorted(heap, heap_codes, held, list_items[a], list_near[a], np.float32(0))
    begin = np.zeros(n_items + 1, np.int64)
    for a in range(length):
        for b in range(min(counts[a], stored)):
            begin[list_items[a, b] + 1] += 1
    begin = np.cumsum(begin)
    fill = begin[:-1].copy()
    near = np.empty(begin[n_items], np.float32)
    near_items = np.empty(begin[n_items], np.int64)
    near_values = np.empty(begin[n_items], np.float32)
    for a in range(length):
        value = np.float32(rated[own[a]] - mean[own[a]])
        for b in range(min(counts[a], stored)):
            i = list_items[a, b]
            place = fill[i]
            while place > begin[i] and near[place - 1] < list_near[a, b]:
                near[place] = near[place - 1]
                near_items[place] = near_items[place - 1]
                near_values[place] = near_values[place - 1]
                place -= 1
            near[place] = list_near[a, b]
            near_items[place] = own[a]
            near_values[place] = value
            fill[i] += 1
    changes = np.empty((length + 1, 3), np.int64)
    come = np.empty((length + 1, 2), np.float32)
    back, back_come = np.empty((length + 1, 3), np.int64), np.empty((length + 1, 2), np.float32)
    nowhere = np.zeros(2, np.int64)
    room = max(length + 2, 2)
    part_near, part_values = np.empty(room, np.float32), np.empty(room, np.float32)
    part_codes = np.empty(room, np.int64)
    zero = np.float32(0)
    most = min(neighbours, length + 1)
    # Sums run over the history in its order or nearest first, which depends on its length; so an
    # edit may change the last digit of every score. Row 1 of what holds today is in its order.
    now = np.empty((2, n_items), np.float32)
    weights, totals, tops = np.zeros((2, n_items)), np.zeros(2), np.full(2, -np.inf)
    orders = np.empty((2, n_items), np.int64)
    listed = np.zeros(n_items, np.bool_)
    for ordered in range(2):
        if ordered != int(length <= neighbours) and not neighbours <= length <= neighbours + 1:
            continue
        for i in range(n_items):
            now[ordered, i] = near_score(
                i, -1, begin, near, near_items, near_values, changes, 0, come, zero, 0, zero, most,
                ordered == 1, average, least_count, mean[i], part_near, part_codes, part_values
            )  # fmt: skip
            listed[i] = rated[i] == 0 and now[ordered, i] == now[ordered, i]  # not NaN
            if listed[i]:
                tops[ordered] = max(tops[ordered], beta * now[ordered, i])
        if tops[ordered] == -np.inf:
            tops[ordered] = 0.0
        for i in range(n_items):
            if listed[i]:
                weights[ordered, i] = np.exp(beta * now[ordered, i] - tops[ordered])
                totals[ordered] += weights[ordered, i]
        keys = np.where(listed, -now[ordered], np.float32(np.inf))
        orders[ordered] = np.argsort(keys, kind="mergesort")
    n_listed = int(listed.sum())
    best, best_codes = np.empty(k, np.float32), np.empty(k, np.int64)
    ordered = int(length <= neighbours)
    base_scores, weight, order = now[ordered], weights[ordered], orders[ordered]
    total, top = totals[ordered], tops[ordered]
    held = 0
    for a in range(min(k, n_listed)):
        best[a], best_codes[a] = base_scores[order[a]], order[a]
        held += 1
    for a in range(len(targets)):
        target = targets[a]
        score = base_scores[target] if listed[target] else np.float32(np.nan)
        log_probability[0, a] = -np.inf
        if listed[target]:
            log_probability[0, a] = beta * score - top - np.log(total)
        margin[0, a] = margin_of(score, target, best, best_codes, held)
    sums = np.zeros((n_items, most_values), np.float32)
    means, scales = np.empty(most_values, np.float32), np.empty(most_values, np.float32)
    mark = np.full(n_items, -1, np.int64)
    in_new = np.full(n_items, -1, np.int64)
    fresh, extra = np.full(n_items, np.float32(np.nan)), np.zeros(n_items, np.float32)
    affected = np.empty(n_items, np.int64)
    new_heap, new_codes = np.empty(stored, np.float32), np.empty(stored, np.int32)
    stamp = 0
    at = 0
    while at < len(edits):
        item = edits[at]
        end = at
        while end < len(edits) and edits[end] == item:
            end += 1
        many = end - at
        old = -1
        for a in range(length):
            if own[a] == item:
                old = a
        for v in range(many):
            means[v], scales[v] = edited_column(
                item, me, values[at + v], starts, users, ratings, average
            )
        n = edited_sums(item, me, values[at:end], means[:many], starts, users, ratings, indptr,
                        indices, apart, sums, seen, touched)  # fmt: skip
        for v in range(many):
            stamp += 1
            value = values[at + v]
            n_affected = 0
            if value > 0:
                held = 0
                for b in range(n):
                    i = touched[b]
                    similar = sums[i, v] * (scales[v] * scale[i])
                    if i != item and similar >= least and (held < stored or similar >= new_heap[0]):
                        held = offer(new_heap, new_codes, held, similar, i)
                for b in range(held):
                    i = new_codes[b]
                    in_new[i] = stamp
                    extra[i] = new_heap[b]
                    mark[i] = stamp
                    affected[n_affected] = i
                    n_affected += 1
            if old >= 0:
                for b in range(min(counts[old], stored)):
                    i = list_items[old, b]
                    if mark[i] != stamp:
                        mark[i] = stamp
                        affected[n_affected] = i
                        n_affected += 1
            n_changes, n_back = 0, 0
            for a in range(length):
                h = own[a]
                if h == item:
                    continue
                full = min(counts[a], stored)
                place = -1
                for b in range(full):
                    if list_items[a, b] == item:
                        place = b
                        break
                similar = sums[h, v] * (scales[v] * scale[h])
                inside = False
                if similar >= least:
                    # The last one that stays in the list if the edited item is not in it.
                    if place >= 0:
                        edge = stored if counts[a] > stored else -1
                    else:
                        edge = stored - 1 if full == stored else -1
                    inside = (
                        edge < 0
                        or similar > list_near[a, edge]
                        or (similar == list_near[a, edge] and item < list_items[a, edge])
                    )
                worth = np.float32(rated[h] - mean[h])
                i = -1
                if place >= 0 and not inside and counts[a] > stored:
                    i = list_items[a, stored]
                    changes[n_changes, 2] = 1
                    come[n_changes, 0] = list_near[a, stored]
                elif place < 0 and inside and full == stored:
                    i = list_items[a, stored - 1]
                    changes[n_changes, 2] = 0
                if i >= 0:
                    changes[n_changes, 0], changes[n_changes, 1] = h, i
                    come[n_changes, 1] = worth
                    n_changes += 1
                    if mark[i] != stamp:
                        mark[i] = stamp
                        affected[n_affected] = i
                        n_affected += 1
                if value == 0 and inside:
                    back[n_back, 0], back[n_back, 1], back[n_back, 2] = h, 0, 1
                    back_come[n_back, 0], back_come[n_back, 1] = similar, worth
                    n_back += 1
            skip = item if old >= 0 else -1
            after = length
            if value > 0 and old < 0:
                after += 1
            elif value == 0:
                after -= 1
            in_order = after <= neighbours
            ordered = int(in_order)
            base_scores, weight, order = now[ordered], weights[ordered], orders[ordered]
            total, top = totals[ordered], tops[ordered]
            worth = np.float32(value - means[v])
            for b in range(n_affected):
                i = affected[b]
                if i == item or rated[i] > 0:
                    continue
                more = extra[i] if value > 0 and in_new[i] == stamp else zero
                fresh[i] = near_score(i, skip, begin, near, near_items, near_values, changes,
                                      n_changes, come, more, item, worth, most, in_order, average,
                                      least_count, mean[i], part_near, part_codes,
                                      part_values)  # fmt: skip
            if value == 0:
                if mark[item] != stamp:
                    mark[item] = stamp
                    affected[n_affected] = item
                    n_affected += 1
                fresh[item] = near_score(0, -1, nowhere, near, near_items, near_values, back,
                                         n_back, back_come, zero, 0, zero, most, in_order,
                                         average, least_count, means[v], part_near, part_codes,
                                         part_values)  # fmt: skip
            # The sum of the softmax follows, and is made anew where little of it is left.
            left, high = total, 0.0
            if value > 0 and listed[item]:
                left -= weight[item]
            for b in range(n_affected):
                i = affected[b]
                if i == item and value > 0:
                    continue
                if listed[i]:
                    left -= weight[i]
                if (rated[i] == 0 or i == item) and fresh[i] == fresh[i]:
                    left += np.exp(beta * fresh[i] - top)
                    high = max(high, beta * fresh[i] - top)
            base = top
            if not left > 1e-6 * total or high > 500:
                left, base = 0.0, -np.inf
                for step in range(2):
                    for i in range(n_items):
                        if (value > 0) if i == item else (rated[i] > 0):
                            continue
                        score = fresh[i] if mark[i] == stamp else base_scores[i]
                        if score == score:
                            if step == 0:
                                base = max(base, beta * score)
                            else:
                                left += np.exp(beta * score - base)
            held = 0
            a = 0
            while held < k and a < n_listed:
                i = order[a]
                a += 1
                if mark[i] != stamp and not (i == item and value > 0):
                    best[held], best_codes[held] = base_scores[i], i
                    held += 1
            for b in range(n_affected):
                i = affected[b]
                shown = value == 0 if i == item else rated[i] == 0
                if shown and fresh[i] == fresh[i]:
                    held = place_among(fresh[i], i, best, best_codes, held)
            for a in range(len(targets)):
                target = targets[a]
                score = np.float32(np.nan)
                if target == item:
                    if value == 0:
                        score = fresh[item]
                elif rated[target] == 0:
                    score = fresh[target] if mark[target] == stamp else base_scores[target]
                log_probability[1 + at + v, a] = -np.inf
                if score == score:
                    log_probability[1 + at + v, a] = beta * score - base - np.log(left)
                margin[1 + at + v, a] = margin_of(score, target, best, best_codes, held)
        for b in range(n):
            seen[touched[b]] = False
            for v in range(many):
                sums[touched[b], v] = 0
        at = end


@kernel()
def score_singles(
    scores: NDArray[np.float32],
    seen: NDArray[np.bool_],
    items: NDArray[np.int32],
    adds: NDArray[np.bool_],
    removes: NDArray[np.bool_],
    targets: NDArray[np.int64],
    beta: float,
    k: int,
    log_probability: NDArray[np.float64],
    margin: NDArray[np.float64],
) -> None:
    """Write each target's log-probability and margin for rows of scores, one row per edit."""
    n_items = scores.shape[1]
    best, codes = np.empty(k, np.float32), np.empty(k, np.int64)
    for r in range(scores.shape[0]):
        row = scores[r]
        held = 0
        top = -np.inf
        for j in range(n_items):
            hidden = seen[j]
            if j == items[r]:
                hidden = (hidden or adds[r]) and not removes[r]
            if hidden:
                row[j] = np.nan
            if row[j] == row[j]:
                top = max(top, beta * row[j])
                if held < k or row[j] > best[held - 1]:
                    held = place_among(row[j], j, best, codes, held)
        total = 0.0
        if beta > 0:
            for j in range(n_items):
                if row[j] == row[j]:
                    total += np.exp(beta * row[j] - top)
        for a in range(len(targets)):
            score = row[targets[a]]
            log_probability[r, a] = -np.inf
            if score == score and beta > 0:
                log_probability[r, a] = beta * score - top - np.log(total)
            margin[r, a] = margin_of(score, targets[a], best, codes, held)


@kernel(fastmath={"reassoc", "contract"})
def influence_sums(
    inverse: NDArray[np.float64],
    image: NDArray[np.float64],
    alpha: float,
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    third: NDArray[np.float64],
    wanted: NDArray[np.bool_],
    out: NDArray[np.float64],
) -> None:
    """Write the sums over i of a G_ti, b G_ti and c G_ti^2 for items t, where G = P + alpha pp'."""
    n = len(image)
    for t in range(n):
        if not wanted[t]:
            continue
        a = b = c = 0.0
        lean = alpha * image[t]
        row = inverse[t]
        for i in range(n):
            g = row[i] + lean * image[i]
            a += first[i] * g
            b += second[i] * g
            c += third[i] * g * g
        out[0, t] = a
        out[1, t] = b
        out[2, t] = c


@kernel(fastmath={"contract"})
def linear_singles(
    inverse: NDArray[np.float64],
    image: NDArray[np.float64],
    alpha: float,
    y: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    square: float,
    hidden: NDArray[np.float64],
    known: NDArray[np.bool_],
    items: NDArray[np.int64],
    steps: NDArray[np.float64],
    removed: NDArray[np.bool_],
    emptied: NDArray[np.bool_],
    beta: float,
    k: int,
    targets: NDArray[np.int64],
    log_sum: NDArray[np.float64],
    margin: NDArray[np.float64],
) -> None:
    """Evaluate EASE, trained again, after each single edit: a step of one entry of the history.

    Scores are ``-y_i / (c D_i - y_i^2)`` with y and c as they are after the edit. ``hidden`` is
    minus infinity for what cannot be listed today. Writes log sum exp of beta times the scores
    where beta > 0, and where k > 0 each target's margin over the k-th best of the others.
    """
    n = len(y)
    scores = np.empty(n)
    best = np.empty(k + 1)
    for e in range(len(items)):
        t, d = items[e], steps[e]
        lean = alpha * image[t]
        row = inverse[t]
        c = square + 2 * d * y[t] + d * d * (row[t] + lean * image[t])
        for i in range(n):
            z = y[i] + d * (row[i] + lean * image[i])
            scores[i] = -z / (c * diagonal[i] - z * z) + hidden[i]
        scores[t] = -np.inf
        if removed[e] and known[t]:
            z = y[t] + d * (row[t] + lean * image[t])
            scores[t] = -z / (c * diagonal[t] - z * z)
        if emptied[e]:
            scores[:] = -np.inf
        if beta > 0:
            top = -np.inf
            for i in range(n):
                top = max(top, scores[i])
            total = 0.0
            if top > -np.inf:
                for i in range(n):
                    total += np.exp(beta * (scores[i] - top))
            log_sum[e] = beta * top + np.log(total) if top > -np.inf else np.inf
        if k > 0:
            best[:] = -np.inf
            low = -np.inf
            for i in range(n):
                if scores[i] > low:
                    place = k
                    while place > 0 and best[place - 1] < scores[i]:
                        best[place] = best[place - 1]
                        place -= 1
                    best[place] = scores[i]
                    low = best[k]
            for a in range(len(targets)):
                score = scores[targets[a]]
                if score == -np.inf:
                    margin[e, a] = -np.inf
                else:
                    rival = best[k] if score >= best[k - 1] else best[k - 1]
                    margin[e, a] = np.inf if rival == -np.inf else score - rival
