//! A plan: everything that the launcher needs to know.

use std::ffi::OsString;
use std::path::PathBuf;

use lind_kernel::course::{Course, Seed};
use lind_kernel::{Allowance, Kernel};

use crate::cli::{PerfFormat, Run};
use crate::plan::step::Step;
use crate::plan::{line, live};

/// A run to launch, from the options of a line or from a sandbox.
pub struct Plan {
    /// The directory that becomes the guest's root. None for the default.
    pub root: Option<PathBuf>,
    /// The image whose entries are mounted in the root, if the root is not that directory itself.
    pub image: Option<PathBuf>,
    /// Directories of the host that are mounted in the root, and whether the guest may change them.
    pub mounted: Vec<(PathBuf, bool)>,
    /// Places in those that it may change, and cannot change all the same.
    pub unchanged: Vec<PathBuf>,
    /// The guest's paths of those that it may change.
    pub volumes: Vec<PathBuf>,
    /// The guest's directories in which a grate may show other files than the kernel sees.
    pub in_grates: Vec<PathBuf>,
    /// The variables of the environment, as options name them.
    pub env: Vec<OsString>,
    /// The guest's working directory.
    pub cwd: OsString,
    /// The host name that guests see, if not the host's own.
    pub host_name: Option<String>,
    /// The number of descriptors behind the standard ones that the program gets.
    pub preserved: u32,
    /// The limit of memory of each cage, in MiB.
    pub memory: u64,
    /// The limit of file descriptors of each cage.
    pub files: u64,
    /// Whether to refuse to run unless every wall is up.
    pub require_confinement: bool,
    /// The format of the report about calls at exit, if one is wanted.
    pub perf: Option<PerfFormat>,
    /// Whether to print the functions on the stack when a program traps.
    pub backtrace: bool,
    /// Whether to print which walls confine the guest, what is compiled, and how the program ended.
    pub verbose: bool,
    /// Directories of grates besides our own.
    pub grates: Vec<PathBuf>,
    /// A file with grates that come before those on the line.
    pub stack: Option<PathBuf>,
    /// Whether the first grate only describes what it would do.
    pub explain: bool,
    /// The first grates of the line, outermost first.
    pub line: Vec<Step>,
    /// Further grates with their options as one types them, the program and its arguments.
    pub program: Vec<OsString>,
    /// The position of the command's name in `program`, behind the grates. None if only the grates
    /// know.
    pub command: Option<usize>,
    /// Modules that are compiled meanwhile, for commands to come.
    pub ahead: Vec<PathBuf>,
    /// Limits that the host enforces on this process. The limits of grates on the line are known
    /// anyway.
    pub allowance: Allowance,
    /// The course of the run with the seed of its programs, if it is recorded or replayed.
    pub course: Option<(Course, Seed)>,
}

impl Plan {
    /// The mounted directories of the host that the guest may change.
    pub fn mounts_to_change(&self) -> impl Iterator<Item = &PathBuf> {
        self.mounted.iter().filter_map(|(place, changes)| changes.then_some(place))
    }

    /// Gives the kernel what it is to know before the first program runs.
    pub fn set_up(&self, kernel: &Kernel) {
        kernel.rules.expect(&live::names(&self.line));
        if let Some(name) = &self.host_name {
            kernel.set_host_name(name.as_bytes());
        }
        if let Some((course, seed)) = self.course {
            kernel.set_course(course, seed);
        }
        kernel.show_allowance(line::allowance(&self.line).within(self.allowance));
    }
}

impl From<Run> for Plan {
    fn from(run: Run) -> Plan {
        Plan {
            root: run.root,
            image: None,
            mounted: Vec::new(),
            unchanged: Vec::new(),
            volumes: Vec::new(),
            in_grates: Vec::new(),
            env: run.env,
            cwd: run.cwd,
            host_name: None,
            preserved: 0,
            memory: run.memory,
            files: run.files,
            require_confinement: run.require_confinement,
            perf: run.perf,
            backtrace: run.backtrace,
            verbose: run.verbose,
            grates: run.grates,
            stack: run.stack,
            explain: run.explain,
            line: Vec::new(),
            program: run.program,
            command: None,
            ahead: Vec::new(),
            allowance: Allowance::default(),
            course: None,
        }
    }
}

impl Default for Plan {
    /// The plan of a line without options, and without a program.
    fn default() -> Plan {
        Plan::from(Run::default())
    }
}
