//! Rules that change while a sandbox runs: those that it was started with, and those that its user
//! has added since. The newest counts most.

use std::borrow::Cow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::line;
use super::policy::Policy;
use super::relative;
use super::step::{self, Setting, Step, Value};
use crate::cli::sandbox::Amounts;

/// The option of a grate that takes rules while it runs.
const LIVE: &str = "--live";

/// The keys of a policy that a rule can have, beside limits.
const KEYS: [&str; 3] = ["read", "write", "protect"];

/// The most rules that are added to a sandbox.
const MOST: usize = 200;

/// The ending of a grate's name, which the names of rules do not have.
const GRATE: &str = "_grate";

/// The rules of a running sandbox.
#[derive(Clone, Default)]
pub struct Live {
    /// The grates that take rules, with the options that they were started with.
    base: Vec<Step>,
    /// The paths of volumes that can be changed, for paths that are relative to each.
    volumes: Vec<PathBuf>,
    added: Vec<Added>,
    last: u64,
}

/// A rule that was added.
#[derive(Clone)]
pub struct Added {
    /// Its number, from 1.
    pub number: u64,
    /// Whether it allows, or denies.
    pub allows: bool,
    /// The rule as it was typed.
    pub text: String,
    rule: Rule,
    /// The number of the permission, if it is for one use.
    pub once: Option<u64>,
    /// When it ends.
    pub until: Option<Instant>,
}

/// A rule.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Rule {
    /// A rule of the net grate.
    Net(String),
    /// Files to change: a pattern without links and `..`.
    Write(Vec<String>),
    /// Files to read: likewise.
    Read(Vec<String>),
    /// A limit and its amount, as an option of the resource grate.
    Limit(Setting),
}

/// How long a rule holds.
#[derive(Clone, Copy, Default)]
pub struct Holds {
    /// The number of the permission, if it is for one use.
    pub once: Option<u64>,
    /// The time after which it ends.
    pub longest: Option<Duration>,
}

impl Rule {
    /// Parses KEY=VALUE, where KEY is one of a policy's, or HOST[:PORT] and rules of the net grate.
    fn parse(text: &str, volumes: &[PathBuf]) -> Result<Rule> {
        ensure!(!text.contains(['\0', '\n']), "a rule has no line breaks");
        let Some((key, value)) = text.split_once('=').filter(|(key, _)| KEYS.contains(key) || Amounts::has(key)) else {
            return Ok(Rule::Net(line::net_rule(text)?));
        };
        if Amounts::has(key) {
            let policy = Policy::of_rule("limits", json!({key: value}))?;
            let limit = policy.limits.set().into_iter().next().context("no amount")?;
            return Ok(Rule::Limit(line::limit(limit)));
        }
        let policy = relative::resolved(&Policy::of_rule(key, json!([value]))?, volumes)?;
        let rule = match key {
            "read" => Rule::Read(policy.read.unwrap_or_default()),
            "write" => Rule::Write(policy.write.unwrap_or_default()),
            _ => {
                let names = policy.protect.names.iter();
                let below = names.flat_map(|name| volumes.iter().map(move |volume| (volume, name)));
                Rule::Write(below.map(|(volume, name)| format!("{}/{name}", volume.display())).collect())
            }
        };
        let (Rule::Read(paths) | Rule::Write(paths)) = &rule else { return Ok(rule) };
        ensure!(!paths.is_empty(), "{value}: the path is relative to each volume, and there is none");
        Ok(rule)
    }

    /// The grate that applies it.
    fn grate(&self) -> &'static str {
        match self {
            Rule::Net(_) => "net",
            Rule::Write(_) | Rule::Read(_) => "write_filter",
            Rule::Limit(_) => "resource",
        }
    }
}

impl Added {
    fn settings(&self) -> Vec<Setting> {
        let either = |allows, denies| if self.allows { allows } else { denies };
        let paths = |name: &'static str, paths: &[String]| {
            let once = self.once.map(|number| format!("once:{number}:")).unwrap_or_default();
            paths.iter().map(|path| Setting::new(name, Value::text(format!("{once}{path}")))).collect()
        };
        match &self.rule {
            Rule::Net(rule) => {
                let once = self.once.map(|number| format!(" once:{number}")).unwrap_or_default();
                vec![Setting::new(either("--allow", "--deny"), Value::text(format!("{rule}{once}")))]
            }
            Rule::Write(patterns) => paths(either("--grant", "--refuse"), patterns),
            Rule::Read(patterns) => paths(either("--reveal", "--conceal"), patterns),
            Rule::Limit(setting) => vec![setting.clone()],
        }
    }
}

impl Live {
    /// The rules of a line that was made live.
    pub fn of(line: &[Step], volumes: Vec<PathBuf>) -> Live {
        Live { base: line.iter().filter(|step| is_live(step)).cloned().collect(), volumes, ..Live::default() }
    }

    /// Adds a rule, and returns its number and the grate that needs the new rules.
    ///
    /// # Errors
    /// A mistake in the rule.
    pub fn add(&mut self, allows: bool, text: &str, holds: Holds) -> Result<(u64, &'static str)> {
        ensure!(
            self.added.len() < MOST,
            "there are {MOST} rules already; take some back by `lind-boot session revoke`"
        );
        let rule = Rule::parse(text, &self.volumes)?;
        let grate = rule.grate();
        let is_limit = matches!(rule, Rule::Limit(_));
        ensure!(!is_limit || allows, "a limit is set by allow, to more or to less");
        ensure!(
            !(is_limit || matches!(rule, Rule::Read(_))) || holds.once.is_none(),
            "--once is for hosts and changes of files"
        );
        ensure!(self.step(grate).is_some(), "this session has no {grate} grate that could apply the rule");
        ensure!(allows || holds.once.is_none(), "--once is for rules that allow");
        self.last += 1;
        let until = holds.longest.map(|longest| Instant::now().checked_add(longest).context("--for: too long"));
        let (number, text, once) = (self.last, text.to_owned(), holds.once);
        self.added.push(Added { number, allows, text, rule, once, until: until.transpose()? });
        Ok((number, grate))
    }

    /// Takes back the rules with this text or number that were added, or those of the start, and
    /// returns the grates that need the new rules.
    ///
    /// # Errors
    /// When there is no such rule.
    pub fn revoke(&mut self, text: &str) -> Result<Vec<&'static str>> {
        let number: Option<u64> = text.parse().ok();
        let is_meant = |added: &Added| added.text == text || number == Some(added.number);
        let mut grates: Vec<_> =
            self.added.iter().filter(|added| is_meant(added)).map(|one| one.rule.grate()).collect();
        self.added.retain(|added| !is_meant(added));
        if grates.is_empty() {
            grates.extend(self.revoke_of_start(text));
        }
        ensure!(!grates.is_empty(), "{text}: there is no such rule; `lind-boot session policy` lists them");
        grates.dedup();
        Ok(grates)
    }

    fn revoke_of_start(&mut self, text: &str) -> Option<&'static str> {
        let rule = Rule::parse(text, &self.volumes).ok()?;
        let grate = rule.grate();
        let of_start = Added { number: 0, allows: true, text: String::new(), rule, once: None, until: None }.settings();
        let step = self.step_mut(grate)?;
        let before = step.settings.len();
        step.settings.retain(|setting| !of_start.contains(setting));
        (step.settings.len() < before).then_some(grate)
    }

    /// Takes back the rules whose time is over, or that `is_used` says were used, and returns the
    /// grates that need the new rules.
    pub fn expire(&mut self, now: Instant, is_used: impl Fn(u64) -> bool) -> Vec<&'static str> {
        let is_over = |added: &Added| added.until.is_some_and(|until| until <= now) || added.once.is_some_and(&is_used);
        let mut grates: Vec<_> = self.added.iter().filter(|added| is_over(added)).map(|one| one.rule.grate()).collect();
        self.added.retain(|added| !is_over(added));
        grates.dedup();
        grates
    }

    /// When the next rule ends.
    pub fn next_end(&self) -> Option<Instant> {
        self.added.iter().filter_map(|added| added.until).min()
    }

    /// The rules that were added, the newest first: they count in this order.
    pub fn added(&self) -> impl Iterator<Item = &Added> {
        self.added.iter().rev()
    }

    /// The rules that the sandbox was started with, as options of the grates that apply them.
    pub fn of_start(&self) -> impl Iterator<Item = (&str, String)> {
        self.base.iter().flat_map(|step| {
            let options = step.settings.iter().filter(|setting| setting.name != LIVE);
            options.map(|setting| (rules_name(step), words(setting)))
        })
    }

    /// All rules of a grate, as options with a NUL behind each.
    pub fn document(&self, grate: &str) -> Vec<u8> {
        let added = self.added().filter(|added| added.rule.grate() == grate).flat_map(Added::settings);
        let base = self.step(grate).into_iter().flat_map(|step| &step.settings);
        // Files are opened at the start, and given once.
        let base = base.filter(|setting| !matches!(setting.value, Value::Host(_))).cloned();
        // Of limits the last one counts.
        let settings: Vec<_> = match grate {
            "resource" => base.chain(added.collect::<Vec<_>>().into_iter().rev()).collect(),
            _ => added.chain(base).collect(),
        };
        let mut step = Step { settings, ..Step::default() };
        step.make_plain();
        step::words(&[step]).into_iter().skip(1).flat_map(|word| [word.as_encoded_bytes(), b"\0"].concat()).collect()
    }

    fn step(&self, grate: &str) -> Option<&Step> {
        self.base.iter().find(|step| rules_name(step) == grate)
    }

    fn step_mut(&mut self, grate: &str) -> Option<&mut Step> {
        self.base.iter_mut().find(|step| rules_name(step) == grate)
    }
}

/// The names of the grates of a line that take rules while they run.
pub fn names(line: &[Step]) -> Vec<String> {
    line.iter().filter(|step| is_live(step)).map(|step| rules_name(step).to_owned()).collect()
}

fn is_live(step: &Step) -> bool {
    step.settings.iter().any(|setting| setting.name == LIVE)
}

fn rules_name(step: &Step) -> &str {
    step.grate.strip_suffix(GRATE).unwrap_or(&step.grate)
}

fn words(setting: &Setting) -> String {
    let name = setting.name.trim_start_matches('-');
    let value = setting.value.word();
    let value = value.map(|value| Cow::from(format!("={}", value.to_string_lossy()))).unwrap_or_default();
    format!("{name}{value}")
}

/// Makes the grates of a line take rules while they run.
pub fn made_live(mut line: Vec<Step>) -> Vec<Step> {
    if !line.iter().any(|step| step.grate == "net_grate") {
        // The network's rules are those of the whole sandbox: in front of those of programs.
        let at = line.iter().position(|step| matches!(&*step.grate, "program_grate" | "seccomp_grate"));
        let free = Step::new("net_grate").with("--default", Value::text("allow"));
        line.insert(at.unwrap_or(line.len()), free);
    }
    if !line.iter().any(|step| step.grate == "write_filter_grate") {
        let errno = Setting::new("--errno", Value::text("EROFS"));
        let free = Step { settings: vec![errno], ..Step::new("write_filter_grate") }.with("--given", Value::Flag);
        let at = line.iter().position(|step| step.grate == "net_grate");
        line.insert(at.unwrap_or(0), free);
    }
    for step in &mut line {
        if matches!(&*step.grate, "net_grate" | "write_filter_grate" | "resource_grate") {
            step.settings.push(Setting::new(LIVE, Value::Flag));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live() -> Live {
        let net = Step::new("net_grate").with("--allow", Value::text("out a.example 1"));
        let policy = Policy::of_rule("limits", json!({"memory": "1G"})).unwrap();
        let settings = policy.limits.set().into_iter().map(line::limit).collect();
        let resource = Step { settings, ..Step::new("resource_grate") };
        let line = made_live(vec![resource, net, Step::new("seccomp_grate")]);
        assert_eq!(names(&line), ["resource", "write_filter", "net"]);
        Live::of(&line, vec!["/p".into(), "/q".into()])
    }

    fn words(live: &Live, grate: &str) -> Vec<String> {
        let text = String::from_utf8(live.document(grate)).unwrap();
        text.split_terminator('\0').map(str::to_owned).collect()
    }

    #[test]
    fn the_newest_rule_comes_first() {
        let mut live = live();
        live.add(true, "b.example:2", Holds { once: Some(7), longest: None }).unwrap();
        live.add(false, "a.example", Holds::default()).unwrap();
        let net = ["--deny=out a.example *", "--allow=out b.example 2 once:7", "--allow=out a.example 1", "--live"];
        assert_eq!(words(&live, "net"), net);
        live.add(true, "write=src/**", Holds::default()).unwrap();
        live.add(false, "protect=**/.x", Holds::default()).unwrap();
        let files = ["--refuse=/p/**/.x", "--refuse=/q/**/.x", "--grant=/p/src/**", "--grant=/q/src/**"];
        assert_eq!(words(&live, "write_filter")[..4], files);
        live.add(true, "memory=2G", Holds::default()).unwrap();
        assert_eq!(words(&live, "resource"), ["--memory=1073741824", "--live", "--memory=2147483648"]);
        for wrong in ["write=", "write=../x", "memory=x", "http://a.example/", "a.example:b"] {
            assert!(live.add(true, wrong, Holds::default()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn rules_end() {
        let mut live = live();
        let minute = Some(Duration::from_secs(60));
        live.add(true, "b.example", Holds { once: None, longest: minute }).unwrap();
        live.add(true, "c.example", Holds { once: Some(7), longest: None }).unwrap();
        assert!(live.expire(Instant::now(), |_| false).is_empty());
        assert_eq!(live.expire(Instant::now(), |once| once == 7), ["net"]);
        assert_eq!(live.expire(Instant::now() + Duration::from_secs(61), |_| false), ["net"]);
        assert_eq!(live.added().count(), 0);
        assert_eq!(live.revoke("a.example:1").unwrap(), ["net"]);
        assert_eq!(words(&live, "net"), ["--live"]);
        assert!(live.revoke("a.example:1").is_err());
    }
}
