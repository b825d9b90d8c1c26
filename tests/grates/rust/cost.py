#!/usr/bin/env python3
"""Compares a grate in Rust with one in C that has the same handlers: tests/grates/rust/cost.py [ROUNDS]

Prints the sizes of the modules, the milliseconds of a processor that starting a program behind each takes more, and the nanoseconds that each adds to a call.
The runs of one round follow each other in a changing order, and the ratio is that of a round. Needs `make rust`.
"""

from __future__ import annotations

import os
import random
import resource
import statistics
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parents[3] / "scripts")]
from bench.stats import noise
from building import grate
from harness import HERE, LINDFS, PLACE, ROOT, Failed, boot, program, run

KINDS = {"answer": 4000, "pass": 4000, "forward": 4000, "path": 50, "address": 50}
BATCHES = 101
ROUNDS = 15

# The handlers of cost_grate.c.
IN_RUST = '''\
use std::path::Path;

use lind_grate::prelude::*;

fn on_getpid(_: &Cx) -> Result<Pid> {
    Ok(Pid(10))
}

fn on_geteuid(cx: &Cx) -> Result<Reply> {
    cx.pass()
}

fn on_getegid(cx: &Cx) -> Result<i64> {
    cx.forward()
}

fn on_stat(cx: &Cx, path: &Text, buf: Out<Stat>) -> Result<i64> {
    if below(path.as_ref(), "/secret") { Err(Errno::EACCES) } else { calls::stat::forward(cx, path, buf) }
}

/// Hosts on the loopback may be reached.
fn on_connect(cx: &Cx, fd: Fd, addr: In<Sockaddr>, len: Len) -> Result<i64> {
    let to = cx.address(addr, len)?;
    match to.inet() {
        Some(host) if host.ip().is_loopback() => calls::connect::forward(cx, fd, to.raw(), to.len()),
        _ => Err(Errno::EACCES),
    }
}

calls!(static CALLS = {
    answers getpid: on_getpid,
    observes geteuid: on_geteuid,
    observes getegid: on_getegid,
    alters stat: on_stat,
    alters connect: on_connect,
});

fn main() {
    GrateBuilder::new("Does what cost_grate.c does.").calls(&CALLS).run()
}
'''


def in_c() -> str:
    out = PLACE / "cost_c_grate.cwasm"
    PLACE.mkdir(parents=True, exist_ok=True)
    run(str(ROOT / "scripts" / "lind_compile"), "--compile-grate", "-std=c11", "-D_GNU_SOURCE", "-O2", "-o", str(out), str(HERE / "rust" / "cost_grate.c"))
    return f"/{out.relative_to(LINDFS)}"


def behind(grates: list[str], *words: str) -> tuple[float, str]:
    """Milliseconds of a processor, and the output."""
    begin = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = boot(*grates, *words)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = end.ru_utime + end.ru_stime - begin.ru_utime - begin.ru_stime
    if done.returncode:
        raise Failed(f"{' '.join(words)}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return took * 1000, done.stdout


def batches(grates: list[str], client: str, kind: str) -> float:
    """Nanoseconds of a call in the quickest of short batches: others only make it slower."""
    return min(float(line) for line in behind(grates, client, kind, str(KINDS[kind]), str(BATCHES))[1].split())


def forget(grates: list[str]) -> None:
    """Drops what the host keeps of the compiled modules in its memory."""
    for name in grates:
        file = LINDFS / name.lstrip("/")
        with file.open("rb") as opened:
            os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def line(what: str, unit: str, none: list[float], c: list[float], rust: list[float]) -> None:
    """The addition of each, and how much dearer Rust is, by rounds."""
    more_c, more_rust = ([value - base for value, base in zip(values, none)] for values in (c, rust))
    ratio = [b / a for a, b in zip(more_c, more_rust) if a > 0]
    columns = [f"{statistics.median(values):9.2f} ±{noise(values) / 2:6.2f}" for values in (none, more_c, more_rust)]
    print(f"{what:14} {unit}  {'  '.join(columns)}  {statistics.median(ratio):6.2f} ±{noise(ratio) / 2:.2f}", flush=True)


def compare(rounds: int) -> None:
    client = program(HERE / "rust" / "cost_client.c", "-std=gnu17")
    stacks = {"none": [], "C": [in_c()], "Rust": [grate("cost", IN_RUST)]}
    for name in "C", "Rust":
        compiled = LINDFS / stacks[name][0].lstrip("/")
        print(f"{name}: module {compiled.with_suffix('.wasm').stat().st_size} bytes, compiled {compiled.stat().st_size} bytes")
    print(f"{'':14}     {'without':>17}  {'C adds':>17}  {'Rust adds':>17}  Rust / C")
    measures = {f"start, {state}": ("ms", state) for state in ("cold", "warm")} | {kind: ("ns", kind) for kind in KINDS}
    for what, (unit, key) in measures.items():
        taken: dict[str, list[float]] = {name: [] for name in stacks}
        for _ in range(rounds):
            for name in random.sample(sorted(stacks), len(stacks)):
                if key == "cold":
                    forget([*stacks[name], client])
                taken[name].append(batches(stacks[name], client, key) if key in KINDS else behind(stacks[name], client)[0])
        line(what, unit, taken["none"], taken["C"], taken["Rust"])


if __name__ == "__main__":
    compare(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
