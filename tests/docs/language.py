#!/usr/bin/env python3
"""Counts, per folder, the sentences of comments, documents and help texts that break the project's rules of language.

    tests/docs/language.py                  fails where a folder has more of them than language.toml allows
    tests/docs/language.py --list [PATH...] prints them

The rules (CONTRIBUTING.md, "Language"):
- A sentence has a noun as its subject: none begins with Who, What, Whoever, Whatever, Whose, "That of", "Those of", "One that".
  Questions may. A message, which is a string of Rust, C or Python with three words or more, may not begin so in small letters
  either.
- Some phrases have a plain word; PHRASES lists them.
- A line of a comment has at most 100 columns.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tempfile
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
BUDGETS = Path(__file__).with_name("language.toml")
COLUMNS = 100
# Folders that are not part of the sources.
MADE = (".git", "build", "target", "lindfs")
OF_C = (".rs", ".c", ".h", ".cpp", ".hpp", ".cc")
OF_ASSEMBLY = (".s", ".S", ".wat", ".wast")

# The rules, and what a fault against each is called.
RULES = {"openings": "sentences begin with a relative clause", "phrases": "sentences have a phrase of PHRASES", "wide": "lines of comments are wider than 100 columns"}

OPENINGS = re.compile(r"(?:Who|What|Whoever|Whatever|Whose|That of|Those of|One that)\b(?!-)")
OPENINGS_OF_MESSAGES = re.compile(r"(?:who|what|whoever|whatever|whose|that of|those of|one that) ", re.IGNORECASE)
PHRASES = re.compile(
    r"(?<!\bthere )\bis no (?!longer|more\b|less\b|one\b|such\b|need\b|way\b|reason\b)[a-z]|\b(?:said|told) of\b|\bby itself\b|\banew\b|\bas ever\b"
    r"|\bgoes before\b|\bstands (?!for\b)|\bhas it\b(?= [.:;(]|[.:;])"
)
# A sentence ends before a capital letter or a quoted word; abbreviations do not end one.
SENTENCE = re.compile(r"(?<=[.!?:])\s+(?=[A-Z\"'`(])")
CODE = re.compile(r"`[^`]*`")


class Text:
    """A paragraph of prose: where it begins, and its text in one line."""

    def __init__(self, line: int, text: str) -> None:
        self.line, self.text = line, text

    def sentences(self) -> Iterator[str]:
        for sentence in SENTENCE.split(CODE.sub("`", self.text)):
            if sentence.strip():
                yield sentence.strip()


def paragraphs(lines: list[tuple[int, str]]) -> Iterator[Text]:
    """Joins neighbouring lines; a blank line, a list mark, a heading or a fence of code ends a paragraph."""
    fenced, held, began, before = False, [], 0, -1
    for number, line in [*lines, (1 << 60, "")]:
        text = line.strip()
        fence = text.startswith("```")
        row = text.startswith("|") and not fenced
        breaks = not text or fence or row or number > before + 1 or re.match(r"([-*+|#>]|\d+\.)\s|@", text)
        if held and breaks:
            yield Text(began, " ".join(held))
            held = []
        fenced ^= fence
        for cell in text.strip("|").split(" | ") if row else ():
            yield Text(number, cell.strip())
        if text and not fence and not fenced and not row and not text.startswith(("# ", "## ", "### ")):
            if not held:
                began = number
            held.append(re.sub(r"^([-*+#>]+|\d+\.)\s+", "", text))
        before = number


def of_c(source: str, rust: bool) -> Iterator[tuple[int, str]]:
    """The lines of comments in C or Rust; what looks like one in a string is left out. A block comment, and one that follows code,
    begins a paragraph: a blank line is in front of it."""
    above = -1
    for found in re.finditer(rf"(?P<block>/\*.*?\*/)|(?P<line>//[^\n]*)|{string_of_c(rust)}", source, re.DOTALL):
        line, column = place(source, found.start())
        if not found["line"] and not found["block"]:
            continue
        if found["block"] or column != above and source[found.start() - column:found.start()].strip():
            yield line, ""
        above = column
        if found["line"]:
            yield line, re.sub(r"^//[/!]?\s?", "", found["line"])
        for number, text in enumerate(found["block"][2:-2].split("\n") if found["block"] else ()):
            yield line + number, re.sub(r"^\s*\*+ ?", "", text)


def string_of_c(rust: bool) -> str:
    return r'"(?P<text>(?:\\.|[^"\\])*)"' + (r"|r(#*)\".*?\"\3|'(?:\\.|[^'\\])'" if rust else r"|'(?:\\.|[^'\\])*'")


def place(source: str, at: int) -> tuple[int, int]:
    """The line and column of a place in a text."""
    return source.count("\n", 0, at) + 1, at - source.rfind("\n", 0, at) - 1


def of_assembly(source: str) -> Iterator[tuple[int, str]]:
    """The comments of WebAssembly text and of assembly."""
    for found in re.finditer(r'"(?:\\.|[^"\\\n])*"|(?P<block>/\*.*?\*/|\(;.*?;\))|(?P<line>(?:;;|//|(?<![^\n])[ \t]*#)[^\n]*)', source, re.DOTALL):
        line, column = place(source, found.start())
        texts = [re.sub(r"^\s*[*;/#]* ?", "", text) for text in (found["block"][2:-2] if found["block"] else found["line"] or "").split("\n")]
        # A hostile module says in such lines what is expected of it.
        if found["block"] or source[found.start() - column:found.start()].strip() or re.match(r"[a-z]+: ", texts[0]):
            yield line, ""
        yield from enumerate(texts, line)


def messages(path: Path, source: str) -> Iterator[Text]:
    """The strings of a source that may be messages: all but the samples below."""
    if path.name == "language.py":
        return
    if path.suffix in OF_C:
        found = re.finditer(rf"(?P<block>/\*.*?\*/)|(?P<line>//[^\n]*)|{string_of_c(path.suffix == '.rs')}", source, re.DOTALL)
        texts = [(source.count("\n", 0, one.start()) + 1, one["text"]) for one in found if one["text"]]
    elif path.suffix == ".py":
        nodes = list(ast.walk(ast.parse(source)))
        prose = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        texts = [(node.lineno, node.value) for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose]
    else:
        return
    for line, text in texts:
        if len(text.split()) > 2:
            yield Text(line, re.sub(r"\\n|\\?\s+", " ", text))


def of_python(source: str) -> Iterator[tuple[int, str]]:
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body and ast.get_docstring(node) is not None:
            string = node.body[0].value
            lines += [(string.lineno + number, text) for number, text in enumerate(string.value.split("\n"))]
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.string.startswith("#!"):
            lines.append((token.start[0], token.string.lstrip("# ")))
    yield from sorted(lines)


def of_shell(source: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.split("\n"), 1):
        found = re.match(r"\s*#+ (.*)", line)
        if found and not line.startswith("#!"):
            yield number, found[1]


def prose(path: Path) -> list[tuple[int, str]]:
    """The lines of prose of a file, by number."""
    source = path.read_text(errors="replace")
    if path.suffix == ".md":
        return list(enumerate(source.split("\n"), 1))
    if path.suffix in OF_C:
        return list(of_c(source, path.suffix == ".rs"))
    if path.suffix in OF_ASSEMBLY:
        return list(of_assembly(source))
    if path.suffix == ".py" or source.startswith("#!") and "python" in source.split("\n", 1)[0]:
        return list(of_python(source))
    return list(of_shell(source))


def files() -> list[str]:
    """The files of the tree, by name: git's, or where git does not answer those that no build made."""
    done = subprocess.run(["git", "-c", "safe.directory=*", "ls-files"], cwd=TOP, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        names = done.stdout.split("\n")
    else:
        paths = (path.relative_to(TOP) for top in sorted(TOP.iterdir()) if top.name not in MADE for path in [top, *top.rglob("*")])
        names = [str(path) for path in paths if "__pycache__" not in path.parts]
    return [name for name in names if name and (TOP / name).is_file()]


def is_text(path: Path) -> bool:
    if path.suffix in (*OF_C, *OF_ASSEMBLY, ".md", ".py", ".sh", ".toml", ".mk", ".yml") or path.name == "Makefile":
        return True
    if path.suffix or path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def folder(name: str) -> str:
    """The name under which a file is counted: docs, help texts, or its folder."""
    if name.endswith(".md"):
        return "docs"
    parts = name.split("/")
    return "/".join(parts[:2]) if parts[0] in ("src", "lind-boot", "grates", "tests", "scripts", "ports") and len(parts) > 2 else parts[0]


def faults(path: Path) -> Iterator[tuple[str, int, str]]:
    """The faults of a file: the rule, the line and the sentence."""
    lines = prose(path)
    source = path.read_text(errors="replace").split("\n")
    mark = r"\s*(//|/?\*)" if path.suffix in OF_C else r"\s*#"
    for number in sorted({number for number, _ in lines}):
        if path.suffix != ".md" and number <= len(source) and len(source[number - 1]) > COLUMNS and re.match(mark, source[number - 1]):
            yield "wide", number, source[number - 1].strip()
    for text in paragraphs(lines):
        for sentence in text.sentences():
            yield "all", text.line, sentence
            if OPENINGS.match(sentence.lstrip("\"'(`*_")) and not sentence.endswith("?"):
                yield "openings", text.line, sentence
            if PHRASES.search(sentence):
                yield "phrases", text.line, sentence
    for text in messages(path, path.read_text(errors="replace")):
        for sentence in re.split(r"(?<=[.:;]) ", text.text):
            if OPENINGS_OF_MESSAGES.match(sentence) and len(sentence.split()) > 2 and not sentence.endswith("?"):
                yield "openings", text.line, sentence


# Sentences that were not seen once, by the name of the file that they are in: each sample has one.
SAMPLES = {
    "blocks.c": "/* A first comment. */\n/* Whose it is. */\n",
    "trailing.c": "int a; /* one of them */\nint b; /* What is left. */\n",
    "documented.rs": "fn first() {} /// The first.\nfn other() {} /// What a call does.\n",
    "help.rs": 'const HELP: &str = "what a call may do";\n',
    "message.c": 'char *text = "bad word: who asks for it has gone";\n',
    "help.py": 'parser.add_argument("-a", help="those of the host")\n',
    "module.wat": ";; A module.\n(module) ;; Who calls it is free.\n",
    "start.s": "# The start.\n# It ends.  Whoever calls it goes.\n",
    "page.md": "| file | contents |\n|---|---|\n| `a` | The first. What is left. |\n",
}


def missed() -> Iterator[str]:
    """The samples whose sentence is not found."""
    with tempfile.TemporaryDirectory() as place:
        for name, text in SAMPLES.items():
            path = Path(place) / name
            path.write_text(text)
            found = [sentence for rule, _, sentence in faults(path) if rule == "openings"]
            if len(found) != 1:
                yield f"in {name}, {len(found)} sentences are found: {text!r}"


def read_budgets() -> dict[str, dict[str, int]]:
    return tomllib.loads(BUDGETS.read_text()) if BUDGETS.exists() else {}


def write_budgets(budgets: dict[str, dict[str, int]]) -> None:
    head = "# The most faults of each rule of language.py that a folder may have. Numbers only fall:\n# language.py --lower writes them.\n"
    rows = [f'"{name}" = {{ {", ".join(f"{rule} = {most}" for rule, most in sorted(row.items()))} }}' for name, row in sorted(budgets.items()) if row]
    BUDGETS.write_text(head + "\n".join(rows) + "\n")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--list", action="store_true", help="print the sentences")
    options.add_argument("--wide", action="store_true", help="with --list: print the wide lines too")
    options.add_argument("--counts", action="store_true", help="print a table of all folders")
    options.add_argument("--lower", action="store_true", help="write today's counts where they are lower than the budget")
    options.add_argument("paths", nargs="*", metavar="PATH", help="files or folders, from the top of the tree; all by default")
    asked = options.parse_args()
    names = files()
    chosen = [name for name in names if name and (not asked.paths or any(f"{name}/".startswith(f"{path.rstrip('/')}/") for path in asked.paths))]
    counts: dict[str, Counter[str]] = {}
    for name in chosen:
        for rule, line, sentence in faults(TOP / name) if is_text(TOP / name) else ():
            counts.setdefault(folder(name), Counter())[rule] += 1
            if asked.list and rule in ("openings", "phrases", *(["wide"] if asked.wide else [])):
                print(f"{name}:{line}: {rule}: {sentence[:300]}")
    if asked.counts:
        for name, count in [*sorted(counts.items()), ("total", sum(counts.values(), Counter()))]:
            print(f"{name:24} {count['openings']:5} openings {count['phrases']:5} phrases {count['wide']:5} wide, of {count['all']} sentences")
    if asked.list or asked.counts or asked.paths:
        return 0
    budgets = read_budgets()
    if asked.lower:
        write_budgets({name: {rule: min(count[rule], budgets.get(name, {}).get(rule, count[rule] if not budgets else 0)) for rule in RULES if count[rule]}
                       for name, count in counts.items()})
        return 0
    over = [(name, rule, count[rule], most) for name, count in sorted(counts.items())
            for rule in RULES if count[rule] > (most := budgets.get(name, {}).get(rule, 0))]
    for name, rule, count, most in over:
        print(f"{name}: {count} {RULES[rule]}, and language.toml allows {most}: tests/docs/language.py --list{' --wide' * (rule == 'wide')} {name}")
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
