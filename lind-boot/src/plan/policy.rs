//! Policies: the permissions of a sandbox, as a TOML file. The policies that come with lind-boot
//! are such files too (`policies/`).

use std::ffi::OsStr;
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow, bail, ensure};
use lind_kernel::text::is_seen;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::relative::{is_relative, is_sound};
use crate::amount::{Amount, Kind};
use crate::config;
use crate::named::{Changed, For, Named};

/// The contents of a policy file. Options of the command line take precedence.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policy {
    /// Whether programs may use the host's network, within the rules.
    pub network: bool,
    /// The hosts that they may reach, as rules of the net grate.
    pub allow: Vec<String>,
    /// Whether all volumes are read-only.
    pub read_only: bool,
    /// The names in each volume that may not be changed.
    pub protect: Vec<String>,
    /// Whether each name that begins with a dot may not be changed either.
    pub hidden: bool,
    /// The names that may be changed in spite of that; `*` and `?` match as in a shell.
    pub except: Vec<String>,
    /// The limits: name and amount.
    pub limits: Vec<(String, Amount)>,
    /// The only system calls that may be made.
    pub calls: Option<Vec<String>>,
    /// The only files that may be read or asked about, beside those that may be written: patterns.
    pub read: Option<Vec<String>>,
    /// The only files that may be changed: patterns.
    pub write: Option<Vec<String>>,
    /// The only programs that may be run: patterns.
    pub programs: Option<Vec<String>>,
    /// The rules that apply to single programs.
    pub program: Vec<ProgramRules>,
}

/// The rules of one program, and of all that it starts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramRules {
    /// Its path in the guest, or `blake3:` and the hash of its file.
    pub name: String,
    /// The program's own rules for its network, files and programs, within those of the sandbox.
    pub rules: Policy,
}

/// The prefix of a program's name that is the hash of its file.
pub const HASH: &str = "blake3:";

/// The names of limits.
pub const LIMITS: [&str; 6] = ["memory", "cpu", "cages", "files", "threads", "disk"];

/// The keys of a policy.
const KEYS: [&str; 10] =
    ["network", "allow", "read-only", "protect", "calls", "read", "write", "programs", "program", "limits"];

/// The policies that come with lind-boot.
const KNOWN: [(&str, &str); 4] = [
    ("agent", include_str!("../../policies/agent.toml")),
    ("build", include_str!("../../policies/build.toml")),
    ("readonly", include_str!("../../policies/readonly.toml")),
    ("untrusted", include_str!("../../policies/untrusted.toml")),
];

impl Policy {
    /// Reads the policy of this name: one that comes with lind-boot, one in the user's directory of
    /// policies, or the file of this path if the name has a slash or a dot. No guest of the run may
    /// be able to change the file.
    ///
    /// # Errors
    /// When the policy does not exist or has a mistake.
    pub fn named(name: &str, changed: &Changed) -> Result<Policy> {
        let option = format!("--policy {name}");
        if let Some((_, text)) = KNOWN.iter().find(|(known, _)| *known == name) {
            return Policy::parse(&option, text);
        }
        let path = file_of(OsStr::new(name))?;
        if !is_path(OsStr::new(name)) && path.symlink_metadata().is_err() {
            let own = own_names().into_iter().filter(|own| !KNOWN.iter().any(|(known, _)| known == own));
            let names = KNOWN.iter().map(|(name, _)| (*name).to_owned()).chain(own).collect::<Vec<_>>().join(", ");
            bail!("{option}: no such policy; there are {names}, or name a file (./{name})");
        }
        let file = Named::find("--policy", &path, For::Rules, changed)?.read()?;
        Policy::parse(&option, &std::io::read_to_string(file).with_context(|| option.clone())?)
    }

    /// Parses the text of a policy; `option` names it in messages.
    ///
    /// # Errors
    /// A mistake, with its line and column.
    pub fn parse(option: &str, text: &str) -> Result<Policy> {
        let source = Source { option, text };
        let table = DeTable::parse(text).map_err(|error| source.error(error.span(), error.message().to_owned()))?;
        let mut policy = Policy::default();
        for (key, value) in table.get_ref() {
            let name = key.get_ref().as_ref();
            let Err(error) = policy.take(name, &plain(value.get_ref())) else { continue };
            // In an unknown key, the key is the mistake, not its value.
            let unknown = !KEYS.contains(&name);
            let span = if unknown { key.span() } else { place_of(name, value) };
            return Err(source.error(Some(span), format!("{name}: {error:#}")));
        }
        Ok(policy)
    }

    /// A policy with this key alone.
    ///
    /// # Errors
    /// A mistake in the value.
    pub fn of_rule(key: &str, value: &Value) -> Result<Policy> {
        let mut policy = Policy::default();
        policy.take(key, value).with_context(|| key.to_owned())?;
        Ok(policy)
    }

    fn take(&mut self, key: &str, value: &Value) -> Result<()> {
        match key {
            "network" => {
                self.network = match value.as_str() {
                    Some("none") => false,
                    Some("host") => true,
                    _ => bail!("must be \"none\" or \"host\""),
                }
            }
            "allow" => self.allow = texts(value)?,
            "read-only" => self.read_only = value.as_bool().context("must be true or false")?,
            "protect" if value.is_object() => {
                for (key, value) in value.as_object().into_iter().flatten() {
                    self.take_protect(key, value).with_context(|| key.clone())?;
                }
            }
            "protect" => {
                self.protect = texts(value)?;
                let wrong = |name: &&String| {
                    name.starts_with('/') || name.split('/').any(|part| part == ".." || part.is_empty())
                };
                if let Some(name) = self.protect.iter().find(wrong) {
                    bail!("{name}: must be relative to each volume, without `..`");
                }
                let stars = |name: &&String| name.split('/').skip(1).any(|part| part == "**");
                if let Some(name) = self.protect.iter().find(stars) {
                    bail!("{name}: `**` is allowed only at the beginning, as in `**/NAME`");
                }
            }
            "program" => {
                for (name, rules) in value.as_object().context("must be a table of tables")? {
                    self.program.push(ProgramRules::parse(name, rules).with_context(|| format!("{name:?}"))?);
                }
            }
            "unlearned" => bail!(
                "the policy is empty, because no run that it learns from has ended; learn into it again, or remove it"
            ),
            "calls" => {
                let calls = texts(value)?;
                if let Some(wrong) = calls.iter().find(|name| lind_abi::syscall_named(name).is_none()) {
                    bail!("{wrong}: not a system call; `lind-boot syscalls` lists them");
                }
                self.calls = Some(calls);
            }
            "read" => self.read = Some(patterns(value)?),
            "write" => self.write = Some(patterns(value)?),
            "programs" => self.programs = Some(patterns(value)?),
            "limits" => {
                for (limit, amount) in value.as_object().context("must be a table")? {
                    if !LIMITS.contains(&limit.as_str()) {
                        bail!("{limit}: unknown limit; the limits are {}", LIMITS.join(", "));
                    }
                    let amount = match amount {
                        Value::String(text) => text.clone(),
                        Value::Number(number) => number.to_string(),
                        _ => bail!("{limit}: must be a number or a string such as \"64M\""),
                    };
                    let amount = Kind::of(limit).typed(&amount);
                    let amount = amount.map_err(|expected| anyhow!("{limit}: {expected}"))?;
                    self.limits.push((limit.clone(), amount));
                }
            }
            _ => bail!("unknown key; the keys are {}", KEYS.join(", ")),
        }
        Ok(())
    }

    fn take_protect(&mut self, key: &str, value: &Value) -> Result<()> {
        match key {
            "hidden" => self.hidden = value.as_bool().context("must be true or false")?,
            "names" => self.take("protect", value)?,
            "except" => texts(value)?.iter().try_for_each(|name| self.allow_name(name))?,
            _ => bail!("unknown key; the keys are hidden, names and except"),
        }
        Ok(())
    }

    /// Allows changes of a name that is protected in every directory.
    ///
    /// # Errors
    /// A text that is not a single name.
    pub fn allow_name(&mut self, name: &str) -> Result<()> {
        ensure!(
            !name.is_empty() && !name.contains('/') && !matches!(name, "." | ".."),
            "{name}: expected a name without a slash, in which `*` and `?` match as in a shell"
        );
        self.except.push(name.to_owned());
        Ok(())
    }

    /// The protected names, without those that may be changed in spite of that.
    pub fn protected(&self) -> impl Iterator<Item = &String> {
        let excepted = |name: &str| self.except.iter().any(|except| except.eq_ignore_ascii_case(name));
        self.protect.iter().filter(move |name| !name.strip_prefix("**/").is_some_and(excepted))
    }

    /// Whether it lists calls, files or programs.
    pub fn has_lists(&self) -> bool {
        [&self.calls, &self.read, &self.write, &self.programs].into_iter().any(Option::is_some)
    }

    /// The text of the policy's file, without the comments of the old one.
    pub fn text(&self) -> String {
        let mut text = format!("network = {}\n", quoted(if self.network { "host" } else { "none" }));
        text += &list_text("allow", &self.allow);
        let table = self.hidden || !self.except.is_empty();
        if !table {
            text += &list_text("protect", &self.protect);
        }
        text += &self.lists_text();
        if self.read_only {
            text.push_str("read-only = true\n");
        }
        if table {
            text += &format!("\n[protect]\nhidden = {}\n", self.hidden);
            text += &list_text("names", &self.protect);
            text += &list_text("except", &self.except);
        }
        if !self.limits.is_empty() {
            text.push_str("\n[limits]\n");
        }
        text.extend(self.limits.iter().map(|(limit, amount)| format!("{limit} = {}\n", quoted(&amount.to_string()))));
        text.extend(self.program.iter().map(ProgramRules::text));
        text
    }

    fn lists_text(&self) -> String {
        let lists =
            [("calls", &self.calls), ("read", &self.read), ("write", &self.write), ("programs", &self.programs)];
        lists.iter().filter_map(|(key, all)| Some(list_text(key, all.as_ref()?))).collect()
    }

    /// The amount of a limit.
    pub fn limit(&self, name: &str) -> Option<Amount> {
        self.limits.iter().find(|(limit, _)| limit == name).map(|(_, amount)| *amount)
    }
}

/// The text of a policy, for messages.
struct Source<'a> {
    option: &'a str,
    text: &'a str,
}

impl Source<'_> {
    /// An error OPTION:LINE:COLUMN: MISTAKE.
    fn error(&self, span: Option<Range<usize>>, what: String) -> anyhow::Error {
        let before = self.text.get(..span.map_or(0, |span| span.start)).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        anyhow!("{}:{line}:{column}: {what}", self.option)
    }
}

/// The place of a mistake in the value of a key: in a list or a table, the first member that is
/// wrong alone.
fn place_of(key: &str, value: &Spanned<DeValue<'_>>) -> Range<usize> {
    let is_wrong = |value: Value| Policy::default().take(key, &value).is_err();
    let wrong = match value.get_ref() {
        DeValue::Array(all) => {
            let one = all.iter().find(|one| is_wrong(Value::Array(vec![plain(one.get_ref())])));
            one.map(Spanned::span)
        }
        DeValue::Table(all) => {
            let alone = |name: &str, one| Value::Object([(name.to_owned(), one)].into_iter().collect());
            let one = all.iter().find(|(name, one)| is_wrong(alone(name.get_ref(), plain(one.get_ref()))));
            one.map(|(name, one)| match one.get_ref() {
                // In the table of a program, the key of its wrong rule.
                DeValue::Table(rules) => {
                    let wrong = |rule: &Value, key: &str| is_wrong(alone(name.get_ref(), alone(key, rule.clone())));
                    let rule = rules.iter().find(|(key, rule)| wrong(&plain(rule.get_ref()), key.get_ref()));
                    rule.map_or(name.span(), |(key, _)| key.span())
                }
                _ => one.span(),
            })
        }
        _ => None,
    };
    wrong.unwrap_or_else(|| value.span())
}

/// Converts a TOML value to JSON. A value that JSON does not have becomes a text, which no key
/// accepts.
fn plain(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::from(text.as_ref()),
        DeValue::Boolean(is) => Value::from(*is),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::from(number.as_str()), Value::from),
        DeValue::Float(number) => {
            number.as_str().parse::<f64>().map_or_else(|_| Value::from(number.as_str()), Value::from)
        }
        DeValue::Array(all) => all.iter().map(|one| plain(one.get_ref())).collect(),
        DeValue::Table(all) => {
            Value::Object(all.iter().map(|(key, one)| (key.get_ref().to_string(), plain(one.get_ref()))).collect())
        }
        DeValue::Datetime(time) => Value::from(time.to_string()),
    }
}

impl ProgramRules {
    /// The keys of a program. The others are for the whole sandbox.
    const KEYS: [&str; 5] = ["network", "allow", "read", "write", "programs"];

    fn parse(name: &str, rules: &Value) -> Result<ProgramRules> {
        let hash = name.strip_prefix(HASH).map(|digits| digits.len() == 64 && digits.bytes().all(is_digit));
        if !hash.unwrap_or_else(|| name.starts_with('/')) {
            bail!("must be a path that begins with /, or {HASH} and 64 hexadecimal digits");
        }
        // The rules of the sandbox decide whether there is a network.
        let mut policy = Policy { network: true, ..Policy::default() };
        for (key, value) in rules.as_object().context("must be a table")? {
            if !Self::KEYS.contains(&key.as_str()) {
                bail!("{key}: unknown key; the keys of a program are {}", Self::KEYS.join(", "));
            }
            policy.network &= key != "allow";
            policy.take(key, value).with_context(|| key.clone())?;
        }
        Ok(ProgramRules { name: name.to_owned(), rules: policy })
    }

    fn text(&self) -> String {
        let rules = &self.rules;
        let mut text = format!("\n[program.{}]\n", quoted(&self.name));
        if !rules.network {
            text.push_str("network = \"none\"\n");
        }
        if !rules.allow.is_empty() {
            text += &list_text("allow", &rules.allow);
        }
        text + &rules.lists_text()
    }
}

fn list_text(key: &str, all: &[String]) -> String {
    let lines = all.iter().map(|one| format!("\n    {},", quoted(one))).collect::<String>();
    format!("{key} = [{lines}{}]\n", if all.is_empty() { "" } else { "\n" })
}

fn is_digit(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// Whether the name of a policy is the path of a file.
fn is_path(name: &OsStr) -> bool {
    use std::os::unix::ffi::OsStrExt as _;
    name.as_bytes().iter().any(|byte| b"/.".contains(byte))
}

/// The file of a policy. A name without a slash or a dot is a file in the user's directory of
/// policies.
///
/// # Errors
/// When that directory is unknown, or the name is a policy that comes with lind-boot.
pub fn file_of(name: &OsStr) -> Result<PathBuf> {
    if is_path(name) {
        return Ok(name.into());
    }
    let known = KNOWN.iter().any(|(known, _)| *known == name);
    ensure!(!known, "{}: this policy comes with lind-boot and cannot be changed; choose another name", name.display());
    ensure!(!name.is_empty(), "the name of the policy is empty");
    Ok(config::policies()?.join(name).with_extension("toml"))
}

/// The policies in the user's directory.
fn own_names() -> Vec<String> {
    let entries = config::policies().and_then(|folder| Ok(std::fs::read_dir(folder)?)).into_iter().flatten();
    let name = |entry: std::fs::DirEntry| entry.file_name().to_str()?.strip_suffix(".toml").map(str::to_owned);
    let mut names: Vec<_> = entries.filter_map(Result::ok).filter_map(name).collect();
    names.sort();
    names
}

/// A text as a TOML string.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        if is_seen(c) { quoted.push(c) } else { quoted += &format!("\\U{:08x}", u32::from(c)) }
    }
    quoted
}

fn patterns(value: &Value) -> Result<Vec<String>> {
    let all = texts(value)?;
    if let Some(wrong) = all.iter().find(|pattern| is_relative(pattern) && !is_sound(pattern)) {
        bail!("{wrong}: must begin with /, or be relative to each volume without `.` and `..`");
    }
    Ok(all)
}

fn texts(value: &Value) -> Result<Vec<String>> {
    let all = value.as_array().context("must be a list of strings")?;
    all.iter().map(|text| text.as_str().map(str::to_owned).context("must be a list of strings")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policies_that_come_with_it_are_sound() {
        for (name, _) in KNOWN {
            let policy = Policy::named(name, &Changed::default()).unwrap();
            assert!(!policy.network && policy.limit("memory").is_some(), "{name}");
        }
        assert!(Policy::named("agent", &Changed::default()).unwrap().protect.contains(&"**/.git/hooks".to_owned()));
        assert!(Policy::named("untrusted", &Changed::default()).unwrap().read_only);
    }

    #[test]
    fn programs_have_rules_of_their_own() {
        let parse = |text: &str| Policy::parse("--policy p.toml", text);
        let policy =
            parse("[program.\"/bin/git\"]\nwrite = [\"/p/**\"]\n[program.\"/bin/curl\"]\nnetwork = \"none\"\n")
                .unwrap();
        let [curl, git] = &policy.program[..] else { panic!("{policy:?}") };
        assert_eq!((&*git.name, &git.rules.write, git.rules.network), ("/bin/git", &Some(vec!["/p/**".into()]), true));
        assert!(!curl.rules.network && curl.rules.write.is_none());
        assert_eq!(parse(&policy.text()).unwrap(), policy);
        let hash = format!("[program.\"blake3:{}\"]\nprograms = []\n", "0a".repeat(32));
        assert!(parse(&hash).is_ok());
        for wrong in
            ["[program.git]\n", "[program.\"blake3:0a\"]\n", "[program.\"/a\"]\nlimits = {}\n", "program = 1\n"]
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let policy = Policy {
            allow: list(&["example.org:443"]),
            protect: list(&[".git/hooks"]),
            hidden: true,
            except: list(&[".gitignore", ".*.swp"]),
            limits: vec![("memory".into(), Kind::Bytes.parse("64M").unwrap())],
            calls: Some(list(&["read"])),
            read: Some(list(&["/a \"b\"\\c\n\u{7f}", "/**"])),
            write: Some(Vec::new()),
            ..Policy::default()
        };
        assert_eq!(Policy::parse("--policy p.toml", &policy.text()).unwrap(), policy);
    }

    #[test]
    fn mistakes_are_told_with_line_and_column() {
        let wrong = |text: &str| format!("{:#}", Policy::parse("--policy p.toml", text).unwrap_err());
        assert_eq!(wrong("network = 1"), "--policy p.toml:1:11: network: must be \"none\" or \"host\"");
        assert!(wrong("netwrok = \"none\"").starts_with("--policy p.toml:1:1: netwrok: unknown"));
        assert!(wrong("protect = [\"/etc\"]").contains("relative"));
        assert!(wrong("protect = [\"a/../b\"]").contains("relative"));
        assert!(wrong("protect = [\"a/**/b\"]").contains("only at the beginning"));
        assert!(wrong("[protect]\nexcept = [\"a/b\"]").contains("protect: except: a/b: expected a name"));
        assert!(wrong("[protect]\nall = true").contains("protect: all: unknown"));
        assert!(wrong("read = [\"../etc\"]").contains("begin with /"));
        assert_eq!(
            wrong("calls = [\"raed\"]"),
            "--policy p.toml:1:10: calls: raed: not a system call; `lind-boot syscalls` lists them"
        );
        assert_eq!(
            wrong("[limits]\nmemory = \"1X\""),
            "--policy p.toml:2:10: limits: memory: must be a size such as 64M, 1.5G"
        );
        assert!(wrong("[limits]\nmemroy = 1").contains("memroy: unknown limit"));
        assert!(
            Policy::named("nobody", &Changed::default()).is_err()
                && Policy::named("./nowhere.toml", &Changed::default()).is_err()
        );
        assert!(wrong("network = ").starts_with("--policy p.toml:1:"));
        let nested = wrong("# one\nread = [\n  \"/a\",\n  \"../b\"]");
        assert!(nested.starts_with("--policy p.toml:4:3: read: ../b: "), "{nested}");
        assert!(wrong("[program.\"/a\"]\nread = []\nlimits = {}").starts_with("--policy p.toml:3:1: program: "));
        let unit = wrong("[limits]\nmemory = 100");
        assert!(unit.starts_with("--policy p.toml:2:10: limits: memory: 100 has no unit"), "{unit}");
    }
}
