//! What the fault grate does to calls, by its rules.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Result, bail};
use lind_abi::Syscall;
use toml::de::{DeTable, DeValue};

use super::narrow::{Known, Says, text_of};
use super::options::{self, Given};
use super::sources;

/// Those by which it knows the names of programs.
const RUNS: [&str; 3] = ["execve", "execveat", "spawn"];

#[derive(Default)]
struct Rule {
    calls: BTreeSet<&'static str>,
    errno: Option<String>,
    short: bool,
    late: bool,
    /// It does not fire at each of its calls.
    at_times: bool,
}

/// What the options say.
///
/// # Errors
/// What the grate would say.
pub fn read(grate: &str, given: &[Given], root: &Path) -> Result<Known> {
    let mut rules = Vec::new();
    for (name, value) in given {
        match *name {
            "rule" => rules.push(typed(value).map_err(|wrong| wrong.context(format!("{grate}: --rule: '{value}'")))?),
            "config" => {
                let Some(more) = text_of(value, root).and_then(|text| listed(&text)) else {
                    return Ok(Known::Unread(value.clone()));
                };
                rules.extend(more);
            }
            _ => {}
        }
    }
    if rules.is_empty() {
        bail!("{grate}: no rules: --rule CALL:errno=NAME");
    }
    let mut says = Says::default();
    for row in options::all_calls() {
        let what = words(&rules, row);
        if let Some(what) = what.or_else(|| RUNS.contains(&row.name).then(|| "sees".to_owned())) {
            says.calls.insert(row.nr, Some(what));
        }
    }
    Ok(Known::Says(says))
}

/// What becomes of a call. None if no rule is about it.
fn words(rules: &[Rule], row: &Syscall) -> Option<String> {
    let mut what = Vec::new();
    let mut add = |text: String| {
        if !what.contains(&text) {
            what.push(text);
        }
    };
    for rule in rules.iter().filter(|rule| rule.calls.contains(row.name)) {
        let may = if rule.at_times { "may " } else { "" };
        let s = if rule.at_times { "" } else { "s" };
        if rule.late {
            add(format!("{may}delay{s}"));
        }
        if rule.short {
            add(format!("{may}shorten{s}"));
        }
        if let Some(errno) = &rule.errno {
            add(format!("{may}fail{s} with {errno}"));
            if !rule.at_times {
                break;
            }
        }
    }
    (!what.is_empty()).then(|| what.join(", "))
}

/// `CALL,...:KEY=VALUE,...`
fn typed(text: &str) -> Result<Rule> {
    let Some((calls, keys)) = text.split_once(':') else { bail!("must be CALL,...:KEY=VALUE,...") };
    let mut rule = Rule::default();
    for word in calls.split(',').filter(|word| !word.is_empty()) {
        rule.add(word)?;
    }
    for word in keys.split(',').filter(|word| !word.is_empty()) {
        let Some((key, value)) = word.split_once('=') else { bail!("{word}: must be KEY=VALUE") };
        rule.set(key, value)?;
    }
    rule.finished()
}

/// `[[rule]]` tables. None if something there is not understood.
fn listed(text: &str) -> Option<Vec<Rule>> {
    let file = DeTable::parse(text).ok()?;
    let Some(rules) = file.get_ref().get("rule") else { return Some(Vec::new()) };
    let DeValue::Array(rules) = rules.get_ref() else { return None };
    let one = |table: &DeValue<'_>| {
        let DeValue::Table(table) = table else { return None };
        let mut rule = Rule::default();
        for (key, value) in table.iter() {
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("call", DeValue::Array(calls)) => {
                    for call in calls.iter() {
                        rule.add(call.get_ref().as_str()?).ok()?;
                    }
                }
                (key, DeValue::String(value)) => rule.set(key, value).ok()?,
                (key, DeValue::Integer(value)) => rule.set(key, value.as_str()).ok()?,
                (key, DeValue::Float(value)) => rule.set(key, value.as_str()).ok()?,
                _ => return None,
            }
        }
        rule.finished().ok()
    };
    rules.iter().map(|rule| one(rule.get_ref())).collect()
}

impl Rule {
    /// A name, %AREA, %read or %write.
    fn add(&mut self, word: &str) -> Result<()> {
        let class = match word {
            "%read" => sources::calls_in(sources::FAULT_RULES, "reads"),
            "%write" => sources::calls_in(sources::FAULT_RULES, "writes"),
            _ => {
                let area = word.strip_prefix('%');
                let named = |row: &&Syscall| area.map_or(row.name == word, |area| row.area == area);
                options::all_calls().filter(named).filter(|row| can_fail(row)).map(|row| row.name).collect()
            }
        };
        if class.is_empty() {
            bail!("{word}: no such call or class, or one that cannot fail");
        }
        self.calls.extend(class);
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match key {
            "errno" => self.errno = Some(value.to_owned()),
            "short" => self.short = true,
            "delay" => self.late = true,
            "path" | "program" | "fd" | "times" => self.at_times = true,
            "skip" => self.at_times |= value != "0",
            "every" => self.at_times |= value != "1",
            "chance" => self.at_times |= value.parse().is_ok_and(|chance: f64| chance < 1.0),
            "count" | "seed" => {}
            _ => bail!(
                "{key}: no such key; there are path, program, fd, skip, every, times, chance, count, errno, short, delay"
            ),
        }
        Ok(())
    }

    fn finished(self) -> Result<Rule> {
        if self.calls.is_empty() {
            bail!("names no call");
        }
        if self.errno.is_none() && !self.short && !self.late {
            bail!("says not what to do: errno, short or delay");
        }
        Ok(self)
    }
}

fn can_fail(row: &Syscall) -> bool {
    !matches!(row.name, "exit" | "exit_group" | "rt_sigreturn") && row.nr < 512
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(rules: &[&str], name: &str) -> Option<String> {
        let rules: Vec<_> = rules.iter().map(|rule| typed(rule).unwrap()).collect();
        words(&rules, lind_abi::syscall_named(name).unwrap())
    }

    #[test]
    fn rules_say_what_becomes_of_calls() {
        assert_eq!(what(&["open:errno=EIO"], "open").unwrap(), "fails with EIO");
        assert_eq!(what(&["open:errno=EIO"], "openat"), None);
        let two =
            ["%read:delay=1ms,short=1,chance=0.5", "read:errno=EIO,path=/x", "read:errno=EBADF", "read:errno=EPERM"];
        assert_eq!(what(&two, "read").unwrap(), "may delay, may shorten, may fail with EIO, fails with EBADF");
        assert_eq!(what(&two, "recvmsg").unwrap(), "may delay, may shorten");
        assert!(typed("open:").is_err() && typed("opem:errno=EIO").is_err() && typed("exit:errno=EIO").is_err());
        let file = listed("[[rule]]\ncall = ['write']\nerrno = 'ENOSPC'\nevery = 2\n").unwrap();
        assert_eq!(words(&file, lind_abi::syscall_named("write").unwrap()).unwrap(), "may fail with ENOSPC");
    }
}
