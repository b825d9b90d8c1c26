//! `kill`.

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::Context;
use super::end::end;
use crate::cli::Kill;
use crate::control::Runner;
use crate::signals::KILL;
use crate::state::Status;

/// Sends a signal. The texts of errors are those that engines look for.
///
/// # Errors
/// When there is no such container, or its process has ended.
pub fn kill(context: &Context<'_>, kill: &Kill) -> Result<()> {
    let container = context.states.find(&kill.id)?;
    let Some(process) = container.runner() else {
        // With --all that is not a mistake: nothing is left to be killed.
        return if kill.all { Ok(()) } else { bail!("container not running: os: process already finished") };
    };
    let Some(pid) = Pid::from_raw(process.pid) else { bail!("no such process") };
    let status = container.status();
    if kill.signal == KILL {
        // In any state of the runner. Everything in the container ends with it.
        end(&container, process);
        let group = container.facts.group.clone().unwrap_or_default();
        if status == Status::Paused {
            let _ = group.freeze(false);
        }
        return Ok(());
    }
    if container.facts.is_pod || matches!(status, Status::Creating | Status::Created) {
        // No process inside could get the signal.
        if let Some(signal) = Signal::from_named_raw(i32::from(kill.signal)) {
            let _ = kill_process(pid, signal);
        }
        return Ok(());
    }
    let sent = Runner::of(&container.socket())
        .and_then(|runner| if kill.all { runner.signal_every(kill.signal) } else { runner.signal(kill.signal) });
    match sent {
        Err(_) if container.runner().is_none() => bail!("container not running: os: process already finished"),
        sent => sent,
    }
}
