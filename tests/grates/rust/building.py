"""Builds grates in Rust for tests/grates/rust."""

from __future__ import annotations

import os
import shutil
from functools import cache

from harness import BOOT, LINDFS, PLACE, ROOT, Skipped, run

SDK = ROOT / "grates" / "sdk" / "rust"
RUST = ROOT / "build" / "rust" / ".key"
WORK = ROOT / "build" / "rust-grates-test"
TARGET = ROOT / "build" / "rust-grates"
# On a busy machine the crates that read policies take minutes.
BUILD_SECONDS = 1200


def need_rust() -> None:
    if not RUST.exists():
        raise Skipped("Rust for cages is not built: make rust")
    # cargo does not look whether the standard library is another.
    if TARGET.exists() and TARGET.stat().st_mtime < RUST.stat().st_mtime:
        shutil.rmtree(TARGET)


@cache
def grate(name: str, source: str) -> str:
    """A grate of that source, as its path in the guest's root."""
    need_rust()
    crate = WORK / name
    shutil.rmtree(crate, ignore_errors=True)
    (crate / "src").mkdir(parents=True)
    (crate / "src" / "main.rs").write_text(source)
    shutil.copy(SDK / "Cargo.lock", crate)
    (crate / "Cargo.toml").write_text(f'[package]\nname = "{name}_grate"\nversion = "0.1.0"\nedition = "2024"\n\n[workspace]\n\n'
                                      f'[dependencies]\nlind-grate = {{ path = "{SDK}" }}\nserde = "1"\n\n[profile.release]\ncodegen-units = 1\nstrip = true\n')
    environment = os.environ | {"PATH": f"{ROOT}/scripts/bin:{os.environ['PATH']}", "CARGO_TARGET_DIR": str(TARGET)}
    run("cargo", "lind", "build", "-q", "--release", cwd=crate, env=environment, seconds=BUILD_SECONDS)
    PLACE.mkdir(parents=True, exist_ok=True)
    module = PLACE / f"{name}_grate.wasm"
    shutil.copy(TARGET / "wasm32-lind-linux-musl" / "release" / f"{name}_grate", module)
    run(str(BOOT), "--precompile", str(module))
    return f"/{module.with_suffix('.cwasm').relative_to(LINDFS)}"
