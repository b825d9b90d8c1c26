"""Parts of pages that scripts write, between two lines of comment."""

from __future__ import annotations

from pathlib import Path


def between(page: Path, begin: str, end: str) -> tuple[str, str, str]:
    """The text of a page before the part, the part, and the text after it."""
    before, rest = page.read_text().split(begin)
    shown, after = rest.split(end)
    return before, shown.strip(), after


def write(page: Path, begin: str, end: str, part: str) -> None:
    """Replaces the part."""
    head, _, tail = between(page, begin, end)
    page.write_text(f"{head}{begin}\n{part}\n{end}{tail}")
