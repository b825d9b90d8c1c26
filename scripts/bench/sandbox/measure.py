"""Runs rows in columns, in turns, and compares their answers."""

from __future__ import annotations

import contextlib
import http.server
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from bench.building import how_it_ended, last_line
from bench.model import Failed, Missing, NotOffered, Present, environment
from bench.sandbox.columns import Column
from bench.sandbox.model import Cell, Row
from bench.sandbox.rows import SERVED
from bench.timing import Timed, timed

# The first start of a program in a cage compiles it.
FIRST_SECONDS = 300
RUN_SECONDS = 60
WARM_UP = 3
# A row that takes longer than this is run only a few times.
SLOW_SECONDS, SLOW_RUNS = 3.0, 3


class Answers(http.server.BaseHTTPRequestHandler):
    """The local server of the network rows."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(SERVED)))
        self.end_headers()
        self.wfile.write(SERVED)

    def log_message(self, *_: object) -> None:
        """Writes no log."""


@contextlib.contextmanager
def local_server() -> Iterator[int]:
    """A server on a free port of 127.0.0.1; yields the port."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def settings() -> dict[str, str]:
    return environment({"LANG": "C", "GIT_CONFIG_NOSYSTEM": "1"})


class Suite(Present[Column]):
    """One run of the suite: the measurements, the missing columns, the failures."""

    def __init__(self, columns: list[Column], place: Path, runs: int, warm_up: int = WARM_UP) -> None:
        self.columns, self.place, self.runs, self.warm_up = columns, place, runs, warm_up
        self.cells: dict[str, dict[str, Cell]] = {}
        self.missing: dict[str, str] = {}
        self.failures: dict[str, str] = {}

    def run(self, rows: list[Row], columns: list[Column], port: int | None, say) -> None:
        for row in rows:
            step = say([row.name])
            with tempfile.TemporaryDirectory(dir=self.place, prefix=f"{row.name}.") as name:
                workspace = Path(name) / "workspace"
                workspace.mkdir()
                try:
                    row.make(workspace)
                except (Missing, Failed) as reason:
                    self.missing[row.name] = str(reason)
                    continue
                with contextlib.ExitStack() as stack:
                    self.run_row(row, columns, workspace, port, step, stack)

    def run_row(self, row: Row, columns: list[Column], workspace: Path, port: int | None, step, stack: contextlib.ExitStack) -> None:
        trial = Trial(row, workspace)
        ready = []
        for column in columns:
            where = f"{row.name}, {column.name}"
            try:
                wish = row.wish(workspace, port)
                for tool in row.tools:
                    column.tool(tool)
                command = column.command(wish)
                stack.callback(column.close)
                column.open(wish)
                for i in range(self.warm_up):
                    last = trial.run(column, command, RUN_SECONDS if i else FIRST_SECONDS)
                    if i and last.seconds > SLOW_SECONDS:
                        break
                ready.append((column, Cell(command, SLOW_RUNS if last.seconds > SLOW_SECONDS else self.runs)))
            except NotOffered:
                continue
            except Missing as missing:
                self.missing[where] = str(missing)
            except Failed as failure:
                self.failures[where] = str(failure)
        for _ in range(self.runs):
            for column, cell in [each for each in ready if len(each[1].runs) < each[1].wanted]:
                try:
                    cell.runs.append(trial.run(column, cell.command, RUN_SECONDS))
                except Failed as failure:
                    self.failures[f"{row.name}, {column.name}"] = str(failure)
                    ready.remove((column, cell))
            step()
        self.cells[row.name] = {column.name: cell for column, cell in ready}


class Trial:
    """One row's workspace, and the first column's answer."""

    def __init__(self, row: Row, workspace: Path) -> None:
        self.row, self.workspace, self.expected = row, workspace, row.expected
        self.out, self.err = workspace.parent / "stdout", workspace.parent / "stderr"

    def run(self, column: Column, command: list[str], limit: float) -> Timed:
        """One run, with its output in a file: some tools do less when nobody reads it."""
        self.row.reset(self.workspace)
        result = timed(command, self.workspace, settings(), limit, self.out, self.err)
        if result.status == 127 and column.daemon:
            raise Missing(f"{self.row.words[0]} is not in the image")
        if result.status != self.row.status:
            said = last_line(self.err.read_text(errors="replace"))
            raise Failed(f"{how_it_ended(result.status)}, expected {self.row.status}: {said}")
        answer = self.row.answer(self.workspace, self.out.read_bytes())
        if self.expected is None:
            self.expected = answer
        if answer != self.expected:
            raise Failed(f"another answer than the other columns: {str(answer)[:200]} instead of {str(self.expected)[:200]}")
        return result
