//! `exec`: a process in a container. It is represented by a process of the host, which ends as it
//! does, and with which it ends.

use std::io::{BufRead as _, BufReader};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::process::{Child, Command};

use anyhow::{Context as _, Result, bail, ensure};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::Value;

use super::Context;
use super::start::in_memory;
use crate::cgroup::Group;
use crate::cli::Exec;
use crate::config::{Capabilities, Process};
use crate::console::Console;
use crate::mapping;
use crate::program::View;
use crate::runner;
use crate::state::{Container, Status, write_pid};

/// Runs a process. If it is detached, returns 0 once it runs; else this process becomes the one
/// that represents it.
///
/// # Errors
/// When there is no such container, or the program cannot be run.
pub fn exec(context: &Context<'_>, exec: &Exec) -> Result<u8> {
    let container = context.states.find(&exec.id)?;
    match container.status() {
        Status::Created | Status::Running => {}
        Status::Paused if exec.ignore_paused => {}
        Status::Paused => bail!("cannot exec in a paused container; resume it, or use --ignore-paused"),
        status => bail!("cannot exec in a {} container: container not running", status.word()),
    }
    ensure!(
        !container.facts.is_pod,
        "cannot exec in the sandbox of a pod, which has no programs; name one of its containers"
    );
    let process = process(&container, exec)?;
    let mut warnings = Vec::new();
    mapping::process::warn(&process, &mut warnings);
    warnings.iter().for_each(|warning| context.log.warn(warning));
    let view = View { root: &container.facts.rootfs, mounts: container.facts.mounts.clone() };
    view.check(&process.args, &process.env, &process.cwd)?;
    // It stays open in the process that is started.
    let described = in_memory(mapping::process::map(&process, &view)?.to_string().as_bytes())?;
    let path = format!("/proc/self/fd/{}", described.as_raw_fd());
    let group = container.facts.group.clone().unwrap_or_default();
    if exec.detach {
        detached(exec, &container, &process, (Path::new(&path), &group))
    } else {
        in_front(exec, &container, &process, (Path::new(&path), &group))
    }
}

/// Becomes the process that represents it.
fn in_front(exec: &Exec, container: &Container, process: &Process, (path, group): (&Path, &Group)) -> Result<u8> {
    let mut command = runner::process(&container.socket(), path, None)?;
    if let Some(socket) = &exec.console_socket {
        let console = Console::open(process.console_size.as_ref())?;
        give(&mut command, &console)?;
        console.send(socket)?;
    }
    let pid = std::process::id().cast_signed();
    group.add(pid)?;
    if let Some(file) = &exec.pid_file {
        write_pid(file, pid)?;
    }
    runner::become_line(command)
}

/// Starts the process that represents it, and waits until it runs.
fn detached(exec: &Exec, container: &Container, process: &Process, (path, group): (&Path, &Group)) -> Result<u8> {
    let (news, theirs) = std::io::pipe()?;
    fcntl_setfd(&theirs, FdFlags::empty())?;
    let news_path = format!("/proc/self/fd/{}", theirs.as_raw_fd());
    let mut command = runner::process(&container.socket(), path, Some(Path::new(&news_path)))?;
    ensure!(
        process.terminal == exec.console_socket.is_some(),
        "a process with a terminal needs a --console-socket, and one without has none"
    );
    let console = exec.console_socket.is_some().then(|| Console::open(process.console_size.as_ref())).transpose()?;
    if let Some(console) = &console {
        give(&mut command, console)?;
    }
    let mut child = command.spawn().context("cannot start lind-boot")?;
    // The command holds copies of what the child has got.
    drop((command, theirs));
    let ready = || -> Result<()> {
        let pid = child.id().cast_signed();
        group.add(pid)?;
        if let (Some(console), Some(socket)) = (&console, &exec.console_socket) {
            console.send(socket)?;
        }
        let mut line = String::new();
        let _ = BufReader::new(news).read_line(&mut line);
        let said: Value = serde_json::from_str(&line).unwrap_or_default();
        let why = said["error"].as_str().unwrap_or("the process that represents it has ended");
        ensure!(said["runs"].as_bool() == Some(true), "exec failed: {why}");
        exec.pid_file.as_ref().map_or(Ok(()), |file| write_pid(file, pid))
    };
    ready().inspect_err(|_| end(&mut child))?;
    Ok(0)
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Makes a terminal the standard files of a command.
fn give(command: &mut Command, console: &Console) -> Result<()> {
    let copy = || -> std::io::Result<OwnedFd> { console.slave.try_clone() };
    command.stdin(copy()?).stdout(copy()?).stderr(copy()?);
    Ok(())
}

/// The process to run: that of the file, or the container's with what the options say.
fn process(container: &Container, exec: &Exec) -> Result<Process> {
    if let Some(path) = &exec.process {
        let text = std::fs::read(path).with_context(|| format!("--process {}", path.display()))?;
        let process = Process::parse(&text).with_context(|| format!("--process {}", path.display()))?;
        return Ok(Process { terminal: process.terminal || exec.tty, ..process });
    }
    ensure!(!exec.command.is_empty(), "exec: has no command; name one, or a file with --process");
    let own = &container.facts.process;
    let words = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
    };
    let mut env = words(&own["env"]);
    for text in &exec.env {
        let name = text.split('=').next().unwrap_or_default();
        env.retain(|known| known.split('=').next() != Some(name));
        env.push(text.clone());
    }
    let number = |key: &str| own["identity"][key].as_u64().and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    let (mut uid, mut gid) = (number("uid"), number("gid"));
    if let Some(user) = &exec.user {
        let (user, group) = user.split_once(':').map_or((user.as_str(), None), |(user, group)| (user, Some(group)));
        uid = user.parse().with_context(|| format!("--user {user}: expected numbers, as in 1000:1000"))?;
        gid = group
            .map_or(Ok(gid), str::parse)
            .with_context(|| format!("--user {user}: expected numbers, as in 1000:1000"))?;
    }
    let mut process = Process {
        args: exec.command.clone(),
        env,
        cwd: exec.cwd.clone().or_else(|| own["cwd"].as_str().map(str::to_owned)).unwrap_or_else(|| "/".to_owned()),
        terminal: exec.tty,
        no_new_privileges: exec.no_new_privs || own["identity"]["no_new_privileges"].as_bool() == Some(true),
        ..Process::default()
    };
    (process.user.uid, process.user.gid) = (uid, gid);
    process.user.umask = Some(number("umask"));
    process.user.additional_gids = exec.additional_gids.clone();
    if let Some(set) = own["identity"]["capabilities"].as_u64() {
        let with = |set: u64| mapping::capabilities::of_set(set).chain(exec.cap.iter().cloned()).collect();
        let ambient = own["identity"]["ambient"].as_u64().unwrap_or(0);
        process.capabilities =
            Some(Capabilities { bounding: with(set), ambient: with(ambient), ..Capabilities::default() });
    }
    Ok(process)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::tests::facts;
    use serde_json::json;

    #[test]
    fn a_command_is_like_the_containers_process() {
        let words = ["lind-oci", "exec", "-e", "A=2", "-u", "5", "--cwd", "/w", "id", "b", "-c"].map(Into::into);
        let crate::cli::Command::Exec(exec) = crate::cli::parse(&words).unwrap().0.command else { panic!() };
        let identity =
            json!({"uid": 1, "gid": 2, "umask": 18, "capabilities": 33, "ambient": 1, "no_new_privileges": true});
        let own = json!({"argv": ["a"], "env": ["A=1", "B=1"], "cwd": "/", "identity": identity});
        let folder = tempfile::tempdir().unwrap();
        let global = crate::cli::Global { root: Some(folder.path().into()), ..Default::default() };
        let facts = crate::state::Facts { process: own, ..facts("id") };
        let container = crate::state::States::of(&global).make(facts).unwrap();
        let process = process(&container, &exec).unwrap();
        assert_eq!((process.args, process.env), (vec!["b".into(), "-c".into()], vec!["B=1".into(), "A=2".into()]));
        assert_eq!((process.user.uid, process.user.gid, process.cwd.as_str()), (5, 2, "/w"));
        let sets = process.capabilities.unwrap();
        assert_eq!(
            (sets.bounding, sets.ambient),
            (vec!["CAP_CHOWN".into(), "CAP_KILL".into()], vec!["CAP_CHOWN".into()])
        );
        assert!(process.no_new_privileges);
    }
}
