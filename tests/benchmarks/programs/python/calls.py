"""Calls: of functions with positional, named and default arguments, of methods, of closures."""


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def three(a, b=2, *, c=3):
    return a + b + c


def adder(step):
    return lambda n: n + step


class Counter:
    def __init__(self):
        self.n = 0

    def add(self, k):
        self.n += k
        return self

    @staticmethod
    def double(k):
        return k + k


total = fibonacci(25)
add = adder(5)
counter = Counter()
for i in range(300000):
    total += three(i) + three(i, 1) + three(i, c=1) + add(i)
    counter.add(i).add(1)
    total += Counter.double(i) + max(i, 7) + len("word")
print(total, counter.n)
