//! The end of a runner that is killed.

use std::time::Duration;

use crate::control::Runner;
use crate::mapping::has_overlay;
use crate::process::Process;
use crate::signals::KILL;
use crate::state::{Container, Status};

/// How long a runner may take to write the state of its overlay.
const PATIENCE: Duration = Duration::from_secs(10);

/// Kills the runner of a container, whatever it does. If there is an overlay, the container's
/// process is killed first, so that the runner writes the changes before it ends.
pub fn end(container: &Container, runner: Process) {
    if has_overlay(&container.facts.annotations) && container.status() == Status::Running {
        let asked = Runner::of(&container.socket()).and_then(|runner| runner.signal(KILL));
        if asked.is_ok() {
            runner.wait(PATIENCE);
        }
    }
    runner.kill();
}
