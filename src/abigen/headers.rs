//! Generates the headers that contain only numbers.

use std::fmt::Write;

use crate::{C_BANNER, is_linux, rows};

/// bits/syscall.h.in of libc: Linux's numbers under libc's names. musl's Makefile makes SYS_ names
/// of them.
pub fn libc_numbers() -> String {
    let mut out = String::from(C_BANNER);
    for row in rows().into_iter().filter(|row| is_linux(row.nr)) {
        writeln!(out, "#define __NR_{:<24}{}", row.name, row.nr).expect("writing to a string");
    }
    out
}

/// lind/syscalls.h: the interposition calls, which libc does not know.
pub fn grate_numbers() -> String {
    let mut out = String::from(C_BANNER);
    out.push_str("#ifndef LIND_SYSCALLS_H\n#define LIND_SYSCALLS_H\n\n#include <sys/syscall.h>\n\n");
    for row in rows().into_iter().filter(|row| !is_linux(row.nr)) {
        for note in row.notes {
            writeln!(out, "/*{note} */").expect("writing to a string");
        }
        writeln!(out, "#define SYS_{:<28}{}", row.name, row.nr).expect("writing to a string");
    }
    writeln!(
        out,
        "/* Registers for every number; see docs/threei.md. */\n#define LIND_NR_ANY {:#x}u\n\n\
         /* The result of a handler that has filled in a struct lind_answer. */\n#define LIND_ANSWER (-0x{:x} - 1)\n\n\
         /* The result of a handler that lets the call go on unchanged. */\n#define LIND_PASS (-0x{:x})\n\n\
         /* The result of a filter that leaves the call to the handler. */\n#define LIND_ASK (-0x{:x})\n\n#endif",
        lind_abi::NR_ANY,
        -(lind_abi::ANSWER + 1),
        -lind_abi::PASS,
        -lind_abi::ASK
    )
    .expect("writing to a string");
    out
}
