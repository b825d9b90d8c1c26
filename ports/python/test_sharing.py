"""Tests the memory that multiprocessing shares between processes, by ctypes or by name: test_sharing.py values|memory"""

import ctypes
import multiprocessing as mp
import sys
from multiprocessing import shared_memory


def add(total, each, lock_free):
    for _ in range(1000):
        with total.get_lock():
            total.value += 1
    each[0] += 1.5
    lock_free[3] = b"x"


def write(name):
    memory = shared_memory.SharedMemory(name=name)
    memory.buf[0:5] = b"child"
    memory.close()


def values():
    total, each, lock_free = mp.Value("i", 5), mp.Array("d", [0.5, 1]), mp.RawArray(ctypes.c_char, b"abcdef")
    children = [mp.Process(target=add, args=(total, each, lock_free)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert total.value == 4005, total.value
    assert lock_free.raw == b"abcxef", lock_free.raw
    assert each[1] == 1 and each[0] > 0.5, each[:]
    with mp.Pool(2) as pool:
        assert pool.map(abs, range(-50, 0)) == list(range(50, 0, -1))


def memory():
    block = shared_memory.SharedMemory(create=True, size=10000)
    try:
        child = mp.Process(target=write, args=(block.name,))
        child.start()
        child.join()
        assert bytes(block.buf[:5]) == b"child" and child.exitcode == 0
        items = shared_memory.ShareableList(["one", 2, 3.5])
        assert list(shared_memory.ShareableList(name=items.shm.name)) == ["one", 2, 3.5]
        items.shm.close()
        items.shm.unlink()
    finally:
        block.close()
        block.unlink()


if __name__ == "__main__":
    mp.set_start_method("fork")
    {"values": values, "memory": memory}[sys.argv[1]]()
