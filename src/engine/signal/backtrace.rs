//! Prints the functions that a program was in when it trapped.
//!
//! Not by Wasmtime's own `Display`, which demangles every name: a C function `f` would be called
//! `float`.

use std::fmt::Write;

use lind_kernel::text::shown;
use wasmtime::{FrameInfo, FrameSymbol, WasmBacktrace};

/// The functions that libc's start code calls: the name clang gives a `main` with arguments, and
/// one without.
const MAIN: [&str; 2] = ["__main_argc_argv", "__original_main"];

/// One line for each function, innermost first, and one below it for its place in the source, if
/// that is known.
pub fn text(trace: &WasmBacktrace) -> String {
    let mut out = String::new();
    for (i, frame) in trace.frames().iter().enumerate() {
        let _ = write!(out, "  {i:>3}: ");
        if let Some(offset) = frame.module_offset() {
            let _ = write!(out, "{offset:#8x} - ");
        }
        symbols(&mut out, frame);
    }
    out
}

/// A frame is several functions where some were inlined.
fn symbols(out: &mut String, frame: &FrameInfo) {
    let own = || frame.func_name().map_or_else(|| format!("function {}", frame.func_index()), plain);
    if frame.symbols().is_empty() {
        let _ = writeln!(out, "{}", own());
    }
    for (i, symbol) in frame.symbols().iter().enumerate() {
        if i > 0 {
            out.push_str("                - ");
        }
        let _ = writeln!(out, "{}", symbol.name().map_or_else(own, plain));
        place(out, symbol);
    }
}

fn place(out: &mut String, symbol: &FrameSymbol) {
    let Some(file) = symbol.file() else { return };
    let _ = write!(out, "                    at {}", shown(file));
    for number in [symbol.line(), symbol.column()].into_iter().flatten() {
        let _ = write!(out, ":{number}");
    }
    out.push('\n');
}

/// A name as its author wrote it.
fn plain(name: &str) -> String {
    if MAIN.contains(&name) {
        return "main".to_owned();
    }
    let mangled = name.starts_with("_Z").then(|| cpp_demangle::Symbol::new(name).ok()).flatten();
    shown(mangled.and_then(|symbol| symbol.demangle().ok()).unwrap_or_else(|| name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn names_are_those_of_the_source() {
        for (name, expected) in [
            ("f", "f"),
            ("g", "g"),
            ("__main_argc_argv", "main"),
            ("_Z3addii", "add(int, int)"),
            ("_Z", "_Z"),
            ("", ""),
            ("f\nlind-boot: app (cage 1): SIGKILL", "f\\nlind-boot: app (cage 1): SIGKILL"),
        ] {
            assert_eq!(plain(name), expected);
        }
    }
}
