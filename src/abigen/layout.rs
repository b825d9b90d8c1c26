//! Generates tests/abi/layout.c: assertions about the structs of src/abi against the sysroot's
//! headers.

use std::collections::BTreeSet;
use std::fmt::Write;

use lind_abi::layout::STRUCTS;

use crate::C_BANNER;

/// The C file. It compiles exactly if libc and the kernel agree.
pub fn assertions() -> String {
    let mut out = String::from(C_BANNER);
    out.push_str("#define _GNU_SOURCE\n#include <stddef.h>\n");
    let headers: BTreeSet<_> = STRUCTS.iter().map(|s| s.header).filter(|h| !h.is_empty()).collect();
    for header in headers {
        writeln!(out, "#include <{header}>").expect("writing to a string");
    }
    for s in STRUCTS.iter().filter(|s| !s.c_type.is_empty()) {
        writeln!(out, "\n_Static_assert(sizeof({}) == {}, \"{}\");", s.c_type, s.layout.size, s.c_type)
            .expect("writing to a string");
        // A field without a C name is padding, or has another width in libc.
        for f in s.fields.iter().filter(|f| !f.name.is_empty()) {
            writeln!(out, "_Static_assert(offsetof({0}, {1}) == {2}, \"{0}.{1}\");", s.c_type, f.name, f.offset)
                .expect("writing to a string");
            writeln!(out, "_Static_assert(sizeof((({0} *)0)->{1}) == {2}, \"{0}.{1}\");", s.c_type, f.name, f.size)
                .expect("writing to a string");
        }
    }
    out
}
