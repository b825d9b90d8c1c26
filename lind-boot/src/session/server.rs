//! The server of a session: a thread of the runner that talks to front ends.
//!
//! It shares the descriptor table of the cages, because it passes files to them, and runs behind
//! the walls: the socket was created before. Its input comes from the user alone; of the commands
//! it only gets news, through the first program.

mod clients;
mod container;
mod denials;
mod ending;
mod follow;
mod jobs;
mod news;
mod policy;
mod questions;
mod requests;
mod second;
mod states;
mod stats;

use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lind_abi::CageId;
use lind_engine::code::progress;
use lind_kernel::Kernel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::commands::{Command, Commands};
use super::orders::Orders;
use super::parent::Parent;
use crate::launch::denials::Denials;
use crate::sandbox::{Lent, Surroundings};
use clients::Client;
pub use container::Held;
use jobs::Helper;
use states::Loan;
pub use stats::Meter;

/// The stack of the thread, in bytes.
const STACK: usize = 512 << 10;

/// The description of a session.
pub struct About {
    /// Its name.
    pub name: String,
    /// The time without commands after which it ends.
    pub idle: Option<Duration>,
    /// How long a call waits for an answer before it is denied.
    pub ask: Option<Duration>,
    /// The surroundings of commands.
    pub surroundings: Surroundings,
    /// Reports the denials of commands.
    pub denials: Arc<Denials>,
    /// The amounts that the session uses.
    pub meter: Meter,
    /// Its overlays.
    pub lent: Vec<Lent>,
    /// The pipe to the process that waits for it to be ready.
    pub ready: Option<File>,
    /// The process that it ends with.
    pub parent: Option<Parent>,
    /// The process of a container.
    pub held: Option<Held>,
}

/// The server.
pub struct Server {
    kernel: Arc<Kernel>,
    listener: UnixListener,
    orders: Orders,
    about: About,
    commands: Commands,
    clients: BTreeMap<u64, Client>,
    /// The programs that serve requests for files.
    helpers: BTreeMap<u32, Helper>,
    /// The states of overlays.
    states: Vec<Loan>,
    /// The number of the last client.
    last: u64,
    /// The first program.
    first: Option<CageId>,
    began: Instant,
    /// When the last command ended.
    unused: Instant,
    /// Whether memory that only commands need has been released.
    quiet: bool,
    /// The time at which commands that are left are killed, once the session is ending.
    ending: Option<Instant>,
    /// Whether the first program was asked to end.
    closed: bool,
}

/// The sources of events for the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Source {
    Listener,
    Orders,
    /// The process that the session ends with.
    Parent,
    /// Denials that clients wait for.
    Denials,
    Client(u64),
    /// The terminal of a command.
    Terminal(u32),
    /// A program that wants what is typed there.
    Keys(u32),
    /// A pipe of a command.
    Pipes(u32),
    /// A program that serves requests for files.
    Helper(u32),
    /// Calls that wait, for clients that follow them.
    Questions,
    /// The grate of an overlay.
    Overlay(usize),
}

impl Server {
    /// A server that does not run yet.
    pub fn new(kernel: &Arc<Kernel>, listener: UnixListener, orders: Orders, mut about: About) -> Server {
        Server {
            states: about.lent.drain(..).map(Loan::new).collect(),
            commands: Commands::new(kernel),
            kernel: Arc::clone(kernel),
            listener,
            orders,
            about,
            clients: BTreeMap::new(),
            helpers: BTreeMap::new(),
            last: 0,
            first: None,
            began: Instant::now(),
            unused: Instant::now(),
            quiet: false,
            ending: None,
            closed: false,
        }
    }

    /// Starts the server on a thread of its own.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(mut self) -> Result<()> {
        self.about.denials.keep().context("cannot make an event file")?;
        self.about.denials.listen(&self.kernel);
        if let Some(longest) = self.about.ask {
            self.about.denials.hold(&self.kernel, &self.about.name, longest).context("cannot make an event file")?;
        }
        let denials = Arc::clone(&self.about.denials);
        progress::show_also(Box::new(move |line| denials.explain_wait(line)));
        let thread = std::thread::Builder::new().name("session".into()).stack_size(STACK);
        let serve = move || {
            while self.turn() {}
            // Grates may still be saving state, so the connections stay open: a client that waits
            // for the end of its connection waits for the end of the process.
            loop {
                std::thread::park();
            }
        };
        thread.spawn(serve).map(drop).context("cannot start the session's thread (check `ulimit -u`)")
    }

    /// Waits for an event, and handles it. False when the first program has ended, and with it the
    /// session.
    fn turn(&mut self) -> bool {
        for (source, ready) in self.wait() {
            match source {
                Source::Listener => self.accept(),
                Source::Orders => {
                    self.orders.flush();
                    loop {
                        match self.orders.news() {
                            Ok(Some(news)) => self.hear(news),
                            Ok(None) => break,
                            Err(_) => return false,
                        }
                    }
                }
                Source::Parent => self.parent_ended(),
                // Followers get the news below.
                Source::Denials => {}
                Source::Client(number) => self.attend(number, ready),
                Source::Terminal(id) => self.relay(id),
                Source::Keys(id) => self.ask_for_keys(id),
                Source::Pipes(id) => self.pump(id),
                Source::Helper(id) => self.hear_helper(id),
                // Followers get the news below.
                Source::Questions => {}
                Source::Overlay(at) => self.hear_overlay(at),
            }
        }
        self.tell_keys();
        self.follow_all();
        self.tell_denials();
        self.tell_questions();
        if self.about.surroundings.rules.next_end().is_some_and(|end| end <= Instant::now()) {
            self.expire_rules();
        }
        self.commands.end_late_ones();
        self.end_if_unused();
        if self.next_quiet().is_some_and(|quiet| quiet <= Instant::now()) {
            self.keep_little();
        }
        self.go_on_ending();
        true
    }

    /// Waits until something can be read, or can take bytes that wait.
    fn wait(&self) -> Vec<(Source, PollFlags)> {
        let idle = self.about.idle.filter(|_| self.is_unused()).and_then(|idle| self.unused.checked_add(idle));
        let rules = self.about.surroundings.rules.next_end();
        let next = [self.commands.next_end(), self.ending, idle, self.next_quiet(), rules];
        let next = next.into_iter().flatten().min();
        let left = next.map(|next| next.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let sources = self.sources();
        let mut files: Vec<_> =
            sources.iter().map(|(_, file, flags)| PollFd::from_borrowed_fd(*file, *flags)).collect();
        if poll(&mut files, left.as_ref()).is_err() {
            return Vec::new();
        }
        let ready = sources.iter().zip(&files).map(|((source, ..), file)| (*source, file.revents()));
        ready.filter(|(_, ready)| !ready.is_empty()).collect()
    }

    /// All sources, with the events to wait for. Output that a client has not read stays in the
    /// terminal or the pipe, and the command blocks then. Input that a command has not read stays
    /// in the socket.
    fn sources(&self) -> Vec<(Source, BorrowedFd<'_>, PollFlags)> {
        let room = |waits: bool| if waits { PollFlags::OUT } else { PollFlags::empty() };
        let reads = |takes: bool| if takes { PollFlags::IN } else { PollFlags::empty() };
        let mut all = vec![
            (Source::Listener, self.listener.as_fd(), PollFlags::IN),
            (Source::Orders, self.orders.as_fd(), PollFlags::IN | room(self.orders.waits())),
        ];
        all.extend(self.about.parent.iter().map(|parent| (Source::Parent, parent.as_fd(), PollFlags::IN)));
        let watched = self.clients.values().any(|client| client.watches.is_some());
        let denials = self.about.denials.kept().filter(|_| watched);
        all.extend(denials.map(|kept| (Source::Denials, kept.as_fd(), PollFlags::IN)));
        let asked = self.clients.values().any(|client| client.asked.is_some());
        let questions = self.about.denials.questions().filter(|_| asked);
        all.extend(questions.map(|questions| (Source::Questions, questions.as_fd(), PollFlags::IN)));
        let mut full = Vec::new();
        for (id, command) in self.commands.all() {
            let space = self.space(id, command);
            if let Some(terminal) = &command.terminal {
                full.extend(command.client.filter(|_| terminal.is_full()));
                let flags = reads(space > 0) | room(terminal.waits());
                all.push((Source::Terminal(id), terminal.as_fd(), flags));
                let asks = command.events && command.output.is_none();
                all.extend(terminal.wanted().filter(|_| asks).map(|keys| (Source::Keys(id), keys, PollFlags::IN)));
            }
            all.extend(command.pipes.waits().map(|input| (Source::Pipes(id), input, PollFlags::OUT)));
            // A pipe that nobody writes to any more is always ready.
            let outs = command.pipes.outs().filter(|_| space > 0);
            all.extend(outs.map(|out| (Source::Pipes(id), out, PollFlags::IN)));
        }
        for (&number, client) in &self.clients {
            let followed = client.follows.as_ref().map(|follow| follow.id);
            let full = full.contains(&number)
                || followed.is_some_and(|id| self.commands.any(id).is_some_and(Command::is_full));
            let helper = client.job.and_then(|job| self.helpers.get(&job));
            let full = full || helper.is_some_and(|helper| helper.is_busy());
            let takes = client.feeds.is_none() && !client.waits && !full;
            let flags = reads(takes) | room(!client.outgoing.is_empty());
            all.push((Source::Client(number), client.socket.as_fd(), flags));
        }
        let states = self.states.iter().enumerate().filter(|(_, loan)| Server::listens_to(loan));
        all.extend(states.map(|(at, loan)| (Source::Overlay(at), loan.lent.as_fd(), PollFlags::IN)));
        for (&id, helper) in &self.helpers {
            let flags = reads(self.has_room(helper)) | room(helper.channel.waits());
            all.push((Source::Helper(id), helper.channel.as_fd(), flags));
        }
        all
    }
}
