//! The server of a session: a thread of the runner that talks to front ends.
//!
//! It shares the descriptor table of the cages, because it passes files to them, and runs behind
//! the walls: the socket was created before. Its input comes from the user alone; of the commands
//! it only gets news, through the first program.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use lind_abi::{CageId, Errno};
use lind_engine::code::progress;
use lind_engine::signal::host_signals;
use lind_kernel::cage::signal::Origin;
use lind_kernel::{Kernel, fd, stdio};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};

use super::commands::Commands;
use super::control::READY;
use super::orders::{News, Order, Orders};
use super::request::{Line, Meanwhile, Request};
use super::terminal::{self, Terminal};
use super::wire::{self, Incoming, Outgoing};
use crate::launch::denials::Denials;
use crate::sandbox::Surroundings;

/// The stack of the thread, in bytes.
const STACK: usize = 512 << 10;

/// The signal that asks commands to end.
const TERM: u8 = 15;

/// The time that grates have to end after the commands.
const OF_GRATES: Duration = Duration::from_secs(5);

/// The time without commands after which memory that only commands need is released.
const QUIET: Duration = Duration::from_secs(1);

/// The description of a session.
pub struct About {
    /// Its name.
    pub name: String,
    /// The time without commands after which it ends.
    pub idle: Option<Duration>,
    /// The surroundings of commands.
    pub surroundings: Surroundings,
    /// Reports the denials of commands.
    pub denials: Arc<Denials>,
    /// The pipe to the process that waits for it to be ready.
    pub ready: Option<File>,
}

/// The server.
pub struct Server {
    kernel: Arc<Kernel>,
    listener: UnixListener,
    orders: Orders,
    about: About,
    commands: Commands,
    clients: BTreeMap<u64, Client>,
    /// The number of the last client.
    last: u64,
    /// The first program.
    first: Option<CageId>,
    began: Instant,
    /// When the last command ended.
    unused: Instant,
    /// Whether memory that only commands need has been released.
    quiet: bool,
    /// When the rest is killed, once the session is ending.
    ending: Option<Instant>,
    /// Whether the first program was told to end.
    closed: bool,
}

/// The sources that are ready.
#[derive(Default)]
struct Ready {
    listener: bool,
    orders: bool,
    clients: Vec<(u64, PollFlags)>,
    /// The commands whose terminals are ready.
    terminals: Vec<u32>,
}

struct Client {
    socket: UnixStream,
    incoming: Incoming,
    outgoing: Outgoing,
}

impl Server {
    /// A server that does not run yet.
    pub fn new(kernel: &Arc<Kernel>, listener: UnixListener, orders: Orders, about: About) -> Server {
        Server {
            commands: Commands::new(kernel),
            kernel: Arc::clone(kernel),
            listener,
            orders,
            about,
            clients: BTreeMap::new(),
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
        self.about.denials.listen(&self.kernel);
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
        let Ready { listener, orders, clients, terminals } = self.wait();
        if listener {
            self.accept();
        }
        if orders {
            self.orders.flush();
            loop {
                match self.orders.news() {
                    Ok(Some(news)) => self.hear(news),
                    Ok(None) => break,
                    Err(_) => return false,
                }
            }
        }
        for (number, ready) in clients {
            self.attend(number, ready);
        }
        for id in terminals {
            self.relay(id);
        }
        self.commands.end_late_ones();
        self.end_if_unused();
        if self.next_quiet().is_some_and(|quiet| quiet <= Instant::now()) {
            self.keep_little();
        }
        self.go_on_ending();
        true
    }

    /// Waits until the listener, the first program, a client or a terminal can be read, or can take
    /// bytes that wait.
    fn wait(&mut self) -> Ready {
        let idle = self.about.idle.filter(|_| self.is_unused()).and_then(|idle| self.unused.checked_add(idle));
        let next = [self.commands.next_end(), self.ending, idle, self.next_quiet()].into_iter().flatten().min();
        let left = next.map(|next| next.saturating_duration_since(Instant::now()) + Duration::from_millis(1));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let room = |waits: bool| if waits { PollFlags::OUT } else { PollFlags::empty() };
        let of_orders = PollFlags::IN | room(self.orders.waits());
        let mut files = vec![PollFd::new(&self.listener, PollFlags::IN), PollFd::new(&self.orders, of_orders)];
        // Output that a client has not read stays in the terminal, and the command blocks then.
        // Input that a command has not read stays in the socket.
        let (mut full, mut terminals, mut asked) = (Vec::new(), Vec::new(), Vec::new());
        for (id, client, terminal) in self.commands.with_terminals() {
            full.extend(client.filter(|_| terminal.is_full()));
            let client = client.and_then(|client| self.clients.get(&client));
            let shows = client.is_some_and(|client| client.outgoing.is_empty());
            terminals.push(id);
            asked.push((&*terminal, if shows { PollFlags::IN } else { PollFlags::empty() } | room(terminal.waits())));
        }
        for (number, client) in &self.clients {
            let takes = if full.contains(number) { PollFlags::empty() } else { PollFlags::IN };
            files.push(PollFd::new(&client.socket, takes | room(!client.outgoing.is_empty())));
        }
        files.extend(asked.iter().map(|(terminal, flags)| PollFd::new(*terminal, *flags)));
        if poll(&mut files, left.as_ref()).is_err() {
            return Ready::default();
        }
        let mut ready = files.iter().map(PollFd::revents);
        let mut next = || ready.next().unwrap_or(PollFlags::empty());
        Ready {
            listener: !next().is_empty(),
            orders: !next().is_empty(),
            clients: self
                .clients
                .keys()
                .map(|&number| (number, next()))
                .filter(|(_, ready)| !ready.is_empty())
                .collect(),
            terminals: terminals.into_iter().filter(|_| !next().is_empty()).collect(),
        }
    }

    /// Sends a client waiting bytes, and reads its messages.
    fn attend(&mut self, number: u64, ready: PollFlags) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        if ready.contains(PollFlags::OUT) && client.outgoing.flush(client.socket.as_fd()).is_err() {
            return self.lose(number);
        }
        if ready != PollFlags::OUT {
            self.listen(number);
        }
    }

    /// Copies output of a command's terminal to its client, and input to the terminal.
    fn relay(&mut self, id: u32) {
        let Some(command) = self.commands.get(id) else { return };
        let Some(terminal) = &mut command.terminal else { return };
        terminal.flush();
        let Some(number) = command.client else { return };
        if !self.clients.get(&number).is_some_and(|client| client.outgoing.is_empty()) {
            return;
        }
        let output = terminal.output();
        if !output.is_empty() {
            self.tell(number, &json!({"output": wire::word(&output)}));
        }
    }

    fn accept(&mut self) {
        let Ok((socket, _)) = self.listener.accept() else { return };
        let Ok(peer) = rustix::net::sockopt::socket_peercred(&socket) else { return };
        // Only the user can enter the directory. Commands of this session are the user to the host,
        // too, but their calls are made by this process.
        let own = peer.pid == rustix::process::getpid();
        if own || peer.uid != rustix::process::geteuid() || socket.set_nonblocking(true).is_err() {
            return;
        }
        self.last += 1;
        self.clients.insert(self.last, Client { socket, incoming: Incoming::default(), outgoing: Outgoing::default() });
    }

    /// Reads the messages of a client.
    fn listen(&mut self, number: u64) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        let there = match client.incoming.receive(client.socket.as_fd()) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return,
            there => there.unwrap_or(false),
        };
        loop {
            let Some(client) = self.clients.get_mut(&number) else { return };
            match client.incoming.next() {
                Ok(Some((message, files))) => self.handle(number, &message, files),
                Ok(None) => break,
                Err(_) => return self.lose(number),
            }
        }
        if !there {
            self.lose(number);
        }
    }

    fn lose(&mut self, number: u64) {
        self.clients.remove(&number);
        self.commands.client_gone(number);
    }

    fn tell(&mut self, number: u64, message: &Value) {
        let Some(client) = self.clients.get_mut(&number) else { return };
        if client.outgoing.send(client.socket.as_fd(), message).is_err() {
            self.lose(number);
        }
    }

    fn refuse(&mut self, number: u64, why: &anyhow::Error, status: u8) {
        self.tell(number, &json!({"error": format!("{why:#}"), "status": status}));
    }

    fn handle(&mut self, number: u64, message: &Value, files: Vec<OwnedFd>) {
        if let Some(id) = self.commands.of_client(number) {
            match (Meanwhile::read(message), self.commands.terminal_of(number)) {
                (Ok(Meanwhile::Signal(signal, origin)), _) => self.commands.signal(id, signal, origin),
                (Ok(Meanwhile::Input(bytes)), Some(terminal)) => terminal.add_input(&bytes),
                (Ok(Meanwhile::Size(size)), Some(terminal)) => terminal.resize(size),
                _ => {}
            }
            return;
        }
        match Request::read(message) {
            Err(why) => self.refuse(number, &why, crate::FAILED),
            Ok(Request::List) => {
                let list = self.described();
                self.tell(number, &list);
            }
            Ok(Request::Stop) => {
                self.tell(number, &json!({"stopping": true}));
                self.stop();
            }
            Ok(Request::Signal(signal, None)) => {
                self.commands.signal_all(signal);
                self.tell(number, &json!({"sent": true}));
            }
            Ok(Request::Signal(signal, Some(id))) if self.commands.get(id).is_some() => {
                self.commands.signal(id, signal, Origin::Process);
                self.tell(number, &json!({"sent": true}));
            }
            Ok(Request::Signal(_, Some(id))) => {
                self.refuse(number, &anyhow!("no command has the number {id}"), crate::FAILED)
            }
            Ok(Request::Exec(line)) => {
                if let Err(why) = self.order(number, &line, files) {
                    self.refuse(number, &why, crate::FAILED);
                }
            }
        }
    }

    fn order(&mut self, client: u64, line: &Line, files: Vec<OwnedFd>) -> Result<()> {
        anyhow::ensure!(self.ending.is_none(), "the session is ending");
        let first =
            self.first.and_then(|first| self.kernel.cages.get(first)).context("the session is not ready yet")?;
        let wanted = line.terminal.as_ref();
        let terminal = wanted.map(|wanted| Terminal::open(&self.kernel, wanted)).transpose()?;
        let files = terminal::files(line, terminal.as_ref(), files)?;
        let place = files[2].as_ref().and_then(|file| file.try_clone().ok());
        let mut numbers = [-1; wire::FILES];
        for (number, file) in numbers.iter_mut().zip(files) {
            let Some(file) = file else { continue };
            *number = fd::hand_over(&first, file)
                .map_err(|errno| anyhow!("too many commands at once: {errno}"))?
                .unwrap_or(-1);
        }
        self.quiet = false;
        let id = self.commands.add(client, line.shown.clone(), line.timeout, line.events);
        let place = place.map(Arc::new);
        if let Some(command) = self.commands.get(id) {
            (command.says_at, command.terminal) = (place.clone(), terminal);
        }
        let directory = directory(&self.about.surroundings, line);
        let envp = line.environment(&self.about.surroundings);
        let directory = directory.as_os_str().as_bytes();
        self.about.denials.expect(id, place);
        self.orders.give(&Order { id, files: numbers, directory, argv: &line.argv, envp: &envp });
        Ok(())
    }

    fn hear(&mut self, news: News) {
        match news {
            News::Ready { pid } => {
                self.first = Some(CageId(pid));
                self.unused = Instant::now();
                self.keep_little();
                if let Some(mut file) = self.about.ready.take() {
                    // The process that started the session may have ended.
                    let _ = file.write_all(READY.as_bytes());
                }
            }
            News::Started { id, pid } => {
                let place = self.commands.get(id).and_then(|command| command.says_at.clone());
                self.about.denials.started(id, place.map(|place| (CageId(pid), place)));
                self.commands.started(id, pid);
                let Some(command) = self.commands.get(id).filter(|command| command.events) else { return };
                if let Some(client) = command.client {
                    self.tell(client, &json!({"started": {"id": id, "pid": pid}}));
                }
            }
            News::NoDirectory { id, errno } => self.failed(id, "cannot enter the working directory", errno),
            News::NoProgram { id, errno } => {
                let name = self.commands.get(id).map(|command| command.shown.clone()).unwrap_or_default();
                self.failed(id, name.split(' ').next().unwrap_or_default(), errno);
            }
            News::Ended { pid, word } => {
                let Some(id) = self.commands.of_cage(pid) else { return };
                self.ended(id, word);
            }
            News::Stopped { pid, signal } => self.tell_of(pid, &json!({"stopped": signal})),
            News::Continued { pid } => self.tell_of(pid, &json!({"continued": true})),
        }
    }

    fn tell_of(&mut self, pid: u32, message: &Value) {
        let id = self.commands.of_cage(pid);
        if let Some(client) = id.and_then(|id| self.commands.get(id)?.client) {
            self.tell(client, message);
        }
    }

    /// Reports that a command could not be started, with the exit statuses of a shell.
    fn failed(&mut self, id: u32, what: &str, errno: i32) {
        let Some(command) = self.commands.get(id) else { return };
        let never_lived = command.pid.is_none();
        if let Some(client) = command.client.take() {
            let errno = Errno::from_raw(errno);
            let status = match errno {
                Errno::ENOENT => 127,
                Errno::EAGAIN | Errno::ENOMEM => crate::FAILED,
                _ => 126,
            };
            self.refuse(client, &anyhow!("{what}: {errno}"), status);
        }
        if never_lived {
            self.about.denials.started(id, None);
            self.commands.remove(id);
        }
    }

    fn ended(&mut self, id: u32, word: i32) {
        let Some(command) = self.commands.remove(id) else { return };
        if let Some(pid) = command.pid {
            self.about.denials.forget(pid);
        }
        self.unused = Instant::now();
        let Some(client) = command.client else { return };
        let rest = command.terminal.as_ref().map(Terminal::rest).unwrap_or_default();
        if !rest.is_empty() {
            self.tell(client, &json!({"output": wire::word(&rest)}));
        }
        let mut ended = command.ended(word);
        // The note may be about another command that runs meanwhile; the first command that ends
        // reports it.
        ended["note"] = self.kernel.set_ids.take().into();
        self.tell(client, &ended);
    }

    fn described(&self) -> Value {
        json!({
            "name": self.about.name, "pid": std::process::id(), "seconds": self.began.elapsed().as_secs_f64(),
            "commands": self.commands.described(),
        })
    }

    /// When memory is to be released.
    fn next_quiet(&self) -> Option<Instant> {
        (self.is_unused() && !self.quiet).then(|| self.unused + QUIET)
    }

    /// Releases memory while the session waits for commands.
    fn keep_little(&mut self) {
        lind_engine::let_go_of_code();
        self.quiet = true;
    }

    fn is_unused(&self) -> bool {
        self.first.is_some() && self.commands.is_empty()
    }

    fn end_if_unused(&mut self) {
        if self.is_unused() && self.about.idle.is_some_and(|idle| self.unused.elapsed() >= idle) {
            stdio::say_line("the session was unused for the time of --idle and ends");
            self.stop();
        }
    }

    /// Asks the commands to end. After a while the rest is killed.
    fn stop(&mut self) {
        if self.ending.is_none() {
            self.commands.signal_all(TERM);
            self.ending = Some(Instant::now() + host_signals::GRACE);
        }
    }

    fn go_on_ending(&mut self) {
        let Some(end) = self.ending else { return };
        let late = Instant::now() >= end;
        if late && self.closed {
            stdio::say_line("a grate did not end in time and is killed with the session");
            std::process::exit(i32::from(crate::FAILED));
        }
        if late {
            self.commands.kill_all();
        }
        if !self.closed && (late || self.commands.is_empty()) {
            self.orders.end();
            (self.closed, self.ending) = (true, Some(Instant::now() + OF_GRATES));
        }
    }
}

/// The directory in which a command starts.
fn directory<'a>(surroundings: &'a Surroundings, line: &Line) -> Cow<'a, Path> {
    if let Some(workdir) = &line.workdir {
        return Cow::Owned(workdir.clone());
    }
    let here = line.here.as_ref().and_then(|here| surroundings.inside(here));
    here.map_or(Cow::Borrowed(&surroundings.workdir), Cow::Owned)
}
