"""Attributes: read and written, of objects, slots, classes and properties."""


class Base:
    shared = 3

    def __init__(self, x):
        self.x, self.y, self.z = x, x + 1, x + 2

    @property
    def sum(self):
        return self.x + self.y


class Derived(Base):
    pass


class Slots:
    __slots__ = ("a", "b")

    def __init__(self):
        self.a = self.b = 1


objects = [Base(i) if i % 2 else Derived(i) for i in range(100)]
slots = Slots()
total = 0
for turn in range(7000):
    for each in objects:
        each.x = each.y - 1
        each.z += each.x
        total += each.z + each.shared
        slots.a, slots.b = slots.b, slots.a
    total += objects[turn % 100].sum
for each in objects:
    setattr(each, "w", getattr(each, "x") + hasattr(each, "missing"))
print(total, sum(each.w for each in objects), slots.a)
