//! Limits of a control group: the files of each version, and the form of the value in them.

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::config::Resources;

/// The longest period, and the processor time that is shared by default.
const PERIOD: u64 = 100_000;

/// A limit.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Limit {
    /// Bytes of memory; a negative number for no limit.
    Memory(i64),
    /// Bytes of memory that are left to it.
    Reservation(i64),
    /// Bytes of memory and swap together, and of memory alone.
    Swap(i64, i64),
    /// Shares of processor time.
    Shares(u64),
    /// Microseconds in each period; a negative number for no limit.
    Time(i64, u64),
    /// Processors.
    Processors(String),
    /// Nodes of memory.
    Nodes(String),
    /// Tasks; no number above 0 for no limit.
    Tasks(i64),
    /// The share of disks.
    Disks(u16),
}

/// The limits that config.json or an update sets, in the order in which the host takes them.
pub fn all(resources: &Resources) -> Vec<Limit> {
    let (memory, cpu) = (&resources.memory, &resources.cpu);
    let mut all = Vec::new();
    let limit = memory.limit.filter(|&limit| limit != 0);
    all.extend(limit.map(Limit::Memory));
    all.extend(memory.reservation.filter(|&limit| limit != 0).map(Limit::Reservation));
    all.extend(memory.swap.filter(|&swap| swap != 0).map(|swap| Limit::Swap(swap, limit.unwrap_or(0))));
    all.extend(cpu.shares.filter(|&shares| shares != 0).map(Limit::Shares));
    if cpu.quota.is_some() || cpu.period.is_some() {
        let quota = cpu.quota.filter(|&quota| quota != 0).unwrap_or(-1);
        all.push(Limit::Time(quota, cpu.period.filter(|&period| period != 0).unwrap_or(PERIOD)));
    }
    all.extend(cpu.cpus.clone().filter(|text| !text.is_empty()).map(Limit::Processors));
    all.extend(cpu.mems.clone().filter(|text| !text.is_empty()).map(Limit::Nodes));
    all.extend(resources.pids.limit.filter(|&limit| limit != 0).map(Limit::Tasks));
    all.extend(resources.block_io.weight.filter(|&weight| weight != 0).map(Limit::Disks));
    all
}

impl Limit {
    /// Its name in config.json.
    pub fn name(&self) -> &'static str {
        match self {
            Limit::Memory(_) => "linux.resources.memory.limit",
            Limit::Reservation(_) => "linux.resources.memory.reservation",
            Limit::Swap(..) => "linux.resources.memory.swap",
            Limit::Shares(_) => "linux.resources.cpu.shares",
            Limit::Time(..) => "linux.resources.cpu.quota",
            Limit::Processors(_) => "linux.resources.cpu.cpus",
            Limit::Nodes(_) => "linux.resources.cpu.mems",
            Limit::Tasks(_) => "linux.resources.pids.limit",
            Limit::Disks(_) => "linux.resources.blockIO.weight",
        }
    }

    /// Its controller in version 1.
    pub fn controller(&self) -> &'static str {
        match self {
            Limit::Memory(_) | Limit::Reservation(_) | Limit::Swap(..) => "memory",
            Limit::Shares(_) | Limit::Time(..) => "cpu",
            Limit::Processors(_) | Limit::Nodes(_) => "cpuset",
            Limit::Tasks(_) => "pids",
            Limit::Disks(_) => "blkio",
        }
    }

    /// The files of version 2, and what is written to them.
    fn unified(&self) -> Vec<(&'static str, String)> {
        let or_max = |number: i64| if number < 0 { "max".to_owned() } else { number.to_string() };
        match self {
            Limit::Memory(number) => vec![("memory.max", or_max(*number))],
            Limit::Reservation(number) => vec![("memory.low", number.max(&0).to_string())],
            Limit::Swap(both, memory) => {
                let swap = if *both < 0 { -1 } else { both.saturating_sub((*memory).max(0)).max(0) };
                vec![("memory.swap.max", or_max(swap))]
            }
            // The ranges of the two versions, 2 to 262144 and 1 to 10000, on each other.
            Limit::Shares(shares) => {
                vec![("cpu.weight", (1 + (shares.clamp(&2, &262_144) - 2) * 9999 / 262_142).to_string())]
            }
            Limit::Time(quota, period) => vec![("cpu.max", format!("{} {period}", or_max(*quota)))],
            Limit::Processors(text) => vec![("cpuset.cpus", text.clone())],
            Limit::Nodes(text) => vec![("cpuset.mems", text.clone())],
            Limit::Tasks(number) => vec![("pids.max", or_max(if *number > 0 { *number } else { -1 }))],
            Limit::Disks(weight) => {
                let weight = 1 + (u32::from(*weight).clamp(10, 1000) - 10) * 9999 / 990;
                vec![("io.weight", weight.to_string())]
            }
        }
    }

    /// The files of version 1, and what is written to them.
    fn separate(&self) -> Vec<(&'static str, String)> {
        match self {
            Limit::Memory(number) => vec![("memory.limit_in_bytes", number.to_string())],
            Limit::Reservation(number) => vec![("memory.soft_limit_in_bytes", number.to_string())],
            Limit::Swap(both, _) => vec![("memory.memsw.limit_in_bytes", both.to_string())],
            Limit::Shares(shares) => vec![("cpu.shares", shares.to_string())],
            Limit::Time(quota, period) => {
                vec![("cpu.cfs_period_us", period.to_string()), ("cpu.cfs_quota_us", quota.to_string())]
            }
            Limit::Processors(text) => vec![("cpuset.cpus", text.clone())],
            Limit::Nodes(text) => vec![("cpuset.mems", text.clone())],
            Limit::Tasks(number) => {
                vec![("pids.max", if *number > 0 { number.to_string() } else { "max".to_owned() })]
            }
            Limit::Disks(weight) => vec![("blkio.weight", weight.to_string())],
        }
    }

    /// Sets it in a group of version 2.
    ///
    /// # Errors
    /// The host's error.
    pub fn set_unified(&self, folder: &Path) -> Result<()> {
        self.write(folder, self.unified())
    }

    /// Sets it in a group of version 1.
    ///
    /// # Errors
    /// The host's error.
    pub fn set_separate(&self, folder: &Path) -> Result<()> {
        self.write(folder, self.separate())
    }

    /// The host may have neither swap nor weights of disks, which limit nothing then.
    fn write(&self, folder: &Path, files: Vec<(&'static str, String)>) -> Result<()> {
        let optional = matches!(self, Limit::Swap(..) | Limit::Disks(_));
        for (file, text) in files {
            let path = folder.join(file);
            if optional && !path.exists() {
                continue;
            }
            std::fs::write(&path, &text)
                .with_context(|| format!("{}: cannot write {text} to {}", self.name(), path.display()))?;
        }
        Ok(())
    }
}

/// Writes to a file of version 2 that config.json names.
///
/// # Errors
/// A name that is not a file of the group; the host's error.
pub fn set_raw(folder: &Path, file: &str, text: &str) -> Result<()> {
    if file.contains('/') || !file.contains('.') {
        bail!("linux.resources.unified: {file} is not a file of a control group");
    }
    let path = folder.join(file);
    std::fs::write(&path, text).with_context(|| format!("linux.resources.unified: {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_files_in_both_versions() {
        let resources = Resources::parse(
            br#"{"memory": {"limit": 1000, "swap": 1500, "reservation": 500}, "cpu": {"shares": 1024, "quota": 5000},
            "pids": {"limit": -1}, "blockIO": {"weight": 500}}"#,
        )
        .unwrap();
        let all = all(&resources);
        let second: Vec<_> = all.iter().flat_map(Limit::unified).map(|(file, text)| format!("{file} {text}")).collect();
        let expected = [
            "memory.max 1000",
            "memory.low 500",
            "memory.swap.max 500",
            "cpu.weight 39",
            "cpu.max 5000 100000",
            "pids.max max",
            "io.weight 4950",
        ];
        assert_eq!(second, expected);
        let first: Vec<_> = all.iter().flat_map(Limit::separate).map(|(file, text)| format!("{file} {text}")).collect();
        let expected = [
            "memory.limit_in_bytes 1000",
            "memory.soft_limit_in_bytes 500",
            "memory.memsw.limit_in_bytes 1500",
            "cpu.shares 1024",
            "cpu.cfs_period_us 100000",
            "cpu.cfs_quota_us 5000",
            "pids.max max",
            "blkio.weight 500",
        ];
        assert_eq!(first, expected);
    }

    #[test]
    fn missing_limits_set_nothing() {
        assert!(all(&Resources::default()).is_empty());
        assert_eq!(Limit::Time(-1, PERIOD).unified(), [("cpu.max", "max 100000".to_owned())]);
        assert_eq!(Limit::Memory(-1).unified(), [("memory.max", "max".to_owned())]);
        let folder = tempfile::tempdir().unwrap();
        Limit::Disks(5).set_unified(folder.path()).unwrap();
        assert!(set_raw(folder.path(), "../x.y", "1").is_err());
    }
}
