//! Hooks: programs of the host that are run at points of a container's life, with its state on
//! standard input.

use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::config::Hook;
use crate::network;

/// How often the end of a hook with a time limit is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// The most bytes of a hook's messages that are reported.
const MOST: u64 = 4096;

/// Runs hooks one after the other, and stops at the first that fails.
///
/// # Errors
/// The hook that has failed, with its messages.
pub fn run(point: &str, hooks: &[Hook], state: &str) -> Result<()> {
    hooks.iter().try_for_each(|hook| one(hook, state).with_context(|| format!("{point} hook {}", hook.path.display())))
}

/// Runs hooks in the namespaces of a process.
///
/// # Errors
/// As for `run`.
pub fn run_inside(point: &str, hooks: &[Hook], state: &str, pid: i32) -> Result<()> {
    if hooks.is_empty() {
        return Ok(());
    }
    let inside = || -> Result<()> {
        // A thread that shares its working directory may not change its mounts.
        #[allow(deprecated, reason = "unsafe is meant for CLONE_FILES; this shares no descriptors")]
        rustix::thread::unshare(UnshareFlags::FS)?;
        network::join(format!("/proc/{pid}/ns/net").as_ref(), LinkNameSpaceType::Network)?;
        network::join(format!("/proc/{pid}/ns/mnt").as_ref(), LinkNameSpaceType::Mount)?;
        run(point, hooks, state)
    };
    std::thread::scope(|scope| {
        scope.spawn(inside).join().unwrap_or_else(|_| bail!("{point} hooks: a thread has failed"))
    })
}

fn one(hook: &Hook, state: &str) -> Result<()> {
    let mut command = Command::new(&hook.path);
    if let Some((name, arguments)) = hook.args.split_first() {
        command.arg0(name).args(arguments);
    }
    command.env_clear().envs(hook.env.iter().filter_map(|text| text.split_once('=')));
    // A file and not a pipe: processes that the hook leaves running may keep it.
    let mut said = File::from(memfd_create("messages", MemfdFlags::CLOEXEC)?);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(said.try_clone()?).process_group(0);
    let mut child = command.spawn().context("cannot be run")?;
    if let Some(mut input) = child.stdin.take() {
        // A hook need not read it.
        let _ = input.write_all(state.as_bytes());
    }
    let due = hook.timeout.filter(|&seconds| seconds > 0).map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let status = loop {
        if let Some(status) = if due.is_some() { child.try_wait()? } else { Some(child.wait()?) } {
            break status;
        }
        if due.is_some_and(|due| due <= Instant::now()) {
            if let Some(group) = Pid::from_raw(child.id().cast_signed()) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.wait();
            bail!("did not end within {} s", hook.timeout.unwrap_or_default());
        }
        std::thread::sleep(LOOK);
    };
    if status.success() {
        return Ok(());
    }
    let mut text = Vec::new();
    said.rewind()?;
    let _ = said.take(MOST).read_to_end(&mut text);
    bail!("failed with {status}: {}", String::from_utf8_lossy(&text).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, timeout: Option<u64>) -> Hook {
        let args = ["sh", "-c", script].map(str::to_owned).into();
        Hook { path: "/bin/sh".into(), args, env: vec!["A=b".to_owned()], timeout }
    }

    #[test]
    fn a_hook_gets_the_state_and_only_its_environment() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out");
        run("prestart", &[sh(&format!("cat > {0}; echo $A-$HOME- >> {0}", file.display()), None)], "{}").unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "{}b--\n");
    }

    #[test]
    fn a_hook_that_fails_says_why() {
        let said = |hook| format!("{:#}", run("prestart", &[hook], "{}").unwrap_err());
        let text = said(sh("echo no >&2; exit 3", None));
        assert!(text.starts_with("prestart hook /bin/sh: failed with") && text.ends_with(": no"), "{text}");
        assert!(said(sh("sleep 60", Some(1))).contains("did not end within 1 s"));
        assert!(said(Hook { path: "/no/such".into(), ..Hook::default() }).contains("cannot be run"));
    }
}
