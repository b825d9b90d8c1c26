//! `delete`: removes all that a container has left.

use std::time::Duration;

use anyhow::{Result, bail};

use super::Context;
use super::end::end;
use crate::cli::Delete;
use crate::hooks;
use crate::state::{Container, Status};

/// How long a killed runner may take to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

/// Deletes a container.
///
/// # Errors
/// When it does not exist, or still runs.
pub fn delete(context: &Context<'_>, delete: &Delete) -> Result<()> {
    let mut container = match context.states.find(&delete.id) {
        Ok(container) => container,
        Err(error) => {
            // A crash may have left a directory without facts.
            let was_there = delete.force && context.states.remove_rest(&delete.id)?;
            return if delete.force || was_there { Ok(()) } else { Err(error) };
        }
    };
    let _lock = container.lock()?;
    container.refresh()?;
    match container.status() {
        Status::Stopped => {}
        // A process that has not begun loses nothing.
        Status::Created => {}
        _ if delete.force => {}
        status => bail!(
            "cannot delete container {} that is not stopped: {}; end it by `kill`, or use --force",
            delete.id,
            status.word()
        ),
    }
    let (hooks, state) = (container.facts.hooks.poststop.clone(), container.described(Status::Stopped).to_string());
    remove(&mut container);
    for hook in &hooks {
        if let Err(error) = hooks::run("poststop", std::slice::from_ref(hook), &state) {
            context.log.warn(&format!("{error:#}"));
        }
    }
    Ok(())
}

/// Ends what still runs of a container, and removes its control group and its files.
pub fn remove(container: &mut Container) {
    let group = container.facts.group.clone().unwrap_or_default();
    if group.is_frozen() {
        let _ = group.freeze(false);
    }
    if let Some(runner) = container.runner() {
        end(container, runner);
        runner.wait(PATIENCE);
    }
    group.kill();
    // A group of a name that is in use otherwise stays.
    let _ = group.remove();
    container.remove_files();
}
