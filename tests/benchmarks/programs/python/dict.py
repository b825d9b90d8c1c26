"""Dictionaries and sets: filled, looked up, counted, merged, and emptied again."""

words = [f"key{i * 7919 % 5003}" for i in range(20000)]
total = 0
for turn in range(20):
    counts = {}
    for word in words:
        counts[word] = counts.get(word, 0) + 1
    numbers = {i * 31: i for i in range(20000)}
    for i in range(0, 620000, 31):
        total += numbers[i]
    total += sum(1 for word in words if word in counts)
    inverted = {value: key for key, value in numbers.items()}
    some = {n for n in inverted if n % 3} & set(range(10000))
    merged = {**counts, **{word: 0 for word in words[:1000]}}
    for key in list(merged):
        del merged[key]
    total += len(some) + len(merged)
print(total, sorted(counts.items())[:3])
