"""The rows, and their turns: every column does the same, and its answer is looked at."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.model import Failed, Missing, NotOffered, Present
from bench.package.columns import Box, Column

MEBIBYTE = 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Row:
    """An action that is timed. `open`: in a sandbox that has been made before."""

    name: str
    act: Callable[[Column, Box | None, Path], None]
    open: bool = False


def expect(what: object, expected: object) -> None:
    if what != expected:
        raise Failed(f"another answer: {str(what)[:200]} instead of {str(expected)[:200]}")


def create_and_run(column: Column, _: Box | None, place: Path) -> None:
    with column.sandbox(place) as box:
        expect(box.run(["echo", "hello"]), b"hello\n")


def run(_: Column, box: Box | None, __: Path) -> None:
    expect(box.run(["echo", "hello"]), b"hello\n")


def write(_: Column, box: Box | None, place: Path) -> None:
    box.write("written", b"x" * MEBIBYTE)
    file = place / "written"
    expect(file.stat().st_size, MEBIBYTE)
    file.unlink()


def first(column: Column, _: Box | None, place: Path) -> None:
    expect(column.first(Path(tempfile.mkdtemp(dir=place))), b"42\n")


def many(count: int) -> Callable[[Column, Box | None, Path], None]:
    def one(column: Column, place: Path, number: int) -> None:
        own = place / str(number)
        own.mkdir(exist_ok=True)
        with column.sandbox(own) as box:
            expect(box.run(["echo", str(number)]), f"{number}\n".encode())

    def act(column: Column, _: Box | None, place: Path) -> None:
        with concurrent.futures.ThreadPoolExecutor(count) as threads:
            for done in [threads.submit(one, column, place, number) for number in range(count)]:
                done.result()
    return act


def every_row(count: int) -> list[Row]:
    return [
        Row("create a sandbox, run a command, end it", create_and_run),
        Row("a command in a sandbox", run, open=True),
        Row(f"{count} sandboxes at once, a command in each", many(count)),
        Row("write a file of 1 MiB", write, open=True),
        Row("a Python program, the first after installing", first),
    ]


class Turns(Present[Column]):
    """One run of the suite: seconds by row and column, the missing columns, the failures."""

    def __init__(self, columns: list[Column], place: Path, rounds: int) -> None:
        self.columns, self.place, self.rounds = columns, place, rounds
        self.rows: dict[str, dict[str, list[float]]] = {}
        self.missing: dict[str, str] = {}
        self.failed: dict[str, str] = {}

    def run(self, row: Row, columns: list[Column], step: Callable[[], None]) -> None:
        """Once to warm up, and then in turns."""
        with contextlib.ExitStack() as stack:
            ready = [each for column in columns for each in self.prepared(row, column, stack)]
            for _ in range(self.rounds):
                for column, box, place in list(ready):
                    try:
                        taken = timed(row, column, box, place)
                    except (Failed, OSError) as failure:
                        self.failed[f"{row.name}, {column.name}"] = str(failure)
                        ready.remove((column, box, place))
                    else:
                        self.rows.setdefault(row.name, {}).setdefault(column.name, []).append(taken)
                step()

    def prepared(self, row: Row, column: Column, stack: contextlib.ExitStack) -> Iterator[tuple[Column, Box | None, Path]]:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=self.place)))
        try:
            box = stack.enter_context(column.sandbox(place)) if row.open else None
            timed(row, column, box, place)
            yield column, box, place
        except NotOffered:
            return
        except (Failed, Missing, OSError) as failure:
            self.failed[f"{row.name}, {column.name}"] = str(failure)


def timed(row: Row, column: Column, box: Box | None, place: Path) -> float:
    start = time.perf_counter()
    row.act(column, box, place)
    return time.perf_counter() - start
