//! Which calls the resource grate looks at, and for which limits.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};
use toml::de::{DeTable, DeValue};

use super::narrow::{Known, Says, text_of};
use super::options::{self, Given};
use super::sources::{RESOURCE, rows_in};

const CLASSES: [&str; 3] = ["file", "network", "pipe"];

/// What is limited, by its name.
#[derive(Default)]
struct Limits {
    all: BTreeSet<String>,
    /// Those of each cage.
    each: BTreeSet<String>,
    /// Bytes per second.
    rates: BTreeSet<String>,
    report: bool,
}

/// What the options say.
///
/// # Errors
/// What the grate would say.
pub fn read(grate: &str, given: &[Given], root: &Path) -> Result<Known> {
    let mut limits = Limits::default();
    for (name, value) in given {
        let before = |value: &str| value.split_once('=').map(|(limit, _)| limit.to_owned());
        match *name {
            "cpu" | "wall" | "memory" | "cages" | "threads" | "files" => limits.add("tree", (*name).to_owned())?,
            "read-bytes" | "write-bytes" => {
                let what = name.trim_end_matches("-bytes");
                limits.add("tree", before(value).map_or(what.to_owned(), |class| format!("{what}.{class}")))?;
            }
            "each" | "rate" | "each-rate" => match before(value) {
                Some(limit) => limits.add(name, limit)?,
                None => bail!("{grate}: --{name}: '{value}': must be LIMIT=AMOUNT"),
            },
            "report" => limits.report = true,
            "config" => match text_of(value, root).and_then(|text| limits.file(&text)) {
                Some(()) => {}
                None => return Ok(Known::Unread(value.clone())),
            },
            _ => {}
        }
    }
    if limits.all.is_empty() && limits.rates.is_empty() && !limits.report {
        bail!("{grate}: no limit is given: --help lists them");
    }
    Ok(Known::Says(limits.says()))
}

impl Limits {
    fn add(&mut self, scope: &str, limit: String) -> Result<()> {
        let bytes =
            limit.split_once('.').map_or(&limit[..], |(what, class)| if CLASSES.contains(&class) { what } else { "" });
        let of_bytes = matches!(bytes, "read" | "write");
        let known = of_bytes || matches!(&limit[..], "cpu" | "wall" | "memory" | "cages" | "threads" | "files");
        if !known || (scope.ends_with("rate") && !of_bytes) || (scope == "each" && limit == "cages") {
            bail!("no such limit: {limit}");
        }
        if scope.ends_with("rate") {
            self.rates.insert(limit);
            return Ok(());
        }
        if scope == "each" {
            self.each.insert(limit.clone());
        }
        self.all.insert(limit);
        Ok(())
    }

    /// None if something there is not understood.
    fn file(&mut self, text: &str) -> Option<()> {
        let file = DeTable::parse(text).ok()?;
        for (key, value) in file.get_ref().iter() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("report", DeValue::Boolean(report)) => self.report |= *report,
                ("on-hit", DeValue::Table(_)) => {}
                (scope @ ("tree" | "each" | "rate" | "each-rate"), DeValue::Table(limits)) => {
                    self.table(scope, limits)?
                }
                _ => return None,
            }
        }
        Some(())
    }

    fn table(&mut self, scope: &str, limits: &DeTable<'_>) -> Option<()> {
        for (limit, value) in limits.iter() {
            let limit = limit.get_ref();
            match value.get_ref() {
                DeValue::Table(classes) => {
                    for class in classes.keys() {
                        let class = class.get_ref();
                        self.add(scope, if class == "all" { limit.to_string() } else { format!("{limit}.{class}") })
                            .ok()?;
                    }
                }
                _ => self.add(scope, limit.to_string()).ok()?,
            }
        }
        Some(())
    }

    /// Whether there is something about bytes read or written; of all classes, or of single ones.
    fn bytes(&self, what: &str, of_class: bool) -> bool {
        let about = |limit: &String| limit.starts_with(what) && (!of_class || limit.contains('.'));
        self.report || self.all.iter().chain(&self.rates).any(about)
    }

    fn says(&self) -> Says {
        let mut says = Says::default();
        let of = |limits: &[&str]| {
            let about = |limit: &&String| limits.iter().any(|name| limit.split('.').next() == Some(name));
            let mut names: Vec<_> = self.all.iter().filter(about).cloned().collect();
            names.extend(self.rates.iter().filter(about).map(|name| format!("{name} per second")));
            names
        };
        let mut add = |list: &str, limits: &[&str]| {
            for row in rows_in(&RESOURCE, list) {
                note(&mut says, row.nr, &of(if row.name == "vmsplice" { &[] } else { limits }));
            }
        };
        let (read, write) = (self.bytes("read", false), self.bytes("write", false));
        let files = self.all.contains("files");
        add("process_handlers", &[]);

        if read {
            add("reads", &["read"]);
        }
        if write {
            add("writes", &["write"]);
        }
        if write || files {
            add("sends", &["write", "files"]);
        }
        if read || files {
            add("receives", &["read", "files"]);
        }
        if read || write {
            add("both", &["read", "write"]);
        }
        if self.bytes("read", true) || self.bytes("write", true) {
            add("changes", &[]);
        }
        if self.all.contains("memory") {
            add("memory_handlers", &["memory"]);
            let each = self.each.contains("memory");
            add(if each { "shared_handlers" } else { "memory_file_handlers" }, &["memory"]);
        }
        if files {
            add("others", &["files"]);
            for row in options::all_calls().filter(|row| options::makes_descriptor(row)) {
                note(&mut says, row.nr, &of(&["files"]));
            }
        }
        for name in ["clone", "spawn"] {
            let row = lind_abi::syscall_named(name).expect("the table has it");
            note(&mut says, row.nr, &of(&["cages", "threads", "memory", "files"]));
        }
        if read || write {
            let row = lind_abi::syscall_named("vmsplice").expect("the table has it");
            says.calls.insert(row.nr, Some("refuses with ENOSYS".to_owned()));
        }
        let times: Vec<_> = ["cpu", "wall"].into_iter().filter(|what| self.all.contains(*what)).collect();
        if !times.is_empty() {
            says.notes.push(format!("when {} is used up it acts whatever is called", times.join(" or ")));
        }
        says
    }
}

/// A call is looked at for these limits, and perhaps for others.
fn note(says: &mut Says, nr: u32, limits: &[String]) {
    const MAY: &str = "may refuse, shorten or delay, by its limit of ";
    let said = says.calls.entry(nr).or_default();
    let mut names: BTreeSet<_> = limits.iter().cloned().collect();
    let before = said.as_deref().and_then(|said| said.strip_prefix(MAY));
    names.extend(before.into_iter().flat_map(|before| before.split(", ").map(str::to_owned)));
    let listed = names.into_iter().collect::<Vec<_>>().join(", ");
    *said = Some(if listed.is_empty() { "sees, and counts".to_owned() } else { format!("{MAY}{listed}") });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(options: &[(&'static str, &str)], name: &str) -> Option<String> {
        let given: Vec<_> = options.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let Known::Says(says) = read("g", &given, Path::new("/nowhere")).unwrap() else { panic!("not read") };
        says.calls.get(&lind_abi::syscall_named(name).unwrap().nr).cloned().flatten()
    }

    #[test]
    fn limits_are_about_their_calls() {
        let told = |limit: &str| Some(format!("may refuse, shorten or delay, by its limit of {limit}"));
        assert_eq!(role(&[("cages", "3")], "read"), None);
        assert_eq!(role(&[("cages", "3")], "clone"), told("cages"));
        assert_eq!(role(&[("read-bytes", "file=3")], "read"), told("read.file"));
        assert_eq!(role(&[("read-bytes", "3")], "dup2"), None);
        assert_eq!(role(&[("read-bytes", "file=3")], "dup2").unwrap(), "sees, and counts");
        assert_eq!(role(&[("read-bytes", "1"), ("files", "3")], "recvmsg"), told("files, read"));
        assert_eq!(role(&[("files", "3")], "sendmsg"), told("files"));
        assert_eq!(role(&[("rate", "write=1M")], "write"), told("write per second"));
        assert_eq!(role(&[("memory", "1M")], "write"), told("memory"));
        assert_eq!(role(&[("each", "memory=1M")], "write"), None);
        assert_eq!(role(&[("report", "")], "write").unwrap(), "sees, and counts");
    }

    #[test]
    fn files_are_read() {
        let mut limits = Limits::default();
        limits
            .file("[tree]\ncpu = '1s'\nwrite = { all = '1G', file = '100M' }\n[rate]\nwrite.network = '1K'\n")
            .unwrap();
        assert_eq!(limits.all.iter().map(String::as_str).collect::<Vec<_>>(), ["cpu", "write", "write.file"]);
        assert_eq!(limits.rates.iter().map(String::as_str).collect::<Vec<_>>(), ["write.network"]);
        assert!(limits.file("[tree]\ncpi = '1s'\n").is_none());
    }
}
