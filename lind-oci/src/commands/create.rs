//! `create`: everything but the process of a container.

use std::io::Write as _;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::SystemTime;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Context, delete};
use crate::cgroup::{Group, Hierarchies, path_of};
use crate::cli::Create;
use crate::config::{Config, Hooks, Namespace};
use crate::console::Console;
use crate::control::listen;
use crate::hooks;
use crate::log::time;
use crate::mapping::{self, Mapped};
use crate::process::Process;
use crate::runner::Runner;
use crate::state::{Container, Facts, Status, write_pid};

/// A container that was created.
pub struct Created {
    /// The container.
    pub container: Container,
    /// Its runner.
    pub child: Child,
    /// The engine's end of its terminal, if no socket was named for it.
    pub terminal: Option<OwnedFd>,
}

/// Creates a container. Only one that is run in front may have this process's terminal.
///
/// # Errors
/// The reason why it cannot be created. Nothing of it is left then.
pub fn create(context: &Context<'_>, create: &Create, in_front: bool) -> Result<Created> {
    let bundle = create.bundle.canonicalize().with_context(|| format!("--bundle {}", create.bundle.display()))?;
    let config = Config::read(&bundle)?;
    let mapped = mapping::map(&config, &bundle)?;
    mapped.warnings.iter().for_each(|warning| context.log.warn(warning));
    let terminal = config.process.as_ref().is_some_and(|process| process.terminal);
    ensure!(
        terminal == create.console_socket.is_some() || (terminal && in_front),
        "{}",
        if terminal {
            "process.terminal: has to be sent somewhere; name a --console-socket"
        } else {
            "--console-socket: the process has no terminal (process.terminal)"
        }
    );
    let mut container = context.states.make(facts(&config, &mapped, &create.id, &bundle))?;
    let lock = container.lock()?;
    let made = make(context, create, &config, &mapped, &mut container);
    drop(lock);
    match made {
        Ok((child, terminal)) => Ok(Created { container, child, terminal }),
        Err(error) => {
            delete::remove(&mut container);
            Err(error)
        }
    }
}

fn facts(config: &Config, mapped: &Mapped, id: &str, bundle: &Path) -> Facts {
    Facts {
        id: id.to_owned(),
        bundle: bundle.to_owned(),
        rootfs: mapped.rootfs.clone(),
        created: time(SystemTime::now()),
        annotations: config.annotations.clone(),
        runner: None,
        is_created: false,
        is_started: false,
        is_pod: mapped.is_pod,
        group: None,
        resources: config.linux.resources.clone(),
        hooks: Hooks::default(),
        process: mapped.process.clone(),
        mounts: mapped.mounts.clone(),
    }
}

/// The steps of a creation. Each thing is noted before it is made.
fn make(
    context: &Context<'_>,
    create: &Create,
    config: &Config,
    mapped: &Mapped,
    container: &mut Container,
) -> Result<(Child, Option<OwnedFd>)> {
    let hierarchies = Hierarchies::of_host();
    let path = path_of(config.linux.cgroups_path.as_deref(), &create.id, context.by_systemd);
    let mut group = Group::at(&hierarchies, &path);
    // The processes in a container's group end with it.
    ensure!(!group.is_used(), "linux.cgroupsPath: there are processes in {}; choose another path", path.display());
    container.facts.group = Some(group.clone());
    container.facts.hooks = config.hooks.clone();
    container.keep()?;
    group.make(&hierarchies, &config.linux.resources, context.log)?;
    group.limit(&config.linux.resources, context.log)?;
    container.facts.group = Some(group.clone());
    if container.facts.is_pod {
        let child = Runner::sleep(&mapped.network, &mapped.settings, own_host_name(config, mapped))?;
        return Ok((finish(create, config, container, child)?, None));
    }
    let mut runner = Runner::start((&mapped.network, &mapped.settings), create.preserve_fds, &container.messages())?;
    // Until it gets its container, it ends with this program.
    note(config, container, &runner.child)?;
    let (console, listener) = (console(config)?, listen(&container.socket())?);
    let own = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let files: [BorrowedFd<'_>; 3] = console.as_ref().map_or(own, |console| [console.slave.as_fd(); 3]);
    let seccomp = mapped.seccomp.as_ref().map(|profile| container.keep_profile(profile)).transpose()?;
    runner.describe(&described(mapped, create, seccomp), &files, &listener)?;
    if let (Some(console), Some(socket)) = (&console, &create.console_socket) {
        console.send(socket)?;
    }
    runner.wait_until_mounted()?;
    run_hooks(container, runner.child.id().cast_signed())?;
    runner.wait_until_ready()?;
    let kept = console.filter(|_| create.console_socket.is_none()).map(|console| console.master);
    Ok((finish(create, config, container, runner.child)?, kept))
}

/// Notes the process of a container, and moves it into its group.
fn note(config: &Config, container: &mut Container, child: &Child) -> Result<()> {
    let pid = child.id().cast_signed();
    container.facts.runner = Process::of(pid);
    container.keep()?;
    container.facts.group.clone().unwrap_or_default().add(pid)?;
    adjust_score(config, pid)
}

/// The steps once there is the process.
fn finish(create: &Create, config: &Config, container: &mut Container, mut child: Child) -> Result<Child> {
    let pid = child.id().cast_signed();
    if let Some(mut input) = child.stdin.take() {
        // Without this byte it ends with this program.
        note(config, container, &child)?;
        input.write_all(b"\n")?;
        run_hooks(container, pid)?;
    }
    container.facts.is_created = true;
    container.keep()?;
    if let Some(file) = &create.pid_file {
        write_pid(file, pid)?;
    }
    Ok(child)
}

fn described(mapped: &Mapped, create: &Create, seccomp: Option<PathBuf>) -> Value {
    let mut container = mapped.container.clone();
    container["name"] = json!(create.id);
    container["seccomp"] = json!(seccomp);
    container
}

/// The host name that a pod's containers find in its namespace, if it gets a new one.
fn own_host_name<'a>(config: &Config, mapped: &'a Mapped) -> Option<&'a str> {
    let is_new = |namespace: &Namespace| namespace.kind == "uts" && namespace.of_others().is_none();
    mapped.container["host_name"].as_str().filter(|_| config.linux.namespaces.iter().any(is_new))
}

fn console(config: &Config) -> Result<Option<Console>> {
    let process = config.process.as_ref().filter(|process| process.terminal);
    process.map(|process| Console::open(process.console_size.as_ref())).transpose()
}

fn adjust_score(config: &Config, pid: i32) -> Result<()> {
    let Some(score) = config.process.as_ref().and_then(|process| process.oom_score_adj) else { return Ok(()) };
    let file = format!("/proc/{pid}/oom_score_adj");
    let written = std::fs::write(&file, score.to_string());
    // An ordinary user may not lower it.
    match written {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        written => written.with_context(|| format!("process.oomScoreAdj: {file}")),
    }
}

fn run_hooks(container: &Container, pid: i32) -> Result<()> {
    let all = &container.facts.hooks;
    let state = container.described(Status::Creating).to_string();
    hooks::run("prestart", &all.prestart, &state)?;
    hooks::run("createRuntime", &all.create_runtime, &state)?;
    hooks::run_inside("createContainer", &all.create_container, &state, pid)
}
