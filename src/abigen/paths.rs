//! Generates lind/path_table.h: the effects of calls on files, as data for grates.

use std::fmt::Write;

use lind_abi::paths::{End, FILE_USES, FileUse, effect, is_implemented};

use crate::C_BANNER;

const TYPES: &str = r"#ifndef LIND_PATH_TABLE_H
#define LIND_PATH_TABLE_H

#include <stdint.h>

/* The effects of a call on the file of a path or a descriptor: a sum of these. src/abi/paths.rs
 * says more. */
";

const STRUCTS: &str = r"
/* Whether a symbolic link at the end of a path is followed. */
enum lind_end {
	LIND_END_FOLLOW, LIND_END_STAY,
	LIND_END_UNLESS_AT,	/* AT_SYMLINK_NOFOLLOW */
	LIND_END_IF_AT,		/* AT_SYMLINK_FOLLOW */
	LIND_END_OPEN,		/* as open(2) */
	LIND_END_WATCH,		/* unless IN_DONT_FOLLOW */
	LIND_END_TEXT,		/* not looked up */
};

/* A path of a call. Places of arguments; -1 if there is none. */
struct lind_path_use {
	int8_t dir, path, flags;
	uint8_t end;
	uint16_t effect;
};

/* A descriptor of a call that is not the start of a path. */
struct lind_fd_use {
	int8_t fd;
	uint16_t effect;
};

/* A call that takes a path, changes a file through a descriptor, or takes an address that may be
 * a path. */
struct lind_file_use {
	uint32_t nr;
	uint8_t absent, paths, fds;	/* the errno where the kernel has no such call, or 0 */
	int8_t address;
	struct lind_path_use path[2];
	struct lind_fd_use fd[2];
};

/* By ascending number. */
static const struct lind_file_use lind_file_uses[] = {
";

const EFFECTS: [(&str, u16); 10] = [
    ("READ", effect::READ),
    ("WRITE", effect::WRITE),
    ("CREATE", effect::CREATE),
    ("REMOVE", effect::REMOVE),
    ("META", effect::META),
    ("EXEC", effect::EXEC),
    ("LINK", effect::LINK),
    ("OPEN", effect::OPEN),
    ("MOUNT", effect::MOUNT),
    ("DATA", effect::DATA),
];

/// The errno for a call that the kernel does not implement; 0 for the others.
fn absent_of(used: &FileUse) -> i32 {
    if is_implemented(used) { 0 } else { lind_abi::absent(used.row().nr).raw() }
}

/// The header. Its data is `static`: it is included by the SDK's paths.c, and by programs that need
/// all rows.
pub fn header() -> String {
    let mut out = format!("{C_BANNER}{TYPES}");
    for (name, bit) in EFFECTS {
        writeln!(out, "#define LIND_DOES_{name:<8}{bit}").expect("writing to a string");
    }
    out.push_str(STRUCTS);
    let mut uses: Vec<_> = FILE_USES.iter().collect();
    uses.sort_by_key(|used| used.row().nr);
    for used in uses {
        let place = |at: Option<usize>| at.map_or("-1".to_owned(), |at| at.to_string());
        let paths: Vec<_> = used
            .places()
            .map(|(at, path)| {
                let (dir, flags) = (place(at.dir), place(at.flags));
                format!("{{ {dir}, {}, {flags}, {}, {} }}", at.path, end(path.end), path.effect)
            })
            .collect();
        let fds: Vec<_> = used.descriptors().map(|(at, effect)| format!("{{ {at}, {effect} }}")).collect();
        let list = |rows: &[String]| if rows.is_empty() { "{ 0 }".to_owned() } else { rows.join(", ") };
        writeln!(
            out,
            "\t{{ {}, {}, {}, {}, {}, {{ {} }}, {{ {} }} }}, /* {} */",
            used.row().nr,
            absent_of(used),
            paths.len(),
            fds.len(),
            place(used.address),
            list(&paths),
            list(&fds),
            used.name
        )
        .expect("writing to a string");
    }
    out.push_str("};\n\n");
    each(&mut out, "PATH_CALL", "Calls with paths.", |used| !used.paths.is_empty());
    each(&mut out, "CHANGING_PATH_CALL", "Those that may change what paths lead to.", |used| {
        used.paths.iter().any(|path| path.effect & !(effect::READ | effect::EXEC) != 0)
    });
    each(&mut out, "CHANGING_FD_CALL", "Calls that change a file, other than by data, through a descriptor.", |used| {
        used.paths.is_empty() && used.fds.iter().any(|does| does & (effect::WRITE | effect::META) != 0)
    });
    each(&mut out, "ADDRESS_CALL", "Calls with an address that may be a path.", |used| used.address.is_some());
    out.push_str("#endif\n");
    out
}

/// A list of names for the C preprocessor.
fn each(out: &mut String, list: &str, says: &str, chosen: impl Fn(&FileUse) -> bool) {
    write!(out, "/* {says} */\n#define LIND_EACH_{list}(X)").expect("writing to a string");
    for used in FILE_USES.iter().filter(|used| chosen(used)) {
        write!(out, " \\\n\tX({})", used.name).expect("writing to a string");
    }
    out.push_str("\n\n");
}

fn end(end: End) -> &'static str {
    match end {
        End::Follow => "LIND_END_FOLLOW",
        End::Stay => "LIND_END_STAY",
        End::UnlessAt => "LIND_END_UNLESS_AT",
        End::IfAt => "LIND_END_IF_AT",
        End::Open => "LIND_END_OPEN",
        End::Watch => "LIND_END_WATCH",
        End::Text => "LIND_END_TEXT",
    }
}
