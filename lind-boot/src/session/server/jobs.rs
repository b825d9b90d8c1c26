//! Programs that serve requests for files: one for each request that is being carried out, of which
//! a few stay for the next.

use std::io::Result as IoResult;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, ensure};
use lind_abi::{CageId, Errno};
use lind_kernel::cage::signal;
use lind_kernel::fd;
use serde_json::json;

use super::Server;
use crate::session::files::job::Message as Become;
use crate::session::files::{Ask, Channel, Job};
use crate::session::orders::Order;
use crate::session::wire::Message;

/// The most that run, and that stay without a request.
const MOST: usize = 16;
const IDLE: usize = 2;

/// The words that start one.
const WORDS: [&str; 2] = ["session_grate", "files"];

/// Such a program.
pub struct Helper {
    pub channel: Channel,
    /// Its cage, once it has started.
    pub pid: Option<CageId>,
    /// Its present work.
    pub job: Option<Job>,
}

impl Helper {
    /// Whether its client's next message has to wait.
    pub fn is_busy(&self) -> bool {
        self.channel.is_full() || self.job.as_ref().is_some_and(|job| !job.takes_message())
    }
}

impl Server {
    /// Carries out a request for files.
    ///
    /// # Errors
    /// When no program can be started for it.
    pub(super) fn serve_files(&mut self, client: u64, ask: Ask, body: &[u8]) -> Result<()> {
        let id = match self.helpers.iter().find(|(_, helper)| helper.job.is_none()) {
            Some((&id, _)) => id,
            None => self.start_helper()?,
        };
        let (helper, client_of) = (self.helpers.get_mut(&id).context("gone")?, self.clients.get_mut(&client));
        if let Some(client) = client_of {
            client.job = Some(id);
        }
        helper.channel.ask(&ask);
        if ask.op.takes_bytes() {
            helper.channel.piece(body);
        }
        if ask.op.takes_bytes() && !ask.more {
            helper.channel.end_pieces(true);
        }
        helper.job = Some(Job::new(client, ask));
        Ok(())
    }

    fn start_helper(&mut self) -> Result<u32> {
        ensure!(self.ending.is_none(), "the session is ending");
        ensure!(self.helpers.len() < MOST, "more than {MOST} requests for files at once: wait for the end of one");
        let first =
            self.first.and_then(|first| self.kernel.cages.get(first)).context("the session is not ready yet")?;
        let (ours, theirs) = UnixStream::pair().context("cannot make a socket for a request")?;
        let number = fd::hand_over(&first, theirs.into())
            .map_err(|errno| anyhow!("too many commands and requests at once: {errno}"))?
            .context("cannot make a socket for a request")?;
        let id = self.commands.next_number();
        self.helpers.insert(id, Helper { channel: Channel::new(ours)?, pid: None, job: None });
        let argv = WORDS.map(|word| word.as_bytes().to_vec());
        self.quiet = false;
        self.orders.give(&Order {
            id,
            files: [number, -1, -1],
            directory: b"/",
            argv: &argv,
            envp: &[],
            identity: None,
        });
        Ok(id)
    }

    /// Handles a message of a client whose request is being carried out.
    pub(super) fn during_job(&mut self, id: u32, message: &Message) {
        let Some(helper) = self.helpers.get_mut(&id) else { return };
        let Some(job) = &mut helper.job else { return };
        if !job.ask.op.takes_bytes() {
            // Any message ends a watch.
            let client = job.client;
            self.drop_helper(id);
            if let Some(client) = self.clients.get_mut(&client) {
                client.job = None;
            }
            return self.done(client);
        }
        let abort = message.value["abort"].as_bool() == Some(true);
        helper.channel.piece(&message.body);
        job.ask.more = message.value["more"].as_bool() == Some(true) && !abort;
        if !job.ask.more {
            helper.channel.end_pieces(!abort);
        }
    }

    /// Reads the answers of a helper, and sends what waits for it.
    pub(super) fn hear_helper(&mut self, id: u32) {
        let Some(helper) = self.helpers.get_mut(&id) else { return };
        helper.channel.flush();
        let client = helper.job.as_ref().map(|job| job.client);
        let mut read = helper.channel.read();
        while read.is_ok() {
            read = match self.next_answer(id) {
                Ok(true) => Ok(()),
                // There may be room now for messages that have come, and nothing else handles them.
                Ok(false) => return client.into_iter().for_each(|client| self.read_on(client)),
                Err(error) => Err(error),
            };
        }
        self.end_helper(id, Errno::EIO);
    }

    /// Handles the next answer of a helper. False if none has come.
    fn next_answer(&mut self, id: u32) -> IoResult<bool> {
        let Some(helper) = self.helpers.get_mut(&id) else { return Ok(false) };
        let Some(report) = helper.channel.next()? else { return Ok(false) };
        let Some(job) = &mut helper.job else { return Err(std::io::ErrorKind::InvalidData.into()) };
        let client = job.client;
        match job.hear(report) {
            Become::Nothing => {}
            Become::Part(message, bytes) => {
                let Some(to) = self.clients.get_mut(&client) else { return Ok(true) };
                if to.outgoing.send_bytes(to.socket.as_fd(), message, &bytes).is_err() {
                    self.lose(client);
                }
            }
            Become::Last(before, last) => {
                helper.job = None;
                self.finish(client, id);
                before.iter().for_each(|before| self.tell(client, before));
                self.tell(client, &last);
                self.read_on(client);
            }
        }
        Ok(true)
    }

    fn finish(&mut self, client: u64, id: u32) {
        self.unused = Instant::now();
        if let Some(client) = self.clients.get_mut(&client) {
            client.job = None;
        }
        let idle = self.helpers.values().filter(|helper| helper.job.is_none()).count();
        if idle > IDLE {
            self.drop_helper(id);
        }
    }

    /// Whether requests for files are being carried out.
    pub(super) fn has_jobs(&self) -> bool {
        self.helpers.values().any(|helper| helper.job.is_some())
    }

    /// The helper of a cage.
    pub(super) fn helper_of(&self, pid: u32) -> Option<u32> {
        self.helpers.iter().find(|(_, helper)| helper.pid == Some(CageId(pid))).map(|(&id, _)| id)
    }

    /// Ends a helper whose client has gone, or which has ended already.
    pub(super) fn end_helper(&mut self, id: u32, errno: Errno) {
        let job = self.helpers.get_mut(&id).and_then(|helper| helper.job.take());
        self.drop_helper(id);
        let Some(job) = job else { return };
        if let Some(client) = self.clients.get_mut(&job.client) {
            client.job = None;
            let why = format!("the program that serves requests for files has ended: {errno}");
            self.refuse_with(job.client, &why, crate::failure::FAILED, errno);
            self.read_on(job.client);
        }
    }

    fn drop_helper(&mut self, id: u32) {
        // Without its channel it ends, unless it waits for something.
        if let Some(pid) = self.helpers.remove(&id).and_then(|helper| helper.pid) {
            signal::end_all_of(&self.kernel, pid);
        }
    }

    /// Ends all.
    pub(super) fn end_helpers(&mut self) {
        while let Some((&id, _)) = self.helpers.first_key_value() {
            self.end_helper(id, Errno::EIO);
        }
    }

    /// The client that a helper works for has gone.
    pub(super) fn leave_job(&mut self, client: u64) {
        let of_client = |helper: &Helper| helper.job.as_ref().is_some_and(|job| job.client == client);
        let all: Vec<u32> = self.helpers.iter().filter(|(_, helper)| of_client(helper)).map(|(&id, _)| id).collect();
        all.into_iter().for_each(|id| self.drop_helper(id));
    }

    /// Notes the cage of a helper. False if the number is a command's.
    pub(super) fn helper_started(&mut self, id: u32, pid: u32) -> bool {
        let helper = self.helpers.get_mut(&id);
        helper.map(|helper| helper.pid = Some(CageId(pid))).is_some()
    }

    /// Whether a helper's client takes answers.
    pub(super) fn has_room(&self, helper: &Helper) -> bool {
        let client = helper.job.as_ref().and_then(|job| self.clients.get(&job.client));
        client.is_none_or(|client| client.outgoing.is_empty())
    }

    fn done(&mut self, client: u64) {
        self.tell(client, &json!({"done": true}));
    }
}
