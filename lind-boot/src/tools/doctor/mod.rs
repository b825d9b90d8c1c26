//! `lind-boot doctor`: checks whether the sandbox holds what it promises on this host, and says
//! what to do if not.
//!
//! Each wall is tested, not assumed: processes of this program put up walls, all of a sandbox or a
//! single one, and then try things that must not be possible ([`parts`], [`trials`]).

mod files;
mod host;
mod node;
mod parts;
mod table;
mod trials;

use std::collections::BTreeMap;

use anyhow::Context;

use crate::cli::doctor::{Doctor, Part};
use crate::failure::{self, Failure};
use host::Fact;
use parts::Report;
use trials::{Bait, Target, Trial};

/// A wall, or all walls of a sandbox.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Wall {
    /// The kernel of cages and the grates, seen from a program in a cage.
    Kernel,
    Root,
    Landlock,
    Seccomp,
    /// All walls, seen from code that controls the runner.
    All,
}

impl Wall {
    const ALL: [Wall; 5] = [Wall::Kernel, Wall::Root, Wall::Landlock, Wall::Seccomp, Wall::All];

    fn name(self) -> &'static str {
        match self {
            Wall::Kernel => "kernel",
            Wall::Root => "root",
            Wall::Landlock => "landlock",
            Wall::Seccomp => "seccomp",
            Wall::All => "all walls",
        }
    }

    /// Whether the wall promises to refuse the trial (docs/threat-model.md).
    fn refuses(self, trial: Trial) -> bool {
        use Trial::{Abstract, Exec, Mount, Port, Protected, Read, ReadAt, Signal, Socket, Start, Write, WriteAt};
        match self {
            Wall::Kernel => !matches!(trial, ReadAt | WriteAt | Start | Mount),
            Wall::Root => matches!(trial, Read | Write | Socket | Exec),
            Wall::Landlock => matches!(trial, Read | Write | ReadAt | WriteAt | Abstract | Signal | Exec),
            Wall::Seccomp => matches!(trial, Signal | Start | Mount | Exec),
            // The runner makes the connections of its cages, so only the kernel of cages can refuse
            // those two.
            Wall::All => !matches!(trial, Protected | Port),
        }
    }

    /// The advice if the wall does not refuse a trial.
    fn advice(self) -> String {
        match self {
            Wall::Kernel => "report this: a program in a cage was not refused (SECURITY.md)".into(),
            Wall::Root => host::allowing_namespaces(),
            Wall::Landlock => "see the advice for Landlock above".into(),
            Wall::Seccomp => "use a kernel with CONFIG_SECCOMP_FILTER, and a container that permits seccomp(2)".into(),
            Wall::All => "see which single walls did not refuse it".into(),
        }
    }

    /// The advice if the wall could not be tried.
    fn advice_to_try(self) -> String {
        match self {
            Wall::Kernel | Wall::All => "fix the failure that is named here, and run the doctor again".into(),
            wall => wall.advice(),
        }
    }
}

/// The outcome of a trial behind a wall.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// The wall does not promise to refuse it.
    NotPromised,
    /// It was refused with this error.
    Refused(i32),
    Allowed,
    /// It could not be tried.
    Unknown,
}

/// All facts and outcomes.
struct Findings {
    facts: Vec<Fact>,
    outcomes: BTreeMap<(Trial, Wall), Outcome>,
    /// The promises that do not hold, each with advice.
    less: Vec<(String, String)>,
}

/// Tries everything, prints the findings, and returns whether all promises hold.
///
/// # Errors
/// When the files to try it on cannot be created, or standard output fails.
pub fn run(options: &Doctor) -> Result<bool, Failure> {
    if let (Some(part), Some(folder)) = (options.part, &options.target) {
        let program = crate::installed::program().context("cannot find the file of lind-boot itself (mount /proc)")?;
        let target = Target { folder: folder.clone(), port: options.port, process: options.process, program };
        return parts::run(part, &target).map(|()| true);
    }
    let bait = Bait::new()?;
    if let Some(node) = &options.node {
        let facts = node::facts(node, bait.target());
        drop(bait);
        failure::print(&if options.json { table::json_of_node(&facts) } else { table::text_of(&facts) })?;
        return Ok(!facts.iter().any(|fact| fact.less));
    }
    let findings = Findings::of(bait.target());
    drop(bait);
    failure::print(&if options.json { table::json(&findings) } else { table::text(&findings) })?;
    Ok(findings.less.is_empty())
}

impl Findings {
    fn of(target: &Target) -> Findings {
        let mounts = parts::ask(Part::Mounts, target);
        let reports: BTreeMap<Wall, Report> = [
            (Wall::Kernel, Part::Cage),
            (Wall::Root, Part::Root),
            (Wall::Landlock, Part::Landlock),
            (Wall::Seccomp, Part::Seccomp),
            (Wall::All, Part::Walls),
        ]
        .into_iter()
        .map(|(wall, part)| (wall, parts::ask(part, target)))
        .collect();
        let facts = host::facts(&mounts, &reports[&Wall::Landlock]);
        let mut findings = Findings { facts, outcomes: BTreeMap::new(), less: Vec::new() };
        for fact in findings.facts.iter().filter(|fact| fact.less) {
            let advice = fact.advice.clone().unwrap_or_default();
            findings.less.push((format!("{}: {}", fact.name, fact.value), advice));
        }
        findings.judge(&reports, target.port != 0);
        findings.of_process(&reports[&Wall::All]);
        findings
    }

    /// Compares the outcomes with the promises.
    fn judge(&mut self, reports: &BTreeMap<Wall, Report>, port: bool) {
        for wall in Wall::ALL {
            let of_wall = &reports[&wall];
            if let Some(why) = &of_wall.failed {
                self.less.push((format!("{}: could not be tried: {why}", wall.name()), wall.advice_to_try()));
            }
            for trial in Trial::ALL {
                // The port is tried only if there is one.
                let asked = trial != Trial::Port || port;
                let outcome = match of_wall.trials.get(&trial) {
                    _ if !asked || !wall.refuses(trial) => Outcome::NotPromised,
                    None => Outcome::Unknown,
                    Some(0) => Outcome::Allowed,
                    Some(error) => Outcome::Refused(*error),
                };
                self.outcomes.insert((trial, wall), outcome);
                let (what, advice) = match outcome {
                    Outcome::Allowed => ("allowed", wall.advice()),
                    Outcome::Unknown if of_wall.failed.is_none() => ("could not be tried", wall.advice_to_try()),
                    _ => continue,
                };
                self.less.push((format!("{}: {}: {what}", wall.name(), trial.says()), advice));
            }
        }
    }

    /// Adds what the host reports about the runner behind its walls.
    fn of_process(&mut self, walls: &Report) {
        let mut facts = Vec::new();
        match walls.facts.get("capabilities") {
            Some(0) => facts.push(("capabilities", "at most those for files", true)),
            Some(_) => facts.push(("capabilities", "more than those for files", false)),
            None => {}
        }
        if let Some(status) = &walls.status {
            let (filter, privileges) = (filters(status) > own_filters(), field(status, "NoNewPrivs") == Some(1));
            facts.push(("filter of calls", if filter { "in force" } else { "not in force" }, filter));
            facts.push(("new privileges", if privileges { "cannot be gained" } else { "can be gained" }, privileges));
        }
        // This is not promised: such a process could as well read the key.
        let readable = match walls.facts.get("readable") {
            Some(1) => "may be read by this user's other processes",
            _ => "cannot be read from here",
        };
        if walls.status.is_some() {
            facts.push(("memory", readable, true));
        }
        for (name, value, holds) in facts {
            let value = format!("{value}, as the host reports for the runner");
            if !holds {
                self.less.push((format!("{name}: {value}"), Wall::Seccomp.advice()));
            }
            self.facts.push(Fact { name, value, advice: None, less: !holds });
        }
    }
}

/// A number of /proc/PID/status.
fn field(status: &str, name: &str) -> Option<u32> {
    let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    value.trim().parse().ok()
}

/// The number of seccomp filters of a process. An older kernel only shows whether there is one.
fn filters(status: &str) -> u32 {
    field(status, "Seccomp_filters").unwrap_or_else(|| u32::from(field(status, "Seccomp") == Some(2)))
}

/// The number of filters that were in force before, such as a container's.
fn own_filters() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    field(&status, "Seccomp_filters").unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_a_process_are_found_by_their_whole_name() {
        let status = "Name:\tx\nNoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\n";
        assert_eq!([field(status, "NoNewPrivs"), field(status, "NoNew"), field(status, "Name")], [Some(1), None, None]);
        assert_eq!([filters(status), filters("Seccomp:\t2\n"), filters("Seccomp:\t0\n")], [3, 1, 0]);
    }

    #[test]
    fn each_trial_is_some_walls_part() {
        for trial in Trial::ALL {
            assert!(Wall::ALL.into_iter().any(|wall| wall.refuses(trial)), "{trial:?}");
            assert_eq!(Trial::ALL.iter().filter(|other| other.name() == trial.name()).count(), 1);
        }
    }
}
