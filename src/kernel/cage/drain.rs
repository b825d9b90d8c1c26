//! Programs that read from the command of a run by a pipe, as in `exec > >(tee log)`. The run ends
//! when the command has ended, so its readers are given time to read what is left, write it, and
//! end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::Cage;
use crate::Kernel;
use crate::fd::locks::FileId;
use crate::fd::{FileRef, Kind};

/// How long they have: others may hold the pipe open for ever.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often it is asked whether they have ended.
const AGAIN: Duration = Duration::from_millis(2);

/// The pipes among a command's standard output and error; empty for any other cage. Called before
/// the cage closes them.
pub(super) fn pipes(cage: &Cage) -> Vec<FileId> {
    if !cage.is_command {
        return Vec::new();
    }
    (1..3).filter_map(|number| pipe(&cage.fds.get(number).ok()?)).collect()
}

fn pipe(file: &FileRef) -> Option<FileId> {
    file.id().ok().filter(|_| matches!(file.kind, Kind::Pipe))
}

/// Waits until nobody reads from these pipes any more.
pub(super) fn drain(kernel: &Kernel, pipes: &[FileId]) {
    if pipes.is_empty() {
        return;
    }
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end && kernel.cages.all().iter().any(|cage| reads(cage, pipes)) {
        std::thread::sleep(AGAIN);
    }
}

/// Whether a cage has one of them open for reading, and so may have something of it to write.
fn reads(cage: &Arc<Cage>, pipes: &[FileId]) -> bool {
    let open = |number| cage.fds.get(number).ok();
    let is_reader = |file: &FileRef| {
        rustix::fs::fcntl_getfl(file.host()).is_ok_and(|flags| flags & OFlags::RWMODE == OFlags::RDONLY)
    };
    !cage.is_dead()
        && !cage.is_stopped()
        && cage
            .fds
            .open_in(0, u32::MAX)
            .into_iter()
            .filter_map(open)
            .any(|file| pipe(&file).is_some_and(|id| pipes.contains(&id)) && is_reader(&file))
}
