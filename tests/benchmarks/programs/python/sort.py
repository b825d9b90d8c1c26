"""Sorting: numbers, strings, tuples, by a key, with a comparison of one's own."""

import functools
import heapq

seed = 1


def dice():
    global seed
    seed = (seed * 1103515245 + 12345) & 0x7FFFFFFF
    return seed


numbers = [dice() for _ in range(60000)]
words = [str(n) for n in numbers]
pairs = [(n % 100, word) for n, word in zip(numbers, words)]
total = 0
for turn in range(2):
    total += sorted(numbers)[turn] + len(sorted(words)[turn]) + sorted(pairs)[turn][0]
    total += sorted(numbers, key=lambda n: (n % 1000, -n))[turn]
    total += sorted(numbers[:12000], key=functools.cmp_to_key(lambda a, b: (a > b) - (a < b)))[turn]
    heap = []
    for n in numbers[:15000]:
        heapq.heappush(heap, n)
    total += sum(heapq.heappop(heap) for _ in range(1000))
print(total)
