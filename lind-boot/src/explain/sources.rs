//! What grates say in their own sources: which options they have, and which calls their tables of handlers are about. It is read from there, so that it
//! is not said twice.

use std::collections::BTreeSet;

use lind_abi::{Syscall, syscall_named};

use super::options::Spec;

macro_rules! source {
    ($path:literal) => {
        include_str!(concat!("../../../grates/", $path))
    };
}

/// The file of each grate that has its list of options.
const WITH_OPTIONS: [(&str, &str); 17] = [
    ("chroot_grate", source!("chroot/chroot.c")),
    ("devnull_grate", source!("devnull/devnull.c")),
    ("fault_grate", source!("fault/fault.c")),
    ("forward_grate", source!("forward/forward.c")),
    ("fs_view_grate", source!("fs_view/fs_view.c")),
    ("imfs_grate", source!("imfs/imfs.c")),
    ("namespace_grate", source!("namespace/namespace.c")),
    ("net_grate", source!("net/net.c")),
    ("program_grate", source!("program/program.c")),
    ("readonly_grate", source!("readonly/readonly.c")),
    ("resource_grate", source!("resource/resource.c")),
    ("seccomp_grate", source!("seccomp/seccomp.c")),
    ("strace_grate", source!("strace/strace.c")),
    ("tee_grate", source!("tee/tee.c")),
    ("umask_grate", source!("umask/umask.c")),
    ("witness_grate", WITNESS),
    ("write_filter_grate", source!("write_filter/write_filter.c")),
];

pub const WITNESS: &str = source!("witness/witness.c");
pub const FAULT_RULES: &str = source!("fault/rules.c");
const SECCOMP_VALUES: &str = source!("seccomp/values.c");
pub const RESOURCE: [&str; 6] = [
    source!("resource/process.c"),
    source!("resource/bytes.c"),
    source!("resource/files.c"),
    source!("resource/memory.c"),
    source!("resource/shared.c"),
    source!("resource/memfile.c"),
];
pub const NET: [&str; 5] =
    [source!("net/net.c"), source!("net/calls.c"), source!("net/messages.c"), source!("net/datagrams.c"), NAMES];
const NAMES: &str = source!("net/names.c");

/// The options of a grate of ours, by the name of its file without suffix. None of others.
pub fn options(grate: &str) -> Option<Vec<Spec>> {
    let (_, source) = WITH_OPTIONS.iter().find(|(name, _)| *name == grate)?;
    Some(source.lines().filter_map(|line| option(line.trim())).collect())
}

/// Whether a grate has the SDK watch which clients are born and end. Of ours those do not that only want to know of the last one's end.
pub fn follows(grate: &str) -> bool {
    let only_the_end = |line: &str| line.contains("struct lind_lifecycle") && line.contains("= { .end = ");
    !WITH_OPTIONS.iter().any(|(name, source)| *name == grate && source.lines().any(only_the_end))
}

/// A line of a list of options: `{ 'p', "prefix", "PATH", "what it is", set },`.
fn option(line: &'static str) -> Option<Spec> {
    let (letter, rest) = line.strip_prefix("{ ")?.split_once(", ")?;
    let letter = if letter == "0" { "" } else { letter.strip_prefix('\'')?.strip_suffix('\'')? };
    let (name, rest) = text(rest)?;
    let (value, rest) = text(rest)?;
    text(rest)?;
    Some((letter, name.unwrap_or(""), value.is_some()))
}

/// A text or NULL at the start, and what comes behind its comma.
fn text(from: &'static str) -> Option<(Option<&'static str>, &'static str)> {
    if let Some(rest) = from.strip_prefix("NULL, ") {
        return Some((None, rest));
    }
    let (text, rest) = from.strip_prefix('"')?.split_once("\", ")?;
    Some((Some(text), rest))
}

/// The calls in the list `name[] = { .. }`.
pub fn calls_in(source: &'static str, name: &str) -> BTreeSet<&'static str> {
    let start = format!("{name}[] = {{");
    let list = source.split_once(&start).map_or("", |(_, rest)| rest);
    // Lists of lists end at their outer bracket.
    let mut depth = 1;
    let end = list.find(|c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0
    });
    names(&list[..end.unwrap_or(list.len())]).collect()
}

/// The names behind `SYS_`.
pub fn names(text: &'static str) -> impl Iterator<Item = &'static str> {
    let end = |text: &str| text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    text.split("SYS_").skip(1).map(move |rest| &rest[..end(rest)])
}

/// Names that calls have in a policy's JSON beside their own: from one to the other.
pub fn other_names() -> impl Iterator<Item = (&'static str, &'static str)> {
    let list = SECCOMP_VALUES.split_once("others[][2] = {").map_or("", |(_, rest)| rest);
    let list = &list[..list.find("};").unwrap_or(list.len())];
    let mut texts = list.split('"').skip(1).step_by(2);
    std::iter::from_fn(move || Some((texts.next()?, texts.next()?)))
}

/// The rows of the calls in a list of the first source that has such a list.
pub fn rows_in(sources: &[&'static str], name: &str) -> impl Iterator<Item = &'static Syscall> {
    let list = sources.iter().map(|source| calls_in(source, name)).find(|list| !list.is_empty());
    list.unwrap_or_default().into_iter().filter_map(syscall_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_the_source() {
        assert_eq!(options("tee_grate").unwrap(), [("", "agree", false)]);
        assert_eq!(options("strace_grate").unwrap()[..2], [("e", "", true), ("o", "output", true)]);
        for (grate, _) in WITH_OPTIONS {
            assert!(!options(grate).unwrap().is_empty(), "{grate}");
        }
    }

    #[test]
    fn lists_that_are_used_are_there() {
        for name in ["process_handlers", "reads", "writes", "receives", "both", "changes", "others", "memory_handlers"]
        {
            assert!(rows_in(&RESOURCE, name).count() > 1, "{name}");
        }
        for name in ["shared_handlers", "memory_file_handlers"] {
            assert!(rows_in(&RESOURCE, name).count() > 1, "{name}");
        }
        for name in ["run_handlers", "call_handlers", "message_handlers", "datagram_handlers", "name_handlers"] {
            assert!(rows_in(&NET, name).count() > 1, "{name}");
        }
        assert!(other_names().any(|names| names == ("umount", "umount2")));
        assert!(calls_in(WITNESS, "others").contains("fchown"));
        assert!(calls_in(FAULT_RULES, "reads").contains("recvmsg"));
        assert!(calls_in(FAULT_RULES, "writes").contains("sendmsg"));
    }
}
