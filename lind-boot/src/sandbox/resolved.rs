//! A sandbox from its options: what they and the policy say is checked and put together here.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use lind_engine::CodeStore;

use super::command::{Shown, command};
use super::environment::environment;
use super::learn::{Learner, Places};
use super::mounts::Tree;
use super::root::Maker;
use super::unchanged::Unchanged;
use super::{FIRST_OF_SESSION, Lent, Sandbox, Used};
use crate::cli::sandbox::Options;
use crate::plan::live;
use crate::plan::policy::Policy;
use crate::plan::volume::{self, Tmpfs, Volume, below, changed, inside};
use crate::plan::{HOME, SCRATCH, line, overlaid, own_grates, relative};
use crate::{config, private};

/// The default policy.
const POLICY: &str = "agent";

impl Sandbox {
    /// The sandbox for a command. `learn` has the file of a policy to learn, and what it is for.
    ///
    /// # Errors
    /// A mistake in the options or in the policy.
    pub(super) fn of(options: &Options, words: &[OsString], learn: Option<(PathBuf, String)>) -> Result<Sandbox> {
        let (mut volumes, preopened) = volumes(options)?;
        let name = options.policy.as_deref().unwrap_or(POLICY);
        let policy = policy(name, options, &mut volumes)?;
        let may_change = changed(&volumes);
        volume::ensure_no_links(options, &may_change)?;
        let tmpfs = options.tmpfs.iter().map(|word| Tmpfs::parse(word)).collect::<Result<Vec<_>>>()?;
        overlaid::settle(options, &tmpfs, &mut volumes)?;
        let [first, arguments @ ..] = words else { bail!("no command given (try --help)") };
        let here = std::env::current_dir().context("cannot find the current directory")?;
        let image = config::root(options.image.as_ref())
            .context("cannot find the image with the tools (name it with --image DIR)")?;
        volume::ensure_apart(&volumes)?;
        let guests: Vec<PathBuf> = volumes.iter().map(|volume| volume.guest.clone()).collect();
        let policy = relative::resolved(&policy, &guests).with_context(|| format!("--policy {name}"))?;
        let first = command(first, &here, &Shown { image: &image, workdir: options.workdir.as_deref() }, &mut volumes)?;
        let workdir = workdir(options, &here, &tmpfs, &volumes)?;
        if learn.is_some() {
            ensure_can_learn(name, &policy, &volumes)?;
        }
        let mut learner = learn.map(|(file, whom)| Learner::new(&file, whom, &may_change)).transpose()?;
        let notes = learner.as_ref().map(Learner::paths);
        let maker = Maker::choose(options.mounts.unwrap_or_default())?;
        let is_session = words.iter().eq(FIRST_OF_SESSION.iter());
        let used = (is_session || options.result.is_some())
            .then(|| Used::new(line::limited(&options.amounts, &policy)).map(Arc::new))
            .transpose()?;
        let counted = used.as_ref().map(|used| used.path());
        let unchanged = Unchanged::find(options.keep.iter().chain(&options.grates), &volumes, &tmpfs)?;
        let more = (unchanged.settings(), notes.as_ref(), counted.as_deref());
        let mut grates = line::grates(options, &policy, &volumes, more)?;
        if options.ask.is_some() || is_session {
            grates = live::made_live(grates);
        }
        let overlaid = volumes.iter().filter(|_| is_session);
        let lent: Vec<_> = overlaid.map(Lent::of).filter_map(Result::transpose).collect::<Result<_>>()?;
        Lent::connect(&lent, &mut grates);
        let own_grates = own_grates::words(&options.grate, &options.grates)?;
        if maker == Maker::Kernel {
            volume::ensure_grates_can_hold(&tmpfs, &volumes)?;
            grates.splice(0..0, line::in_memory(&tmpfs));
        }
        volumes.extend(unchanged.volumes);
        let tree = tree(resolvers(options, &policy, &image, &volumes), image, tmpfs, volumes)?;
        if let Some(learner) = &mut learner {
            learner.within(policy, places(&tree), guests);
        }
        let env = environment(options, &tree, preopened.iter(), &may_change)?;
        Ok(Sandbox {
            tree,
            maker,
            grates,
            own_grates,
            command: std::iter::once(first).chain(arguments.iter().cloned()).collect(),
            workdir,
            unchanged: unchanged.places,
            env,
            policy: name.to_owned(),
            learner,
            used,
            lent,
            ahead: Vec::new(),
            contained: None,
            course: None,
        })
    }
}

/// The volumes of the options, and the names of those that WASI programs find open.
fn volumes(options: &Options) -> Result<(Vec<Volume>, Vec<OsString>)> {
    let mut volumes = options.volume.iter().map(Volume::parse).collect::<Result<Vec<_>>>()?;
    let preopened = (1..).zip(&options.dir).map(|(number, word)| volume::preopened(word, number));
    let (more, names): (Vec<_>, Vec<_>) = preopened.collect::<Result<Vec<_>>>()?.into_iter().unzip();
    volumes.extend(more);
    Ok((volumes, names))
}

/// The policy of this name, with what the options add to it. Makes the volumes read-only if it or
/// an option says so.
fn policy(name: &str, options: &Options, volumes: &mut [Volume]) -> Result<Policy> {
    let make_read_only = |volumes: &mut [Volume]| {
        volumes.iter_mut().for_each(|volume| (volume.read_only, volume.overlay) = (true, None));
    };
    if options.read_only {
        make_read_only(volumes);
    }
    // Whether the policy makes volumes read-only does not count here: an earlier run could have
    // written the policy.
    let mut policy = Policy::named(name, &changed(volumes))?;
    options.allow_name.iter().try_for_each(|name| policy.allow_name(name)).context("--allow-name")?;
    if policy.read_only {
        make_read_only(volumes);
    }
    Ok(policy)
}

fn ensure_can_learn(name: &str, policy: &Policy, volumes: &[Volume]) -> Result<()> {
    ensure!(
        !policy.has_lists(),
        "--policy {name} has lists of what is allowed, so nothing can be learned under it; to add to it, use --learn {name} alone"
    );
    volumes.iter().try_for_each(|volume| volume.ensure_text("a learned policy"))
}

/// The directory in which the command starts.
fn workdir(options: &Options, here: &Path, tmpfs: &[Tmpfs], volumes: &[Volume]) -> Result<PathBuf> {
    let Some(workdir) = &options.workdir else {
        return Ok(inside(here, volumes).unwrap_or_else(|| home(tmpfs, volumes)));
    };
    ensure!(workdir.has_root(), "-w {}: must be a path of the guest, which begins with /", workdir.display());
    Ok(workdir.clone())
}

/// The mounts. `resolvers` is the file with the addresses of name servers.
fn tree(resolvers: Option<Volume>, image: PathBuf, tmpfs: Vec<Tmpfs>, mut volumes: Vec<Volume>) -> Result<Tree> {
    let hidden = hidden(&volumes)?;
    volumes.splice(0..0, resolvers);
    // A --tmpfs at the same path takes precedence: it has its own size.
    let asked = |path: &PathBuf| tmpfs.iter().any(|tmpfs| tmpfs.guest == *path);
    let scratch = SCRATCH.map(PathBuf::from).into_iter().filter(|path| !asked(path)).collect();
    Ok(Tree { image, scratch, tmpfs, volumes, hidden, whole: None })
}

/// The directory in which a command starts whose directory is in no volume: the home directory, or
/// the directory mounted over it.
fn home(tmpfs: &[Tmpfs], volumes: &[Volume]) -> PathBuf {
    let mounted = tmpfs.iter().map(|tmpfs| &tmpfs.guest).chain(volumes.iter().map(|volume| &volume.guest));
    let over = mounted.filter(|guest| Path::new(HOME).starts_with(guest) && *guest != Path::new(HOME));
    over.max_by_key(|guest| guest.components().count()).cloned().unwrap_or_else(|| HOME.into())
}

/// The host's file with the addresses of name servers, mounted at the path that the image has for
/// it. A volume there takes precedence.
fn resolvers(options: &Options, policy: &Policy, image: &Path, volumes: &[Volume]) -> Option<Volume> {
    const FILE: &str = "/etc/resolv.conf";
    let host = Path::new(FILE).canonicalize().ok().filter(|file| file.is_file())?;
    let free = image.join("etc/resolv.conf").is_file()
        && !volumes.iter().any(|volume| Path::new(FILE).starts_with(&volume.guest));
    let volume = Volume { host, guest: FILE.into(), read_only: true, overlay: None };
    (free && line::reaches_others(options, policy)).then_some(volume)
}

/// The directories of the guest alone, and those of the host.
fn places(tree: &Tree) -> Places {
    let private = tree.scratch.iter().cloned().chain(tree.tmpfs.iter().map(|tmpfs| tmpfs.guest.clone())).collect();
    Places { private, volumes: tree.volumes.iter().map(|volume| volume.guest.clone()).collect() }
}

/// The directories that are hidden inside volumes. A program that reaches a session's socket can
/// run commands in that session. Key and cache of compiled code are hidden in volumes that cannot
/// be changed; a volume with them that can be changed is refused later, since a guest could put a
/// key of its own there.
pub(super) fn hidden(volumes: &[Volume]) -> Result<Vec<PathBuf>> {
    let mut hidden = Vec::new();
    for folder in CodeStore::places() {
        for volume in volumes.iter().filter(|volume| volume.read_only) {
            let host = volume.host.display();
            ensure!(
                !volume.host.starts_with(&folder),
                "-v {host}: cannot be mounted, because the key or the cache of compiled code is kept there"
            );
            hidden.extend(below(&folder, &volume.host, &volume.guest));
        }
    }
    for folder in private::candidates() {
        for volume in volumes {
            ensure!(
                !volume.host.starts_with(&folder),
                "-v {}: cannot be mounted, because the sockets of sessions are kept there",
                volume.host.display()
            );
            // A directory that does not exist yet may be created while this runs.
            if let Some(guest) = below(&folder, &volume.host, &volume.guest)
                && private::make(&folder).is_ok()
            {
                hidden.push(guest);
            }
        }
    }
    Ok(hidden)
}
