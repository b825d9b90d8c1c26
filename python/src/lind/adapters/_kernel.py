"""Runs pieces of Python in one name space, one after the other. It is a program inside a sandbox: only the standard library is there.

A request is four bytes of length, the highest first, and so many of Python. An answer is the same of JSON: `logs`, what the piece has written;
`value`, the text of its last expression, or `raised`, the class of its exception, with `carried`, its attribute `value` if that is a text, and `trace`.
"""

import ast
import json
import linecache
import os
import sys
import tempfile
import traceback
import types

# How much of what a piece writes is kept.
MOST = 1 << 20


def evaluate(code: str, name: str, space: dict[str, object]) -> object:
    """Runs a piece. The value of its last expression."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    tree = ast.parse(code, name)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        last = None
    exec(compile(ast.Module(tree.body[:-1] if last else tree.body, tree.type_ignores), name, "exec"), space)  # noqa: S102
    return eval(compile(ast.Expression(last.value), name, "eval"), space) if last else None


def answer(code: str, name: str, space: dict[str, object]) -> dict[str, object]:
    """The answer to a piece, without its logs."""
    try:
        value = evaluate(code, name, space)
        return {"value": None if value is None else repr(value)}
    except BaseException as why:  # noqa: BLE001 - the code of a piece may raise any
        carried = getattr(why, "value", None)
        # The first frames are those of this program.
        frames = why.__traceback__
        while frames and frames.tb_frame.f_code.co_filename != name:
            frames = frames.tb_next
        trace = "".join(traceback.TracebackException(type(why), why, frames).format())
        return {"raised": type(why).__name__, "carried": carried if isinstance(carried, str) else None, "trace": trace}


def logged(log: int) -> str:
    """Empties the log, and returns what it had."""
    sys.stdout.flush()
    sys.stderr.flush()
    size = os.fstat(log).st_size
    data = os.pread(log, MOST, 0)
    os.ftruncate(log, 0)
    os.lseek(log, 0, os.SEEK_SET)
    return data.decode(errors="replace") + (f"\n[{size - MOST} more bytes]\n" if size > MOST else "")


def serve() -> None:
    """Answers requests until they end."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with tempfile.TemporaryFile(buffering=0) as log, open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        count = 0
        while head := requests.read(4):
            count += 1
            code = requests.read(int.from_bytes(head, "big")).decode()
            told = answer(code, f"<code {count}>", vars(main))
            message = json.dumps({**told, "logs": logged(log.fileno())}).encode()
            answers.write(len(message).to_bytes(4, "big") + message)
            answers.flush()


if __name__ == "__main__":
    serve()
