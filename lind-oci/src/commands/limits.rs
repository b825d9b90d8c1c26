//! `pause`, `resume`, `update` and `events`: what the control group does.

use std::io::Read as _;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::{Value, json};

use super::{Context, print};
use crate::cli::{Events, Update};
use crate::config::Resources;
use crate::control::Runner;
use crate::mapping;
use crate::prometheus::{self, Labels};
use crate::state::{Container, Status};

/// Freezes a container, or lets it go on.
///
/// # Errors
/// When there is no such container, or it cannot be frozen.
pub fn pause(context: &Context<'_>, id: &str, freezes: bool) -> Result<()> {
    let container = context.states.find(id)?;
    let status = container.status();
    match (status, freezes) {
        (Status::Stopped, _) => bail!("container not running"),
        (Status::Running | Status::Created, true) | (Status::Paused, false) => {}
        (status, true) => bail!("cannot pause a container that is {}", status.word()),
        (status, false) => bail!("cannot resume a container that is {}, and not paused", status.word()),
    }
    container.facts.group.clone().unwrap_or_default().freeze(freezes)
}

/// Changes the limits of a container, which it sees in its /sys/fs/cgroup.
///
/// # Errors
/// When there is no such container; a limit that the host does not take.
pub fn update(context: &Context<'_>, update: &Update) -> Result<()> {
    let mut given = resources(update)?;
    let mut container = context.states.find(&update.id)?;
    let _lock = container.lock()?;
    container.refresh()?;
    let status = container.status();
    ensure!(status != Status::Stopped, "container not running");
    let whole = container.facts.resources.clone().updated(&given);
    if given.cpu.quota.is_some() || given.cpu.period.is_some() {
        // The host takes the two together.
        (given.cpu.quota, given.cpu.period) = (whole.cpu.quota, whole.cpu.period);
    }
    container.facts.group.clone().unwrap_or_default().limit(&given, context.log)?;
    container.facts.resources = whole;
    container.keep()?;
    if container.facts.is_pod || status == Status::Creating {
        return Ok(());
    }
    let shown = mapping::shown_limits(&container.facts.resources);
    Runner::of(&container.socket())?.show_limits(&shown, status == Status::Paused)
}

fn resources(update: &Update) -> Result<Resources> {
    let mut all = match &update.resources {
        None => Resources::default(),
        Some(path) if path.as_os_str() == "-" => {
            let mut text = Vec::new();
            std::io::stdin().read_to_end(&mut text)?;
            Resources::parse(&text).context("--resources -")?
        }
        Some(path) => {
            let shown = || format!("--resources {}", path.display());
            Resources::parse(&std::fs::read(path).with_context(shown)?).with_context(shown)?
        }
    };
    all.memory.limit = update.memory.or(all.memory.limit);
    all.memory.reservation = update.memory_reservation.or(all.memory.reservation);
    all.memory.swap = update.memory_swap.or(all.memory.swap);
    all.cpu.shares = update.cpu_share.or(all.cpu.shares);
    all.cpu.quota = update.cpu_quota.or(all.cpu.quota);
    all.cpu.period = update.cpu_period.or(all.cpu.period);
    all.cpu.cpus = update.cpuset_cpus.clone().or(all.cpu.cpus);
    all.cpu.mems = update.cpuset_mems.clone().or(all.cpu.mems);
    all.pids.limit = update.pids_limit.or(all.pids.limit);
    all.block_io.weight = update.blkio_weight.or(all.block_io.weight);
    Ok(all)
}

/// Prints what a container uses: once, or again and again until it ends.
///
/// # Errors
/// When there is no such container, or it does not run.
pub fn events(context: &Context<'_>, events: &Events) -> Result<()> {
    if events.prometheus {
        return prometheus(context, events.id.as_deref());
    }
    let id = events.id.as_deref().unwrap_or_default();
    let container = running(context, id)?;
    let group = container.facts.group.clone().unwrap_or_default();
    loop {
        print(&format!("{}\n", json!({"type": "stats", "id": id, "data": group.stats()})))?;
        if events.stats || container.runner().is_none() {
            return Ok(());
        }
        std::thread::sleep(events.interval);
    }
}

fn running(context: &Context<'_>, id: &str) -> Result<Container> {
    let container = context.states.find(id)?;
    ensure!(container.status() != Status::Stopped, "container not running");
    Ok(container)
}

/// Prints what one container uses, or all that run, for Prometheus.
fn prometheus(context: &Context<'_>, id: Option<&str>) -> Result<()> {
    let all = match id {
        Some(id) => vec![running(context, id)?],
        None => context.states.all()?,
    };
    let running = all.iter().filter(|container| container.status() != Status::Stopped);
    let samples: Vec<(Labels, Value)> = running
        .map(|container| (Labels::of(&container.facts), container.facts.group.clone().unwrap_or_default().stats()))
        .collect();
    print(&prometheus::text(&samples))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_before_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r");
        std::fs::write(&path, r#"{"memory": {"limit": 1, "swap": 2}, "pids": {"limit": 3}}"#).unwrap();
        let update = Update { resources: Some(path), memory: Some(-1), cpu_share: Some(4), ..Update::default() };
        let all = resources(&update).unwrap();
        assert_eq!(
            (all.memory.limit, all.memory.swap, all.pids.limit, all.cpu.shares),
            (Some(-1), Some(2), Some(3), Some(4))
        );
    }
}
