//! `start` and `run`.

use std::fs::File;
use std::io::{Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::process::ExitStatusExt as _;

use anyhow::{Context as _, Result, bail, ensure};
use rustix::fs::{MemfdFlags, memfd_create};
use serde_json::json;

use super::create::Created;
use super::front::Front;
use super::{Context, create, delete};
use crate::cli::{Delete, Run};
use crate::config::Hook;
use crate::control::Runner;
use crate::hooks;
use crate::runner;
use crate::state::{Container, Status};

/// Lets the process of a container begin.
///
/// # Errors
/// When there is no such container, or its program cannot be run.
pub fn start(context: &Context<'_>, id: &str) -> Result<()> {
    let mut container = context.states.find(id)?;
    let _lock = container.lock()?;
    container.refresh()?;
    match container.status() {
        Status::Created => {}
        Status::Stopped => bail!("cannot start a container that has stopped: container not running"),
        status => bail!("cannot start an already {} container", status.word()),
    }
    if container.facts.is_pod {
        return started(context, container);
    }
    let state = container.described(Status::Created).to_string();
    for hook in &container.facts.hooks.start_container {
        start_container(&container, hook, &state)
            .with_context(|| format!("startContainer hook {}", hook.path.display()))?;
    }
    Runner::of(&container.socket()).and_then(|runner| runner.begin()).context("failed to start the container")?;
    started(context, container)
}

/// The steps once the process of a container has begun.
fn started(context: &Context<'_>, mut container: Container) -> Result<()> {
    container.facts.is_started = true;
    container.keep()?;
    let state = container.described(Status::Running).to_string();
    for hook in &container.facts.hooks.poststart {
        // Its failure does not end the container.
        if let Err(error) = hooks::run("poststart", std::slice::from_ref(hook), &state) {
            context.log.warn(&format!("{error:#}"));
        }
    }
    Ok(())
}

/// Runs a program of the container, with its state on standard input.
fn start_container(container: &Container, hook: &Hook, state: &str) -> Result<()> {
    let mut process = container.facts.process.clone();
    let name = hook.path.to_string_lossy();
    let arguments = hook.args.iter().skip(1);
    process["argv"] = std::iter::once(name.as_ref()).chain(arguments.map(String::as_str)).collect();
    process["env"] = json!(hook.env);
    let described = in_memory(process.to_string().as_bytes())?;
    let path = format!("/proc/self/fd/{}", described.as_raw_fd());
    let mut command = runner::process(&container.socket(), path.as_ref(), None)?;
    command.stdin(in_memory(state.as_bytes())?).stdout(std::process::Stdio::null());
    let done = command.spawn().and_then(|child| child.wait_with_output()).context("cannot be run")?;
    ensure!(done.status.success(), "failed with {}", done.status);
    Ok(())
}

/// A file in memory, which processes that are started find open.
///
/// # Errors
/// The host's error.
pub fn in_memory(bytes: &[u8]) -> Result<File> {
    let mut file = File::from(memfd_create("process", MemfdFlags::empty())?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// Creates a container, starts it, and waits for its end.
///
/// # Errors
/// As for `create` and `start`.
pub fn run(context: &Context<'_>, run: &Run) -> Result<u8> {
    let id = &run.create.id;
    let front = (!run.detach).then(Front::new).transpose()?;
    let Created { mut container, mut child, terminal } = create::create(context, &run.create, !run.detach)?;
    if let Err(error) = start(context, id) {
        delete::remove(&mut container);
        return Err(error);
    }
    let Some(front) = front else { return Ok(0) };
    let status = front.wait(&mut child, container.socket(), terminal)?;
    if !run.keep {
        delete::delete(context, &Delete { force: true, id: id.clone() })?;
    }
    let signal = status.signal().map(|signal| 128 + signal);
    Ok(status.code().or(signal).and_then(|status| u8::try_from(status).ok()).unwrap_or(u8::MAX))
}
