//! `lind-boot run`: runs a command on directories of the host, and limits what it may do with them.
//! A sandbox is made of two things that exist without it: mounts that become the guest's root, and
//! grates on the line before the command.

mod command;
mod container;
mod describe;
mod environment;
mod identity;
mod image;
mod learn;
mod lent;
mod mounts;
mod notes;
mod publish;
mod record;
mod removal;
mod replay;
mod resolved;
mod root;
mod table;
mod unchanged;
mod used;
mod whole;

use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, ensure};
use lind_kernel::Allowance;
use lind_kernel::cage::{Status, is_grate_name};
use lind_kernel::course::{Course, Seed};

use crate::cli::sandbox::{Amounts, How, Options, RunOptions};
use crate::config;
use crate::failure::{self, Failure};
use crate::launch::denials::Denials;
use crate::launch::end::{AtEnd, End};
use crate::launch::{self, Attendant, Plan};
use crate::named::{For, Named};
use crate::plan::live::Live;
use crate::plan::policy::Policy;
use crate::plan::step::{self, Step};
use crate::plan::volume::{Volume, below, changed};
use crate::plan::{found, line};
use crate::private;
pub use container::run_container;
use learn::Learner;
pub use lent::Lent;
use mounts::Tree;
use publish::Listeners;
use record::Head;
pub use replay::replay;
use root::Maker;
pub use table::{remove, remove_at_end};
use unchanged::Unchanged;
pub use used::Used;

/// The host name that programs see. The image's /etc/hosts has it, so no program asks the network
/// for it.
const HOST_NAME: &str = "sandbox";

/// A sandbox with all options resolved.
struct Sandbox {
    tree: Tree,
    maker: Maker,
    /// The grates that enforce the rules, outermost first.
    grates: Vec<Step>,
    /// The words of the user's own grates, between those and the command.
    own_grates: Vec<OsString>,
    /// The command, with the guest's name of its program.
    command: Vec<OsString>,
    workdir: PathBuf,
    /// Places in the volumes that no command may change.
    unchanged: Vec<PathBuf>,
    env: Vec<OsString>,
    policy: String,
    learner: Option<Learner>,
    /// The amounts that are used of the limits, if somebody asks.
    used: Option<Arc<Used>>,
    /// The states of overlays that a session lends.
    lent: Vec<Lent>,
    /// Modules that are compiled beside the command.
    ahead: Vec<PathBuf>,
    /// If it is a container: the differences of its runner.
    contained: Option<Contained>,
    /// If it is recorded or replayed: which, and the seed.
    course: Option<(Course, Seed)>,
}

/// Waits until everything else is done that needs the mounts of a container and the host.
type Mounted = Box<dyn FnOnce() -> Result<()>>;

/// The differences of a runner for a container.
struct Contained {
    /// The most files of a program in it.
    files: u64,
    /// The limits that it sees of itself.
    allowance: Allowance,
    /// How its process has ended.
    ended: Arc<OnceLock<Status>>,
    /// Called when all is mounted.
    mounted: Mounted,
}

/// Runs a command in a sandbox, and exits with its status.
///
/// # Errors
/// When it could not be started.
pub fn run(run: &RunOptions) -> Result<Option<Infallible>, Failure> {
    run_attended(run, |_, denials, _| {
        let attend: Attendant = Box::new(move |kernel| {
            denials.listen(kernel);
            Ok(())
        });
        Ok(attend)
    })
}

/// The same with an attendant, which `attend` makes from the surroundings of the command.
///
/// # Errors
/// As for `run`.
pub fn run_attended(
    run: &RunOptions,
    attend: impl FnOnce(Surroundings, Arc<Denials>, Option<Arc<Used>>) -> Result<Attendant>,
) -> Result<Option<Infallible>, Failure> {
    run.command.first().map_or(Ok(()), ensure_program)?;
    // Before anything is opened.
    lind_kernel::fd::ensure_preserved(run.preserve_fds)
        .map_err(|why| anyhow!("--preserve-fds {}: {why}", run.preserve_fds))?;
    if run.explain {
        return explain(&run.options, &run.command, run.json).map(|()| None);
    }
    let learn = run.learn.clone().map(|file| (file, joined(&run.command)));
    let mut sandbox = Sandbox::of(&run.options, &run.command, learn)?;
    if let Some(file) = &run.record {
        sandbox.record(file)?;
    }
    let denials = sandbox.denials(&run.options)?;
    let attend = attend(sandbox.surroundings()?, Arc::clone(&denials), sandbox.used.clone())?;
    sandbox.start(&run.options, run.preserve_fds, &denials, attend).map(Some)
}

fn explain(options: &Options, words: &[OsString], json: bool) -> Result<(), Failure> {
    // Nothing runs, so no result is written.
    let options = Options { result: None, ..options.clone() };
    failure::print(&describe::described(&Sandbox::of(&options, words, None)?, &options, json))
}

/// Prints the description of a session.
///
/// # Errors
/// When the session could not be started.
pub fn explain_session(options: &Options, json: bool) -> Result<(), Failure> {
    explain(options, &FIRST_OF_SESSION.map(OsString::from), json)
}

/// Runs the first program of a session in a sandbox. `learn` has the file of a policy to learn, and
/// the name of the session for its head. `attend` makes the attendant of the session from the
/// surroundings that the sandbox gives to its commands.
///
/// # Errors
/// As for `run`.
pub fn run_session(
    options: &Options,
    learn: Option<(PathBuf, String)>,
    attend: impl FnOnce(Surroundings, Arc<Denials>, Meters) -> Result<Attendant>,
) -> Result<Infallible, Failure> {
    let mut sandbox = Sandbox::of(options, &FIRST_OF_SESSION.map(OsString::from), learn)?;
    sandbox.ahead = found::modules_of_image(&sandbox.tree.image);
    let surroundings = sandbox.surroundings()?;
    let denials = sandbox.denials(options)?;
    let meters = Meters { used: sandbox.used.clone(), lent: std::mem::take(&mut sandbox.lent) };
    let attend = attend(surroundings, Arc::clone(&denials), meters)?;
    sandbox.start(options, 0, &denials, attend)
}

/// Runs a program in a sandbox. `attend` is called behind the walls, before the program's first
/// instruction.
///
/// # Errors
/// As for `run`.
pub fn run_program(options: &Options, words: &[OsString], attend: Attendant) -> Result<Infallible, Failure> {
    let denials = Denials::new(None);
    Sandbox::of(options, words, None)?.start(options, 0, &denials, attend)
}

/// Runs one of our grates as a tool on directories of the host: for each its path, the guest's
/// path, and whether it is read-only.
///
/// # Errors
/// As for `run`.
pub fn run_tool(volumes: Vec<(PathBuf, PathBuf, bool)>, words: Vec<OsString>) -> Result<Infallible, Failure> {
    let volume = |(host, guest, read_only)| Volume { host, guest, read_only, overlay: None };
    let mut volumes: Vec<_> = volumes.into_iter().map(volume).collect();
    let unchanged = Unchanged::find([], &volumes, &[])?;
    volumes.extend(unchanged.volumes);
    let tree = Tree {
        // The grate needs no other program.
        image: private::empty()?,
        scratch: Vec::new(),
        tmpfs: Vec::new(),
        volumes,
        hidden: Vec::new(),
        whole: None,
    };
    let sandbox = Sandbox {
        tree,
        maker: Maker::choose(How::Auto)?,
        grates: Vec::new(),
        own_grates: Vec::new(),
        command: words,
        workdir: "/".into(),
        unchanged: unchanged.places,
        env: Vec::new(),
        policy: String::new(),
        learner: None,
        used: None,
        lent: Vec::new(),
        ahead: Vec::new(),
        contained: None,
        course: None,
    };
    sandbox.start(&Options::default(), 0, &Denials::new(None), Box::new(|_| Ok(())))
}

/// Mounts the root of a sandbox, and returns its path.
///
/// # Errors
/// When it cannot be mounted.
pub fn root_alone(options: &Options) -> Result<PathBuf> {
    let sandbox = Sandbox::of(options, &FIRST_OF_SESSION.map(OsString::from), None)?;
    ensure!(sandbox.maker == Maker::Host, "the host permits no mounts");
    Ok(root::build(&sandbox.tree, sandbox.maker)?.root)
}

/// The words that limit a command, in front of it.
pub fn limited(amounts: &Amounts) -> Vec<OsString> {
    let mut step = line::limits(amounts, &Policy::default());
    step.iter_mut().for_each(Step::make_plain);
    step::words(step.as_slice())
}

/// The program that starts the commands of a session, and the grate in front of a command with
/// limits of its own: only grates that are named here are opened.
const FIRST_OF_SESSION: [&str; 2] = ["session_grate", "resource_grate"];

/// The surroundings of a session's commands, unless a request asks for others.
pub struct Surroundings {
    /// Their environment.
    pub env: Vec<CString>,
    /// The directory in which they start.
    pub workdir: PathBuf,
    /// Directories of the host, and the guest's path of each. The last one for a directory counts.
    pub places: Vec<(PathBuf, PathBuf)>,
    /// The rules that can be changed.
    pub rules: Live,
    /// The limits of all of them together.
    pub allowance: Allowance,
}

/// Access to what the grates of a session count and keep.
pub struct Meters {
    /// The amounts that are used of the limits.
    pub used: Option<Arc<Used>>,
    /// The states of overlays.
    pub lent: Vec<Lent>,
}

impl Surroundings {
    /// The guest's path of a host path without links.
    pub fn inside(&self, path: &Path) -> Option<PathBuf> {
        self.places.iter().rev().find_map(|(host, guest)| below(path, host, guest))
    }
}

impl Sandbox {
    /// The guest's paths of the volumes that it may change.
    fn changed_volumes(&self) -> Vec<PathBuf> {
        let changed = self.tree.volumes.iter().filter(|volume| volume.can_be_changed());
        changed.map(|volume| volume.guest.clone()).collect()
    }

    fn surroundings(&self) -> Result<Surroundings> {
        Ok(Surroundings {
            env: config::environment(&self.env)?,
            workdir: self.workdir.clone(),
            places: self.tree.volumes.iter().map(|volume| (volume.host.clone(), volume.guest.clone())).collect(),
            rules: Live::of(&self.grates, self.changed_volumes()),
            allowance: line::allowance(&self.grates),
        })
    }

    fn start(
        self,
        options: &Options,
        preserved: u32,
        denials: &Arc<Denials>,
        attend: Attendant,
    ) -> Result<Infallible, Failure> {
        let result = options.result.as_deref().map(|file| self.output("--result", file)).transpose()?;
        let published = Listeners::bind(&options.publish)?;
        let leaving = published.leaving();
        let at_end = AtEnd {
            learn: self.learner.map(|learner| Box::new(move || learner.write()) as _),
            peaks: self.used.map(|used| Box::new(move || used.peaks()) as _),
        };
        let mut end = End::new(options.timeout, result, denials, at_end).after(move || leaving.drain());
        let Plan { mut files, mut allowance, mut require_confinement, .. } = Plan::default();
        let mut mounted: Option<Mounted> = None;
        if let Some(contained) = self.contained {
            (end, mounted) = (end.with(contained.ended), Some(contained.mounted));
            (files, allowance) = (contained.files, contained.allowance);
            // An engine reads no warnings.
            require_confinement = true;
        }
        let attend: Attendant = Box::new(move |kernel| {
            published.serve(kernel)?;
            attend(kernel)
        });
        let made = root::build(&self.tree, self.maker)?;
        mounted.map_or(Ok(()), |mounted| mounted())?;
        // Only the grate of an overlay or of a file system in memory knows the files there.
        let tmpfs = self.tree.tmpfs.iter().filter(|_| self.maker == Maker::Kernel).map(|tmpfs| &tmpfs.guest);
        let overlays = self.tree.volumes.iter().filter(|volume| volume.overlay.is_some()).map(|volume| &volume.guest);
        let mut in_grates: Vec<PathBuf> = tmpfs.chain(overlays).cloned().collect();
        // A grate of the user may show any file, anywhere.
        in_grates.extend((!options.grate.is_empty()).then(|| PathBuf::from("/")));
        let volumes =
            self.tree.volumes.iter().filter(|volume| !volume.read_only).map(|volume| volume.guest.clone()).collect();
        let mounted = self.tree.volumes.into_iter().map(|volume| (volume.host, !volume.read_only)).collect();
        let plan = Plan {
            root: Some(made.root),
            image: Some(self.tree.image),
            env: self.env,
            cwd: self.workdir.into_os_string(),
            verbose: options.verbose,
            grates: options.grates.clone(),
            mounted,
            unchanged: self.unchanged,
            volumes,
            host_name: Some(options.hostname.clone().unwrap_or_else(|| HOST_NAME.to_owned())),
            command: Some(self.own_grates.len()),
            line: self.grates,
            ahead: self.ahead,
            files,
            allowance,
            require_confinement,
            in_grates,
            course: self.course,
            preserved,
            program: self.own_grates.into_iter().chain(self.command).collect(),
            ..Plan::default()
        };
        let ended = launch::start(&plan, made.mounts, end, Some(attend));
        drop(made.keeps);
        ended
    }

    /// Has the command recorded. The grate that does so is the innermost: it sees what the command
    /// gets from all others.
    fn record(&mut self, file: &Path) -> Result<()> {
        let named = Named::find("--output", file, For::Results, &changed(&self.tree.volumes))?;
        let path = std::path::absolute(named.path())?;
        let volumes = self.tree.volumes.iter().map(|volume| (volume.host.clone(), volume.guest.clone())).collect();
        let head = Head::new(&self.tree.image, volumes)?;
        head.write(&path).with_context(|| format!("--output {}", file.display()))?;
        self.own_grates.extend(step::words(&[record::recorder(path)]));
        self.course = Some((Course::Recorded, head.seed()?));
        Ok(())
    }

    /// Opens a file that an option names for output.
    fn output(&self, option: &str, file: &Path) -> Result<File> {
        Named::find(option, file, For::Results, &changed(&self.tree.volumes))?.output()
    }

    /// The receiver of denials.
    fn denials(&self, options: &Options) -> Result<Arc<Denials>> {
        let file = options.denials.as_deref().map(|file| self.output("--denials", file)).transpose()?;
        Ok(Denials::new(file))
    }
}

fn joined(words: &[OsString]) -> String {
    words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Refuses a command that could be an option of the policy's grates or a further grate, whose
/// options name files of the host: the command may come from somebody else.
fn ensure_program(name: &OsString) -> Result<()> {
    let bytes = name.as_bytes();
    ensure!(!bytes.is_empty(), "run: the name of the command is empty");
    ensure!(
        !bytes.starts_with(b"-"),
        "{}: a command cannot begin with a dash; options come before `--`",
        name.display()
    );
    ensure!(!matches!(bytes, b"." | b".."), "run: {}: is a directory, not a program", name.display());
    ensure!(
        !bytes.starts_with(b"%") && !is_grate_name(bytes),
        "{0}: a grate cannot be the command; `lind-boot {0} ...` starts it without a sandbox",
        name.display()
    );
    Ok(())
}
