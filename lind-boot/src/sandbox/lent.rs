//! The states of overlays that a session lends: the pipes to the grate that has each.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;

use anyhow::{Context, Result};
use lind_engine::code::manifest::Use;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::plan::step::{Setting, Step, Value};
use crate::plan::volume::Volume;

/// An overlay of a session.
pub struct Lent {
    /// The directory of the host, and the guest's path of it.
    pub host: PathBuf,
    /// The guest's path of it.
    pub guest: PathBuf,
    /// The state, as commands name it.
    pub state: OsString,
    requests: File,
    answers: File,
    /// The grate's ends, until it has them.
    theirs: Option<[OwnedFd; 2]>,
}

impl Lent {
    /// The overlay of a volume. None if it has none.
    ///
    /// # Errors
    /// When no pipe can be made.
    pub fn of(volume: &Volume) -> Result<Option<Lent>> {
        let Some(state) = &volume.overlay else { return Ok(None) };
        let pipe = || pipe_with(PipeFlags::CLOEXEC).context("cannot make a pipe for an overlay");
        let ((for_grate, requests), (answers, of_grate)) = (pipe()?, pipe()?);
        rustix::io::ioctl_fionbio(&answers, true)?;
        let mut name = state.word();
        if let Some(head) = &state.head {
            name.push(":");
            name.push(head);
        }
        Ok(Some(Lent {
            host: volume.host.clone(),
            guest: volume.guest.clone(),
            state: name,
            requests: requests.into(),
            answers: answers.into(),
            theirs: Some([for_grate, of_grate]),
        }))
    }

    /// Gives the overlay grates of a line their ends of the pipes.
    pub fn connect(all: &[Lent], line: &mut [Step]) {
        let grates = line.iter_mut().filter(|step| step.grate == "overlay_grate");
        for (step, lent) in grates.zip(all) {
            let Some(theirs) = &lent.theirs else { continue };
            let [requests, answers] = theirs.each_ref().map(|file| format!("/proc/self/fd/{}", file.as_raw_fd()));
            step.settings.push(Setting::new("--requests", Value::host(requests, Use::Reads)));
            step.settings.push(Setting::new("--answers", Value::host(answers, Use::Writes)));
        }
    }

    /// Closes the grate's ends, once it has them.
    pub fn begins(&mut self) {
        self.theirs = None;
    }

    /// Sends a line. The pipe has room for it: the grate answers each before the next is sent.
    ///
    /// # Errors
    /// When the grate has ended.
    pub fn send(&self, line: &str) -> rustix::io::Result<()> {
        rustix::io::write(&self.requests, line.as_bytes()).map(drop)
    }

    /// Reads what has come.
    ///
    /// # Errors
    /// When the grate has ended.
    pub fn receive(&self, to: &mut Vec<u8>) -> rustix::io::Result<()> {
        let mut piece = [0; 4096];
        match rustix::io::read(&self.answers, &mut piece) {
            Ok(0) => Err(rustix::io::Errno::PIPE),
            Ok(count) => {
                to.extend(piece.get(..count).unwrap_or_default());
                Ok(())
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

impl AsFd for Lent {
    /// Readable when the grate has answered.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.answers.as_fd()
    }
}
