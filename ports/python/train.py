"""Runs typical work of scripts, for the profile by which the interpreter is compiled: a little of
each type, of the parser, and of the modules that are imported most."""

import collections
import dataclasses
import functools
import heapq
import itertools
import json
import re
import string


class Shape:
    count = 0

    def __init__(self, side, *, name="shape"):
        self.side, self.name = side, name
        Shape.count += 1

    @property
    def area(self):
        return self.side * self.side

    def __eq__(self, other):
        return isinstance(other, Shape) and self.side == other.side

    def __hash__(self):
        return hash(self.side)

    def __add__(self, other):
        return type(self)(self.side + other.side)


class Box(Shape):
    __slots__ = ("depth",)

    def __init__(self, side, depth=1):
        super().__init__(side, name="box")
        self.depth = depth

    def volume(self):
        return self.area * self.depth


@dataclasses.dataclass(order=True)
class Item:
    key: int
    text: str = ""
    tags: list = dataclasses.field(default_factory=list)


def objects(n):
    total, last, seen = 0, Shape(0), set()
    for i in range(n):
        shape, box = Shape(i % 9), Box(i % 7, depth=i % 3)
        total += shape.area + box.volume() + (shape == last) + (last + shape).side + len(shape.name)
        seen.add(shape)
        last = shape
        setattr(box, "extra", getattr(box, "depth", 0) + hasattr(box, "none"))
    items = sorted(Item(i * 7 % 101, str(i)) for i in range(n // 10))
    return total + len(seen) + items[0].key + Shape.count


def texts(n):
    lines = [f"key{i % 50} = {i:>6}; # {'x' * (i % 5)!r} {i / 9:.3f}" for i in range(n)]
    text, total = "\n".join(lines), 0
    for line in text.splitlines():
        name, _, rest = line.partition(" = ")
        total += len(name.strip().title()) + int(rest.split(";")[0]) + rest.count("x") + rest.startswith(" ")
    total += len(text.replace("key", "word").lower().encode("utf-8").decode()) + text.find("key49") + len(text[::-3])
    total += len("%s|%5d|%-8s" % (text[:10], n, "end")) + len(string.Template("$a b").substitute(a=n))
    return total + sum(ord(character) for character in text[:n]) + len("".join(character + "ä" for character in text[:n]))


def patterns(n):
    text = " ".join(f"user{i}@host{i % 7}.example /path/{i}/file_{i}.txt [{i}:{i * 3}]" for i in range(n))
    total = sum(int(found[1]) for found in re.finditer(r"user(\d+)@(?:[a-z]+\d\.)+\w+", text))
    total += len(re.sub(r"/(\w+)/(\d+)", lambda found: found[2] + found[1], text)) + len(re.split(r"[\s/:]+", text))
    return total + len(re.findall(r"(?i)FILE_\d{1,3}\.TXT|\[(\d+):\d+\]", text)) + bool(re.match(r"(.*?)host6", text))


def containers(n):
    counts, groups = collections.Counter(), collections.defaultdict(list)
    for i in range(n):
        counts[i * 7919 % 211] += 1
        groups[i % 13].append((i, -i))
    merged = {**counts, **dict.fromkeys(range(300, 400))}
    inverted = {value: key for key, value in counts.items()}
    numbers = sorted(range(n), key=lambda i: (i * 31 % 101, i))
    numbers.sort(reverse=True)
    queue, heap = collections.deque(numbers, maxlen=100), []
    for number in numbers[: n // 4]:
        heapq.heappush(heap, number % 97)
    total = sum(heapq.heappop(heap) for _ in range(n // 8)) + len(merged) + sum(inverted) + queue[0]
    chained = itertools.islice(itertools.chain.from_iterable(groups.values()), n)
    total += sum(a for a, b in chained if a + b == 0) + sum(x for x, in zip(numbers)) + max(map(abs, numbers))
    return total + len(set(numbers[:50]) & set(range(n))) + functools.reduce(lambda a, b: a ^ b, numbers) + len(numbers[1::2])


def numbers(n):
    product, x, bits = 1, 0.5, 1
    for i in range(1, n):
        product = product * i if i < 400 else product // 3 + i
        x = 3.7 * x * (1 - x) + i % 3 / 1e6
        bits = (bits << 5 ^ bits >> 2 ^ i) & 0xFFFFFFFF
    grid = [[(i * j) % 11 / 3 for j in range(30)] for i in range(30)]
    trace = sum(sum(a * b for a, b in zip(row, column)) for row, column in zip(grid, zip(*grid)))
    return len(str(product)) + int(x * 1000) + bits % 7 + int(trace) + pow(3, product % 10**40, 10**30 + 57) % 7 + divmod(product, 10**20)[1]


def calls(n):
    @functools.lru_cache(maxsize=64)
    def cached(i):
        return i + 1

    def tree(depth):
        return (tree(depth - 1), tree(depth - 1)) if depth else None

    def leaves(node):
        if node is None:
            yield 1
        else:
            for part in node:
                yield from leaves(part)

    def varied(a, *rest, b=1, **named):
        return a + len(rest) + b + len(named)

    total = 0
    for i in range(n):
        total += cached(i % 70) + sum(leaves(tree(4))) + varied(i) + varied(i, 1, 2, b=3, c=4) + varied(*(1, 2), **{"d": 5})
        try:
            if i % 5 == 0:
                raise ValueError(i)
            total += [1, 2, 3][i % 4]
        except (ValueError, IndexError) as error:
            total += len(error.args)
        finally:
            total += 1
    return total


def records(n):
    data = [{"id": i, "name": f"näme {i}", "tags": ["a", None, True], "inner": {"share": i / 7, "text": 'a "b"\n'}} for i in range(n)]
    text = json.dumps(data)
    return len(text) + (json.loads(text) == data) + len(json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False))


def parser(n):
    source = "def f(a, b=2):\n    total = [x * a for x in range(b) if x % 2]\n    return {k: v for k, v in enumerate(total)} or f'{a!r:>5}'\nresult = f({})\n"
    total = 0
    for i in range(n):
        names = {}
        exec(compile(source.replace("{})", f"{i})"), "train", "exec"), names)
        total += len(names["result"])
    return total


for _ in range(2):
    print(objects(6000), texts(2500), patterns(1500), containers(12000), numbers(8000), calls(1500), records(400), parser(60))
