"""A mix: planets, queens, a spectral norm, pidigits, a small interpreter, words counted with classes and generators."""

import collections
import itertools


def planets(turns):
    bodies = [[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 39.5], [4.8, -1.2, -0.1, 0.6, 2.8, -0.02, 0.04], [8.3, 4.1, -0.4, -1.0, 1.8, 0.008, 0.01],
              [12.9, -15.1, -0.2, 1.1, 0.9, -0.01, 0.002]]
    for _ in range(turns):
        for one, two in itertools.combinations(bodies, 2):
            dx, dy, dz = one[0] - two[0], one[1] - two[1], one[2] - two[2]
            pull = 0.01 / ((dx * dx + dy * dy + dz * dz) ** 1.5)
            for body, mass, sign in (one, two[6], -1), (two, one[6], 1):
                body[3] += sign * dx * mass * pull
                body[4] += sign * dy * mass * pull
                body[5] += sign * dz * mass * pull
        for body in bodies:
            for axis in range(3):
                body[axis] += 0.01 * body[axis + 3]
    return round(sum(body[0] for body in bodies), 6)


def queens(n):
    def place(row, columns, rising, falling):
        if row == n:
            yield 1
            return
        for column in range(n):
            if column not in columns and row + column not in rising and row - column not in falling:
                yield from place(row + 1, columns | {column}, rising | {row + column}, falling | {row - column})

    return sum(place(0, frozenset(), frozenset(), frozenset()))


def norm(n):
    def times(vector, entry):
        return [sum(entry(i, j) * vector[j] for j in range(n)) for i in range(n)]

    vector = [1.0] * n
    for _ in range(3):
        vector = times(times(vector, lambda i, j: 1.0 / ((i + j) * (i + j + 1) / 2 + i + 1)), lambda i, j: 1.0 / ((i + j) * (i + j + 1) / 2 + j + 1))
    return round(sum(vector), 6)


class Machine:
    """Runs a list of instructions over a stack."""

    def __init__(self, code):
        self.code, self.stack, self.at, self.steps = code, [], 0, 0

    def push(self, n):
        self.stack.append(n)

    def add(self, _):
        self.stack.append(self.stack.pop() + self.stack.pop())

    def jump(self, target):
        if self.stack[-1] < 30000:
            self.at = target - 1

    def run(self):
        while self.at < len(self.code):
            name, argument = self.code[self.at]
            getattr(self, name)(argument)
            self.at += 1
            self.steps += 1
        return self.stack[-1], self.steps


Word = collections.namedtuple("Word", "text length")


def words(n):
    stream = (Word(f"w{i * i % 971}", i % 13) for i in range(n))
    counts = collections.Counter()
    try:
        for word in stream:
            counts[word.text] += word.length
            if word.length == 14:
                raise ValueError(word)
    except ValueError:
        counts.clear()
    return counts.most_common(2)


print(planets(1500), queens(7), norm(100), Machine([("push", 0), ("push", 1), ("add", None), ("jump", 1)]).run(), words(60000))
