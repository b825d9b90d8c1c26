//! Generates lind/syscall_table.h: the table as data for C programs such as the strace grate.

use std::fmt::Write;

use lind_abi::flags::{ALL, Names};
use lind_abi::{ERRNOS, Kind};

use crate::{C_BANNER, rows};

const TYPES: &str = r#"#ifndef LIND_SYSCALL_TABLE_H
#define LIND_SYSCALL_TABLE_H

#include <stddef.h>
#include <stdint.h>

/* The type of an argument or a result. IN, OUT and INOUT point to the struct named by `layout`,
 * or to bytes whose count is the LEN argument that follows. */
enum lind_kind {
	LIND_UNIT, LIND_FD, LIND_DIRFD, LIND_PATH, LIND_STR, LIND_STR_ARRAY, LIND_INT, LIND_UINT, LIND_LONG,
	LIND_ULONG, LIND_LEN, LIND_OFF, LIND_ADDR, LIND_MODE, LIND_PID, LIND_UID, LIND_GID, LIND_SIGNAL,
	LIND_NEVER, LIND_FLAGS, LIND_VALUE, LIND_IN, LIND_OUT, LIND_INOUT,
};

/* A struct that crosses: LIND_LAYOUT_BYTES is a byte buffer. */
enum lind_layout {
"#;

const STRUCTS: &str = r#"};

struct lind_name {
	uint32_t value;
	const char *name;
};

/* Names of flags or values; a value of several bits comes before its parts. NULL ends them. */
struct lind_names {
	const char *type;
	const struct lind_name *rows;
};

struct lind_param {
	const char *name;
	enum lind_kind kind;
	enum lind_layout layout;	/* of IN, OUT, INOUT */
	uint32_t size;			/* of that struct */
	const struct lind_names *names;	/* of FLAGS, VALUE */
};

struct lind_syscall {
	uint32_t nr;
	const char *area;
	const char *name;
	uint8_t implemented;
	uint8_t count;
	struct lind_param args[6];
	enum lind_kind ret;
};

"#;

/// The header. Its data is `static`: one C file includes it.
pub fn header() -> String {
    let mut out = format!("{C_BANNER}{TYPES}");
    for layout in layouts() {
        writeln!(out, "\tLIND_LAYOUT_{},", layout.to_uppercase()).expect("writing to a string");
    }
    out.push_str(STRUCTS);
    for (_, names) in ALL {
        name_list(&mut out, names);
    }
    out.push_str("static const struct lind_syscall lind_syscalls[] = {\n");
    for row in rows() {
        let args: Vec<_> = row.args.iter().map(|(name, kind)| param(name, *kind)).collect();
        writeln!(
            out,
            "\t{{ {}, \"{}\", \"{}\", {}, {}, {{ {} }}, {} }},",
            row.nr,
            row.area,
            row.name,
            u8::from(row.implemented),
            row.args.len(),
            if args.is_empty() { "{ 0 }".to_owned() } else { args.join(", ") },
            kind_name(row.ret),
        )
        .expect("writing to a string");
    }
    out.push_str("};\n\n/* Every errno: number, name and text. */\nstatic const struct lind_errno {\n\tint number;\n\tconst char *name, *text;\n} lind_errnos[] = {\n");
    for (number, name, text) in ERRNOS {
        writeln!(out, "\t{{ {number}, \"{name}\", \"{text}\" }},").expect("writing to a string");
    }
    out.push_str("};\n\n#endif\n");
    out
}

fn layouts() -> Vec<&'static str> {
    let mut layouts = vec!["bytes"];
    for row in rows() {
        for (_, kind) in row.args {
            if let Kind::In(l) | Kind::Out(l) | Kind::InOut(l) = kind
                && !layouts.contains(&l.name)
            {
                layouts.push(l.name);
            }
        }
    }
    // These are parts of other structs, or are used only in grates' own tables.
    layouts.extend(
        lind_abi::layout::STRUCTS.iter().map(|s| s.layout.name).filter(|n| !layouts.contains(n)).collect::<Vec<_>>(),
    );
    layouts
}

fn name_list(out: &mut String, names: &Names) {
    let list = names.name;
    writeln!(out, "static const struct lind_name lind_rows_{list}[] = {{").expect("writing to a string");
    for (value, name) in names.rows {
        writeln!(out, "\t{{ {value:#x}, \"{name}\" }},").expect("writing to a string");
    }
    writeln!(out, "\t{{ 0, NULL }},\n}};\nstatic const struct lind_names lind_names_{list} = {{ \"{list}\", lind_rows_{list} }};\n")
        .expect("writing to a string");
}

fn param(name: &str, kind: Kind) -> String {
    let (layout, size, names) = match kind {
        Kind::In(l) | Kind::Out(l) | Kind::InOut(l) => (l.name, l.size, "NULL".to_owned()),
        Kind::Flags(n) | Kind::Value(n) => ("bytes", 0, format!("&lind_names_{}", n.name)),
        _ => ("bytes", 0, "NULL".to_owned()),
    };
    format!("{{ \"{name}\", {}, LIND_LAYOUT_{}, {size}, {names} }}", kind_name(kind), layout.to_uppercase())
}

fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Unit => "LIND_UNIT",
        Kind::Fd => "LIND_FD",
        Kind::DirFd => "LIND_DIRFD",
        Kind::Path => "LIND_PATH",
        Kind::Str => "LIND_STR",
        Kind::StrArray => "LIND_STR_ARRAY",
        Kind::Int => "LIND_INT",
        Kind::Uint => "LIND_UINT",
        Kind::Long => "LIND_LONG",
        Kind::Ulong => "LIND_ULONG",
        Kind::Len => "LIND_LEN",
        Kind::Off => "LIND_OFF",
        Kind::Addr => "LIND_ADDR",
        Kind::Mode => "LIND_MODE",
        Kind::Pid => "LIND_PID",
        Kind::Uid => "LIND_UID",
        Kind::Gid => "LIND_GID",
        Kind::Signal => "LIND_SIGNAL",
        Kind::Never => "LIND_NEVER",
        Kind::Flags(_) => "LIND_FLAGS",
        Kind::Value(_) => "LIND_VALUE",
        Kind::In(_) => "LIND_IN",
        Kind::Out(_) => "LIND_OUT",
        Kind::InOut(_) => "LIND_INOUT",
    }
}
