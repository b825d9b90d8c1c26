//! The trees that the kernel itself serves: /proc, /dev and /sys.
//!
//! The host's own show the host's processes, so nothing of them is shown. A tree is a table of
//! [`Entry`]; some directories (processes, descriptors, terminals, shared memory) get theirs from
//! the kernel's state. A [`Place`] is the way from the top of a tree down to a node, so that `..`
//! needs no names. How paths lead in and out is [`walk`]'s matter.
//!
//! A cage sees itself and its descendants; every look at a process checks that again, so a
//! directory that stays open shows no more to a process that inherits it.

mod cgroup;
mod dev;
mod fdinfo;
mod ipc;
mod list;
mod mappings;
mod mounts;
mod namespaces;
mod net;
mod open;
mod proc;
mod process;
mod setting;
pub(crate) mod shared;
mod stat;
mod sys;
mod sysctl;
mod system;
#[cfg(test)]
mod tests;
mod walk;

use std::borrow::Cow;
use std::sync::Arc;

use lind_abi::{CageId, Errno, Result};

use crate::cage::signal;
use crate::cage::{Cage, Thread, capability};
use crate::call::Ctx;
use crate::fd::FileRef;
use crate::landlock::sees;
use crate::path::below_own_root;
use crate::root::Directory;

pub use cgroup::Allowance;
pub(crate) use list::list;
pub(crate) use open::{Opened, create, open, reopen};
pub(crate) use setting::{OomScore, change};
pub(crate) use stat::{access, stat, statfs, statx};
pub(crate) use walk::{Reached, may_enter, walk};

/// A name in a directory.
type Name = Cow<'static, [u8]>;

/// An entry in the table of a tree.
#[derive(Debug)]
pub struct Entry {
    name: &'static str,
    /// Permission bits.
    mode: u32,
    what: What,
}

/// The kind of a node.
#[derive(Debug)]
enum What {
    /// A directory with these in it.
    Directory(&'static [Entry]),
    /// /proc: these, and a directory for each process that may be seen.
    Processes(&'static [Entry]),
    /// /sys/devices/system/cpu: these, and a directory for each processor.
    Processors(&'static [Entry]),
    /// /proc/PID/task.
    Tasks,
    /// /proc/PID/fd.
    Descriptors,
    /// /proc/PID/fdinfo.
    DescriptorInfos,
    /// /dev/pts.
    Terminals,
    /// /dev/shm.
    Shared,
    /// A file whose text is made when it is opened.
    Text(fn(&Subject<'_>) -> Result<Vec<u8>>),
    /// The same, which may be written as well.
    Setting(fn(&Subject<'_>) -> Result<Vec<u8>>, fn(&Subject<'_>, &[u8]) -> Result<()>),
    /// A symbolic link that leads where its text says.
    Link(fn(&Subject<'_>) -> Result<Vec<u8>>),
    /// /proc/PID/cwd: leads to the directory itself, whatever its name is by now.
    Cwd,
    /// /proc/PID/root.
    Root,
    /// /proc/PID/fd/N: leads to the open file.
    Descriptor,
    /// A device node of the host's, by its place in the list of them.
    Device(usize),
    /// /dev/tty: the terminal of the caller's session.
    Controlling,
    /// /dev/console: the terminal that was handed in, if one was.
    Console,
    /// /dev/ptmx.
    Multiplexer,
    /// /dev/pts/N.
    Terminal,
    /// /dev/shm/NAME.
    Memory,
}

/// A node: its entry, and its subject.
#[derive(Clone, Debug)]
struct Node {
    entry: &'static Entry,
    name: Name,
    /// The process it is about, if any.
    process: Option<CageId>,
    /// The thread of that process.
    thread: Option<u32>,
    /// The descriptor or terminal.
    number: u32,
}

impl Node {
    fn fixed(entry: &'static Entry) -> Node {
        Node { entry, name: Cow::Borrowed(entry.name.as_bytes()), process: None, thread: None, number: 0 }
    }

    /// One below it, about the same process and thread.
    fn below(&self, entry: &'static Entry, name: Name) -> Node {
        Node { entry, name, process: self.process, thread: self.thread, number: self.number }
    }

    /// Whether it shows what a process has, rather than what is known of it.
    fn is_inside(&self) -> bool {
        const TEXTS: [&str; 9] =
            ["exe", "maps", "smaps", "smaps_rollup", "timerslack_ns", "coredump_filter", "oom_score_adj", "ipc", "uts"];
        let private = self.entry.mode & 0o077 == 0;
        self.process.is_some()
            && (private
                || matches!(self.entry.what, What::Cwd | What::Root | What::DescriptorInfos)
                || TEXTS.contains(&self.entry.name))
    }

    fn is_link(&self) -> bool {
        matches!(self.entry.what, What::Link(_) | What::Cwd | What::Root | What::Descriptor)
    }

    fn is_directory(&self) -> bool {
        use What::*;
        matches!(
            self.entry.what,
            Directory(_) | Processes(_) | Processors(_) | Tasks | Descriptors | DescriptorInfos | Terminals | Shared
        )
    }
}

/// The subject of a text.
pub(super) struct Subject<'a> {
    cx: &'a Ctx<'a>,
    cage: Option<Arc<Cage>>,
    thread: Option<Arc<Thread>>,
    number: u32,
}

impl Subject<'_> {
    /// The process, for nodes that are about one.
    fn cage(&self) -> Result<&Arc<Cage>> {
        self.cage.as_ref().ok_or(Errno::ENOENT)
    }

    /// The process, if it has not ended: a zombie has a name and a state, and no directory, program
    /// or memory.
    fn living(&self) -> Result<&Arc<Cage>> {
        self.cage().and_then(|cage| if cage.is_dead() { Err(Errno::ENOENT) } else { Ok(cage) })
    }
}

/// A node and the way to it from the top of its tree.
#[derive(Clone, Debug)]
pub struct Place(Vec<Node>);

impl Place {
    fn top(entry: &'static Entry) -> Place {
        Place(vec![Node::fixed(entry)])
    }

    /// Whether it is /dev.
    fn is_dev(&self) -> bool {
        self.0.len() == 1 && std::ptr::eq(self.node().entry, &raw const dev::TOP)
    }

    fn node(&self) -> &Node {
        self.0.last().expect("a place begins with the top of its tree")
    }

    /// Whether other places can be in it.
    pub fn is_directory(&self) -> bool {
        self.node().is_directory()
    }

    /// Whether it is a symbolic link.
    pub fn is_link(&self) -> bool {
        self.node().is_link()
    }

    /// Its path, from the root.
    pub fn path(&self) -> Vec<u8> {
        self.0.iter().flat_map(|node| [b"/", &*node.name].concat()).collect()
    }

    /// Whether what is written to it changes something.
    pub(crate) fn is_setting(&self) -> bool {
        matches!(self.node().entry.what, What::Setting(..))
    }

    /// Whether it is a list of mounts, for whose changes programs wait.
    pub(crate) fn lists_mounts(&self) -> bool {
        matches!(self.node().entry.name, "mounts" | "mountinfo") && matches!(self.node().entry.what, What::Text(_))
    }

    /// The process whose directory this is: /proc/PID itself, not an entry in it.
    pub(crate) fn process(&self) -> Option<CageId> {
        let node = self.node();
        node.process.filter(|_| std::ptr::eq(node.entry, &proc::PROCESS))
    }

    fn above(&self) -> Option<Place> {
        (self.0.len() > 1).then(|| Place(self.0[..self.0.len() - 1].to_vec()))
    }

    fn with(&self, node: Node) -> Place {
        Place([&self.0[..], &[node]].concat())
    }

    /// Whom it is about.
    ///
    /// # Errors
    /// ENOENT for a process or thread that is gone or that the caller may not see.
    fn subject<'a>(&self, cx: &'a Ctx<'a>) -> Result<Subject<'a>> {
        let node = self.node();
        let cage = node.process.map(|id| seen(cx, id).ok_or(Errno::ENOENT)).transpose()?;
        if cage.as_ref().is_some_and(|cage| node.is_inside() && !may_inspect(cx, cage)) {
            return Err(Errno::EACCES);
        }
        let thread = match (&cage, node.thread) {
            (Some(cage), Some(tid)) => Some(cage.thread(tid).ok_or(Errno::ENOENT)?),
            _ => None,
        };
        Ok(Subject { cx, cage, thread, number: node.number })
    }

    /// The text of a symbolic link.
    ///
    /// # Errors
    /// EINVAL if it is not a link; ENOENT.
    pub fn link(&self, cx: &Ctx<'_>) -> Result<Vec<u8>> {
        let text = self.text_of_link(cx)?;
        Ok(below_own_root(cx, &text)?.unwrap_or(text))
    }

    fn text_of_link(&self, cx: &Ctx<'_>) -> Result<Vec<u8>> {
        let subject = self.subject(cx)?;
        match self.node().entry.what {
            What::Link(text) => text(&subject),
            What::Cwd => {
                let cwd = subject.living()?.cwd.load();
                let path = cwd.path(&cx.kernel.root).map(std::ffi::CString::into_bytes);
                // The host marks a removed one behind its name.
                path.or_else(|_| cx.kernel.root.name_of(cwd.dir()))
            }
            What::Root => self.root(cx)?.path(&cx.kernel.root).map(std::ffi::CString::into_bytes),
            What::Descriptor => process::descriptor_link(cx, &self.descriptor(cx)?),
            _ => Err(Errno::EINVAL),
        }
    }

    /// The root directory of the process.
    fn root(&self, cx: &Ctx<'_>) -> Result<Arc<Directory>> {
        match self.subject(cx)?.living()?.root.get() {
            Some(directory) => Ok(directory),
            None => Directory::open(&cx.kernel.root, c"/").map(Arc::new),
        }
    }

    /// The open file that /proc/PID/fd/N leads to.
    fn descriptor(&self, cx: &Ctx<'_>) -> Result<FileRef> {
        let subject = self.subject(cx)?;
        let number = i32::try_from(subject.number).map_err(|_| Errno::ENOENT)?;
        subject.cage()?.fds.get(number).map_err(|_| Errno::ENOENT)
    }

    /// Finds the entry `name` of this directory.
    ///
    /// # Errors
    /// ENOENT; ENOTDIR if this is not a directory.
    fn child(&self, cx: &Ctx<'_>, name: &[u8]) -> Result<Place> {
        let node = self.node();
        // A process that is gone has an empty directory.
        let subject = self.subject(cx)?;
        let owned = || Cow::Owned(name.to_vec());
        let found = match node.entry.what {
            What::Directory(entries) => in_table(node, entries, name),
            What::Processes(entries) => in_table(node, entries, name).or_else(|| {
                let id = CageId(number(name)?);
                seen(cx, id)?;
                Some(Node { process: Some(id), ..node.below(&proc::PROCESS, owned()) })
            }),
            What::Processors(entries) => in_table(node, entries, name).or_else(|| {
                let number = number(name.strip_prefix(b"cpu")?)?;
                let known = cx.kernel.processors.list().contains(&usize::try_from(number).ok()?);
                known.then(|| Node { number, ..node.below(&sys::PROCESSOR, owned()) })
            }),
            What::Tasks => number(name).and_then(|tid| {
                subject.cage.as_ref()?.thread(tid)?;
                Some(Node { thread: Some(tid), ..node.below(&proc::TASK, owned()) })
            }),
            What::Descriptors | What::DescriptorInfos => number(name).and_then(|number| {
                let link = matches!(node.entry.what, What::Descriptors);
                subject.cage.as_ref()?.fds.get(i32::try_from(number).ok()?).ok()?;
                let entry = if link { &proc::DESCRIPTOR } else { &proc::DESCRIPTOR_INFO };
                Some(Node { number, ..node.below(entry, owned()) })
            }),
            What::Terminals if name == b"ptmx" => Some(node.below(&dev::MULTIPLEXER, owned())),
            What::Terminals => number(name)
                .filter(|number| cx.kernel.terminals.numbers().contains(number))
                .map(|number| Node { number, ..node.below(&dev::TERMINAL, owned()) }),
            What::Shared => cx.kernel.shared.get(name).map(|_| node.below(&dev::MEMORY, owned())),
            _ => return Err(Errno::ENOTDIR),
        };
        found.map(|child| self.with(child)).ok_or(Errno::ENOENT)
    }

    /// The name and the file of shared memory, where this is one.
    pub(crate) fn memory(&self, cx: &Ctx<'_>) -> Option<(&[u8], Arc<crate::fd::File>)> {
        let node = self.node();
        match node.entry.what {
            What::Memory => Some((&node.name, cx.kernel.shared.get(&node.name)?)),
            _ => None,
        }
    }

    /// Whether it is /dev/shm.
    pub(crate) fn holds_memory(&self) -> bool {
        matches!(self.node().entry.what, What::Shared)
    }
}

fn in_table(node: &Node, entries: &'static [Entry], name: &[u8]) -> Option<Node> {
    let entry = entries.iter().find(|entry| entry.name.as_bytes() == name)?;
    Some(node.below(entry, Cow::Borrowed(entry.name.as_bytes())))
}

/// A process that the caller may see: itself, a descendant, or a process in the same sandbox. The
/// latter has all the caller's grates, so neither grates nor programs beside them are seen; nor are
/// the others of lind-boot's line.
fn seen(cx: &Ctx<'_>, id: CageId) -> Option<Arc<Cage>> {
    let cage = cx.kernel.cages.get(id)?;
    let beside = || {
        let over = signal::grates_over(cx.kernel, cx.cage);
        over.iter().all(|&grate| cage.descends_from(grate)) && !crate::cage::searches(cx.kernel, &cage)
    };
    (id == cx.cage.id || cage.descends_from(cx.cage.id) || beside()).then_some(cage)
}

/// Whether the caller may look into a process that it sees. The rule is Linux's: one of its own
/// user's, that has not asked for protection (PR_SET_DUMPABLE). It may always look into its
/// descendants.
fn may_inspect(cx: &Ctx<'_>, cage: &Cage) -> bool {
    if !sees(cx.cage, cage) {
        return false;
    }
    if cage.id == cx.cage.id || cage.descends_from(cx.cage.id) {
        return true;
    }
    let own = cx.cage.settings().credentials.clone();
    let of = cage.settings();
    let same =
        of.credentials.uid.iter().all(|&id| id == own.fsuid) && of.credentials.gid.iter().all(|&id| id == own.fsgid);
    own.can(capability::SYS_PTRACE) || same && of.dumpable
}

/// A number as Linux spells it in names: no sign, no zeroes in front.
fn number(name: &[u8]) -> Option<u32> {
    let canonical = !name.is_empty() && name.iter().all(u8::is_ascii_digit) && (name == b"0" || name[0] != b'0');
    std::str::from_utf8(name).ok().filter(|_| canonical)?.parse().ok()
}

/// The tops of the trees, by their names in the root.
fn top(name: &[u8]) -> Option<Place> {
    match name {
        b"proc" => Some(Place::top(&proc::TOP)),
        b"dev" => Some(Place::top(&dev::TOP)),
        b"sys" => Some(Place::top(&sys::TOP)),
        _ => None,
    }
}
