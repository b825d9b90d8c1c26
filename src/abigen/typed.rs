//! Generates lind/typed_calls.h: for each call a handler type with C arguments, the code that
//! copies them in, and a function that forwards the call.

use std::fmt::Write;

use lind_abi::layout::Layout;
use lind_abi::{Kind, Syscall};

use crate::{C_BANNER, rows};

/// How an argument reaches a typed handler.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A number of this C type.
    Number(&'static str),
    /// A byte count: a value beyond `size_t` becomes its largest value, which fails wherever the
    /// true one does.
    Size,
    /// A string in the client's memory, copied in; whether NULL is allowed.
    Text(bool),
    /// So many structs of this type, copied in, NULL for NULL.
    Copied(&'static str, u32),
    /// A socket address, its length being the next argument.
    Address,
    /// An address in the client's memory, left there.
    There,
}

/// The header.
pub fn header() -> String {
    let mut out = format!(
        "{C_BANNER}/* Included by lind/grate.h, which explains it. */\n#ifndef LIND_TYPED_CALLS_H\n#define LIND_TYPED_CALLS_H\n"
    );
    for row in rows() {
        call(&mut out, row).expect("writing to a string");
    }
    out.push_str("\n#endif\n");
    out
}

fn call(out: &mut String, row: &Syscall) -> std::fmt::Result {
    let name = row.name;
    let shapes: Vec<_> = (0..row.args.len()).map(|at| shape(row, at)).collect();
    let mut params = vec!["const struct lind_call *cx".to_owned()];
    params.extend(row.args.iter().zip(&shapes).map(|((arg, _), shape)| param(arg, *shape)));

    writeln!(out, "\n{}", wrapped(&format!("typedef int64_t lind_{name}_fn("), &params, ");"))?;
    writeln!(out, "{}\n{{", wrapped(&format!("static inline int64_t lind_forward_{name}("), &params, ")"))?;
    writeln!(out, "{}\n}}", wrapped("\treturn lind_import_call(", &sent(row, &shapes), ");"))?;
    writeln!(out, "static inline int64_t lind_take_{name}(const struct lind_call *cx, lind_{name}_fn *on)\n{{")?;
    taken(out, row, &shapes)
}

/// The arguments of lind_import_call that pass the call on.
fn sent(row: &Syscall, shapes: &[Shape]) -> Vec<String> {
    let mut sent = vec![row.nr.to_string(), "(int64_t)cx->target".to_owned()];
    for at in 0..6 {
        let owner = format!("cx->args[{at}].cage");
        let Some((&(arg, _), shape)) = row.args.get(at).zip(shapes.get(at)) else {
            sent.extend(["0".to_owned(), owner]);
            continue;
        };
        sent.extend(match shape {
            Shape::Number(_) | Shape::Size => [format!("(uint64_t){arg}"), owner],
            Shape::Text(_) | Shape::Copied(..) | Shape::Address => {
                [format!("(uintptr_t){arg}"), format!("{arg} ? lind_self_ : {owner}")]
            }
            Shape::There => [format!("{arg}.value"), format!("{arg}.cage")],
        });
    }
    sent
}

/// The body of the function that copies the arguments in and enters the handler.
fn taken(out: &mut String, row: &Syscall, shapes: &[Shape]) -> std::fmt::Result {
    let mut copies: Vec<String> = Vec::new();
    let mut passed = vec!["cx".to_owned()];
    for (at, (&(arg, _), &shape)) in row.args.iter().zip(shapes).enumerate() {
        let value = format!("cx->args[{at}].value");
        passed.push(match shape {
            Shape::Number(c_type) => format!("({c_type}){value}"),
            Shape::Size => format!("lind_size_({value})"),
            Shape::There => format!("cx->args[{at}]"),
            Shape::Text(nullable) => {
                writeln!(out, "\tchar {arg}_[PATH_MAX];")?;
                let take = if nullable { "lind_take_string_or_null_" } else { "lind_take_string_" };
                copies.push(format!("(r = {take}(&cx->args[{at}], {arg}_, {}))", too_long(row.name, arg)));
                if nullable { format!("{value} ? {arg}_ : NULL") } else { format!("{arg}_") }
            }
            Shape::Copied(c_type, count) => {
                let many = if count == 1 { String::new() } else { format!("[{count}]") };
                let address = if count == 1 { format!("&{arg}_") } else { format!("{arg}_") };
                writeln!(out, "\t{c_type} {arg}_{many};")?;
                copies.push(format!("(r = lind_take_struct_(&cx->args[{at}], {address}, sizeof {arg}_))"));
                format!("{value} ? {address} : NULL")
            }
            Shape::Address => {
                writeln!(out, "\tstruct sockaddr_storage {arg}_;")?;
                let length = format!("cx->args[{}].value", at + 1);
                copies.push(format!("(r = lind_take_address_(&cx->args[{at}], {length}, &{arg}_))"));
                format!("{value} ? (struct sockaddr *)&{arg}_ : NULL")
            }
        });
    }
    if !copies.is_empty() {
        writeln!(out, "\tint r;\n\n\tif ({})\n\t\treturn r;", copies.join(" ||\n\t    "))?;
    }
    writeln!(out, "{}\n}}", wrapped("\treturn on(", &passed, ");"))
}

/// A list between `before` and `after`, in lines of at most 100 columns.
fn wrapped(before: &str, items: &[String], after: &str) -> String {
    let tabs = before.len() - before.trim_start_matches('\t').len();
    let mut text = before.to_owned();
    let mut columns = before.len() + 7 * tabs;
    for (at, item) in items.iter().enumerate() {
        let last = at + 1 == items.len();
        let length = item.len() + if last { after.len() } else { 1 };
        if at > 0 && columns + 1 + length > 100 {
            let indent = "\t".repeat(tabs);
            text.push_str(&format!("\n{indent}    "));
            columns = 8 * tabs + 4;
        } else if at > 0 {
            text.push(' ');
            columns += 1;
        }
        text.push_str(item);
        text.push_str(if last { after } else { "," });
        columns += length;
    }
    text
}

fn shape(row: &Syscall, at: usize) -> Shape {
    let (arg, kind) = row.args[at];
    match kind {
        Kind::Fd | Kind::DirFd | Kind::Int | Kind::Signal | Kind::Unit | Kind::Never => Shape::Number("int"),
        Kind::Uint => Shape::Number("unsigned"),
        Kind::Long => Shape::Number("int64_t"),
        Kind::Ulong => Shape::Number("uint64_t"),
        Kind::Off => Shape::Number("off_t"),
        Kind::Mode => Shape::Number("mode_t"),
        Kind::Pid => Shape::Number("pid_t"),
        Kind::Uid => Shape::Number("uid_t"),
        Kind::Gid => Shape::Number("gid_t"),
        Kind::Flags(names) | Kind::Value(names) => match names.name {
            "IoctlRequest" | "StatxMask" | "CloneFlags" => Shape::Number("unsigned"),
            _ => Shape::Number("int"),
        },
        Kind::Len if socket_address(row, at.wrapping_sub(1)) => Shape::Number("socklen_t"),
        Kind::Len => Shape::Size,
        // These calls use an address without reading what is there.
        Kind::Addr if row.area == "memory" || row.name.starts_with("shm") => Shape::Number("uint64_t"),
        Kind::Addr | Kind::StrArray | Kind::Out(_) | Kind::InOut(_) => Shape::There,
        Kind::Path | Kind::Str => Shape::Text(nullable(row.name, arg)),
        Kind::In(_) if socket_address(row, at) => Shape::Address,
        Kind::In(layout) => copied(row.name, layout),
    }
}

fn socket_address(row: &Syscall, at: usize) -> bool {
    matches!(row.args.get(at), Some((_, Kind::In(layout))) if layout.name == "sockaddr")
}

/// Structs without pointers, where the call reads exactly one (or two) whatever its other arguments
/// are.
fn copied(call: &str, layout: &Layout) -> Shape {
    // Some operations of futex take a number in the place of the timeout; EPOLL_CTL_DEL does not
    // look at its event.
    if matches!(call, "futex" | "epoll_ctl") {
        return Shape::There;
    }
    let count = if matches!(call, "utimensat" | "utimes" | "futimesat") { 2 } else { 1 };
    let c_type = match layout.name {
        "timespec" => "struct timespec",
        "timeval" => "struct timeval",
        "timezone" => "struct timezone",
        "itimerspec" => "struct itimerspec",
        "itimerval" => "struct itimerval",
        "utimbuf" => "struct utimbuf",
        "rlimit" => "struct rlimit",
        "siginfo" => "siginfo_t",
        "kernel_sigset" => "uint64_t",
        _ => return Shape::There,
    };
    Shape::Copied(c_type, count)
}

/// Whether NULL is a valid argument with a meaning of its own, as on Linux.
fn nullable(call: &str, arg: &str) -> bool {
    match call {
        "utimensat" | "futimesat" | "fanotify_mark" | "quotactl" => true,
        "mount" => arg != "target",
        "add_key" | "request_key" | "fsconfig" | "init_module" => true,
        _ => false,
    }
}

/// Linux's errno for a string that has no end.
fn too_long(call: &str, arg: &str) -> &'static str {
    match arg {
        "name" if call == "memfd_create" => "EINVAL",
        "name" if call.contains("xattr") => "ERANGE",
        _ => "ENAMETOOLONG",
    }
}

fn param(arg: &str, shape: Shape) -> String {
    match shape {
        Shape::Number(c_type) => format!("{c_type} {arg}"),
        Shape::Size => format!("size_t {arg}"),
        Shape::Text(_) => format!("const char *{arg}"),
        Shape::Copied(c_type, _) => format!("const {c_type} *{arg}"),
        Shape::Address => format!("const struct sockaddr *{arg}"),
        Shape::There => format!("struct lind_arg {arg}"),
    }
}
