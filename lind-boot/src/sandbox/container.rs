//! The sandbox of a container: its root and mounts come from the OCI runtime, and there are no
//! grates but those that its annotations name. The network is the one of the runner's network
//! namespace.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result};
use lind_engine::code::manifest::Use;
use lind_kernel::cage::Status;

use super::mounts::Tree;
use super::resolved::hidden;
use super::root::Maker;
use super::unchanged::Unchanged;
use super::whole::{self, Whole};
use super::{Contained, FIRST_OF_SESSION, Mounted, Sandbox, Surroundings};
use crate::cli::sandbox::{How, Network, Options};
use crate::config;
use crate::failure::Failure;
use crate::launch::Attendant;
use crate::launch::denials::Denials;
use crate::plan::container::{Container, What};
use crate::plan::policy::Policy;
use crate::plan::state::State;
use crate::plan::step::{self, Setting, Step, Value};
use crate::plan::volume::{Volume, changed};
use crate::plan::{line, live, overlaid, own_grates, relative};

/// Runs the first program of a container, which gets `preserved` descriptors behind the standard
/// ones. `attend` makes the attendant from the surroundings of its processes, and the runner ends
/// as `ended` says. `mounted` is called when all is mounted, and before anything of the host is
/// left.
///
/// # Errors
/// As for `run`.
pub fn run_container(
    container: &Container,
    preserved: u32,
    (ended, mounted): (Arc<OnceLock<Status>>, Mounted),
    attend: impl FnOnce(Surroundings, Arc<Denials>) -> Result<Attendant>,
) -> Result<Infallible, Failure> {
    let options = Options {
        hostname: container.host_name.clone(),
        grate: container.grates.clone(),
        policy: container.policy.clone(),
        network: container.policy.is_none().then_some(Network::Host),
        ..Options::default()
    };
    let mut sandbox = Sandbox::of_container(container, &options)?;
    let allowance = container.allowance.into();
    sandbox.contained = Some(Contained { files: container.files, allowance, ended, mounted });
    let surroundings = sandbox.surroundings()?;
    let denials = sandbox.denials(&options)?;
    let attend = attend(surroundings, Arc::clone(&denials))?;
    sandbox.start(&options, preserved, &denials, attend)
}

impl Sandbox {
    fn of_container(container: &Container, options: &Options) -> Result<Sandbox> {
        let image = config::root(Some(&container.root))?;
        let mut volumes = volumes(container, &image)?;
        overlaid::settle_container(&mut volumes)?;
        let may_change = changed(&volumes);
        let policy = match &container.policy {
            Some(name) => Policy::named(name, &may_change)?,
            None => Policy::default(),
        };
        let guests: Vec<PathBuf> = volumes.iter().map(|volume| volume.guest.clone()).collect();
        let policy = relative::resolved(&policy, &guests)?;
        let maker = Maker::choose(How::Bind)?;
        let unchanged = Unchanged::find([], &volumes, &[])?;
        let mut grates = line::grates(options, &policy, &volumes, (unchanged.settings(), None, None))?;
        let masked: Vec<PathBuf> = container.masked.iter().cloned().chain(hidden(&volumes)?).collect();
        if let Some(overlay) = grates.iter_mut().find(|step| step.grate == "overlay_grate") {
            let passes = whole::places(
                &image,
                container.mounts.iter().map(|mount| &mount.guest).chain(&masked).chain(&container.unchanged),
            )?;
            overlay.settings.extend(passes.into_iter().map(|path| Setting::new("--pass", Value::text(path))));
        }
        let mut own_grates = own_grates::words(&options.grate, &[])?;
        // The nearest to the programs: the profile is about these alone.
        own_grates.extend(step::words(container.seccomp.as_deref().map(profile).as_slice()));
        let whole = Whole {
            read_only: container.read_only || container.overlay.is_some() || policy.read_only,
            mounts: container.mounts.clone(),
            masked,
            unchanged: container.unchanged.clone(),
        };
        let tree =
            Tree { image, scratch: Vec::new(), tmpfs: Vec::new(), volumes, hidden: Vec::new(), whole: Some(whole) };
        Ok(Sandbox {
            tree,
            maker,
            grates: live::made_live(grates),
            own_grates,
            command: vec![FIRST_OF_SESSION[0].into()],
            workdir: "/".into(),
            unchanged: unchanged.places,
            env: Vec::new(),
            policy: container.policy.clone().unwrap_or_default(),
            learner: None,
            used: None,
            lent: Vec::new(),
            ahead: container.ahead.clone(),
            contained: None,
            course: None,
        })
    }
}

/// The grate for a seccomp profile, in which the engine has resolved what depends on capabilities.
fn profile(file: &Path) -> Step {
    let step = Step::new("seccomp_grate").with("--docker", Value::host(file, Use::Reads));
    let step = step.with("--capabilities", Value::text("none")).with("--lines", Value::text("0"));
    Step { ends: true, ..step.with("--started", Value::Flag) }
}

/// The root and the directories that are mounted in it, for the checks of what a guest may see.
fn volumes(container: &Container, root: &Path) -> Result<Vec<Volume>> {
    let overlay = container.overlay.as_ref().map(|name| State::parse(name.as_ref())).transpose()?;
    let read_only = container.read_only || overlay.is_some();
    let of_root = Volume { host: root.to_owned(), guest: "/".into(), read_only, overlay };
    let mut volumes = vec![of_root];
    for mount in &container.mounts {
        let What::Bind { source, .. } = &mount.what else { continue };
        let host = source.canonicalize().with_context(|| source.display().to_string())?;
        let (guest, read_only) = (mount.guest.clone(), mount.read_only);
        volumes.push(Volume { host, guest, read_only, overlay: None });
    }
    Ok(volumes)
}
