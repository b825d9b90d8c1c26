//! The process that a session ends with.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::process::Stdio;

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, PidfdFlags, getppid, pidfd_open};

/// A process that can be waited for. It is the process and not one of its threads: a session may be
/// started by a thread that ends before.
pub struct Parent(OwnedFd);

impl Parent {
    /// The process with this number, or the one that has started this one.
    ///
    /// # Errors
    /// When it has ended, or cannot be seen.
    pub fn find(number: Option<i32>) -> Result<Parent> {
        let started_us = || {
            getppid().context("--die-with-parent: the process that started lind-boot is not visible in this container")
        };
        let pid = match number.map(Pid::from_raw) {
            None => started_us()?,
            Some(pid) => pid.context("--die-with-parent: 0 is not the number of a process")?,
        };
        let file = pidfd_open(pid, PidfdFlags::empty())
            .with_context(|| format!("--die-with-parent: cannot watch process {}", pid.as_raw_nonzero()))?;
        // The number may be another process's by now.
        ensure!(
            number.is_some() || getppid() == Some(pid),
            "--die-with-parent: the process that started lind-boot has ended"
        );
        Ok(Parent(file))
    }

    /// Standard input for the process of the session, which finds it there.
    ///
    /// # Errors
    /// The host's error.
    pub fn hand_over(&self) -> std::io::Result<Stdio> {
        Ok(self.0.try_clone()?.into())
    }

    /// The process that [`Parent::hand_over`] has handed to this one.
    ///
    /// # Errors
    /// The host's error.
    pub fn handed() -> Result<Parent> {
        let file = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3);
        Ok(Parent(file.context("cannot set up standard input")?))
    }
}

impl AsFd for Parent {
    /// A file that can be read once the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
