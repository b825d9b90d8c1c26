//! Control groups: one for each container, in version 1, version 2, or both beside each other.

mod limits;
mod place;
mod stats;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::Resources;
use crate::log::Log;
use crate::process::{Process, parent};
pub use limits::Limit;
pub use place::{Hierarchies, path_of};

/// The file with the processes of a group.
const PROCESSES: &str = "cgroup.procs";

/// How long a group may take to be empty, or to freeze.
const PATIENCE: Duration = Duration::from_secs(10);

/// The group of a container: its directory in each hierarchy.
#[derive(Deserialize, Serialize, Debug, Clone, Default, PartialEq, Eq)]
pub struct Group {
    /// The directory of version 2, if that has the controllers.
    unified: Option<PathBuf>,
    /// The controllers of version 1, and the directory of each.
    separate: Vec<(String, PathBuf)>,
}

impl Group {
    /// The group at a path of these hierarchies. Nothing is made yet.
    pub fn at(hierarchies: &Hierarchies, path: &Path) -> Group {
        let below = path.strip_prefix("/").unwrap_or(path);
        Group {
            unified: hierarchies.unified.as_ref().map(|top| top.join(below)),
            separate: hierarchies.separate.iter().map(|(name, top)| (name.clone(), top.join(below))).collect(),
        }
    }

    /// All of its directories.
    fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.unified.iter().chain(self.separate.iter().map(|(_, folder)| folder))
    }

    /// The directory of a controller of version 1.
    fn of(&self, controller: &str) -> Option<&PathBuf> {
        self.separate.iter().find(|(name, _)| name == controller).map(|(_, folder)| folder)
    }

    /// Makes the directories. Those that may not be made are left out, with a warning, unless they
    /// have a limit to hold.
    ///
    /// # Errors
    /// A limit that could not hold; other errors of the host.
    pub fn make(&mut self, hierarchies: &Hierarchies, resources: &Resources, log: &Log) -> Result<()> {
        let mut missing = Vec::new();
        if let Some(folder) = &self.unified
            && let Err(error) = place::make_unified(hierarchies, folder)
        {
            missing.push((String::new(), format!("{}: {error}", folder.display())));
        }
        for (controller, folder) in &self.separate {
            if let Err(error) = place::make_separate(hierarchies, controller, folder) {
                missing.push((controller.clone(), format!("{}: {error}", folder.display())));
            }
        }
        let whole = missing.iter().any(|(controller, _)| controller.is_empty());
        for (controller, why) in &missing {
            let needed =
                limits::all(resources).iter().find(|limit| whole || limit.controller() == controller).map(Limit::name);
            if let Some(limit) = needed {
                bail!(
                    "cannot make the control group {why}: {limit} could not hold; leave the limit out, or run as a user who may make it"
                );
            }
            log.warn(&format!("no control group: {why}"));
        }
        if whole {
            self.unified = None;
        }
        self.separate.retain(|(controller, _)| !missing.iter().any(|(name, _)| name == controller));
        Ok(())
    }

    /// Moves a process into the group.
    ///
    /// # Errors
    /// The host's error.
    pub fn add(&self, pid: i32) -> Result<()> {
        for folder in self.folders() {
            let path = folder.join(PROCESSES);
            std::fs::write(&path, pid.to_string()).with_context(|| path.display().to_string())?;
        }
        Ok(())
    }

    /// Sets limits.
    ///
    /// # Errors
    /// A limit that the host does not take.
    pub fn limit(&self, resources: &Resources, log: &Log) -> Result<()> {
        for limit in limits::all(resources) {
            match (&self.unified, self.of(limit.controller())) {
                (Some(folder), _) => limit.set_unified(folder)?,
                (None, Some(folder)) => limit.set_separate(folder)?,
                (None, None) => log.warn(&format!("{}: the host has no controller for it", limit.name())),
            }
        }
        if let Some(folder) = &self.unified {
            for (file, text) in &resources.unified {
                limits::set_raw(folder, file, text)?;
            }
        }
        Ok(())
    }

    /// Whether its processes stand still.
    pub fn is_frozen(&self) -> bool {
        let says = |path: PathBuf, text: &str| std::fs::read_to_string(path).is_ok_and(|read| read.trim() == text);
        match (&self.unified, self.of("freezer")) {
            (Some(folder), _) => says(folder.join("cgroup.freeze"), "1"),
            (None, Some(folder)) => {
                says(folder.join("freezer.state"), "FROZEN") || says(folder.join("freezer.state"), "FREEZING")
            }
            (None, None) => false,
        }
    }

    /// Lets its processes stand still, or go on, and waits until they do.
    ///
    /// # Errors
    /// When the host cannot.
    pub fn freeze(&self, freezes: bool) -> Result<()> {
        let (path, text, end) = match (&self.unified, self.of("freezer")) {
            (Some(folder), _) => (folder.join("cgroup.freeze"), if freezes { "1" } else { "0" }, None),
            (None, Some(folder)) => {
                let text = if freezes { "FROZEN" } else { "THAWED" };
                (folder.join("freezer.state"), text, Some(text))
            }
            (None, None) => bail!("cannot pause: the container has no control group that the host can freeze"),
        };
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        let due = Instant::now() + PATIENCE;
        let is_there = || match (&self.unified, end) {
            (Some(folder), _) => std::fs::read_to_string(folder.join("cgroup.events"))
                .is_ok_and(|events| events.contains(&format!("frozen {}", u8::from(freezes)))),
            (None, end) => std::fs::read_to_string(&path).is_ok_and(|state| Some(state.trim()) == end),
        };
        while !is_there() {
            anyhow::ensure!(Instant::now() < due, "the processes did not freeze within {} s", PATIENCE.as_secs());
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// The processes in it, without those that the runner has started for itself.
    pub fn processes(&self, runner: i32) -> Vec<i32> {
        let mut all = self.every_process();
        all.retain(|&pid| pid == runner || parent(pid) != Some(runner));
        all.into_iter().collect()
    }

    fn every_process(&self) -> BTreeSet<i32> {
        let of = |folder: &PathBuf| std::fs::read_to_string(folder.join(PROCESSES)).unwrap_or_default();
        self.folders()
            .flat_map(|folder| of(folder).lines().filter_map(|line| line.parse().ok()).collect::<Vec<i32>>())
            .collect()
    }

    /// Whether there are processes in it.
    pub fn is_used(&self) -> bool {
        !self.every_process().is_empty()
    }

    /// Kills all processes in it.
    pub fn kill(&self) {
        let due = Instant::now() + PATIENCE;
        // A process may start another meanwhile.
        loop {
            let there = self.every_process();
            if there.is_empty() || Instant::now() >= due {
                return;
            }
            let _ = self.freeze_if_frozen();
            there.into_iter().filter_map(Process::of).for_each(|process| process.kill());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// A frozen process of version 1 does not end before it goes on.
    fn freeze_if_frozen(&self) -> Result<()> {
        if self.is_frozen() { self.freeze(false) } else { Ok(()) }
    }

    /// Removes its directories.
    ///
    /// # Errors
    /// When a process is still in it.
    pub fn remove(&self) -> Result<()> {
        let due = Instant::now() + PATIENCE;
        for folder in self.folders() {
            loop {
                match std::fs::remove_dir(folder) {
                    Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy && Instant::now() < due => {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => break,
                    removed => {
                        removed.with_context(|| format!("cannot remove the control group {}", folder.display()))?;
                        break;
                    }
                }
            }
        }
        Ok(())
    }

    /// The amounts that it uses, as runc prints them.
    pub fn stats(&self) -> Value {
        stats::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_a_directory_in_each_hierarchy() {
        let hierarchies = Hierarchies {
            unified: None,
            separate: vec![("cpu".into(), "/c/cpu".into()), ("pids".into(), "/c/pids".into())],
        };
        let group = Group::at(&hierarchies, Path::new("/a/b"));
        assert_eq!(group.of("pids"), Some(&PathBuf::from("/c/pids/a/b")));
        assert_eq!(group.folders().count(), 2);
        assert!(!group.is_frozen() && group.freeze(true).is_err());
        let group = Group::at(&Hierarchies { unified: Some("/u".into()), separate: Vec::new() }, Path::new("a"));
        assert_eq!(group.unified, Some("/u/a".into()));
    }
}
