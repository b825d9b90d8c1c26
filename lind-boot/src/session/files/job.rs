//! A request for files that is being carried out: what its answers become.

use lind_abi::Errno;
use lind_kernel::text::shown;
use serde_json::{Value, json};

use super::frames::{Kind, Report, long, word};
use super::request::{Ask, Op};
use crate::session::wire;

/// The entries of a message, and the names of files that were left out.
const BATCH: usize = 512;
const SKIPPED: usize = 100;

/// The head of an entry in an answer.
const ENTRY: usize = 56;

/// Bits of `mode`.
const FORMAT: u32 = 0o170_000;

/// Bits of events, as inotify(7) has them.
const EVENTS: [(u32, &str); 8] = [
    (0x2, "modified"),
    (0x4, "attributes"),
    (0x8, "written"),
    (0x40, "moved_from"),
    (0x80, "moved_to"),
    (0x100, "created"),
    (0x200, "removed"),
    (0x4000, "overflow"),
];
const DIRECTORY: u32 = 0x4000_0000;

/// A request.
pub struct Job {
    /// The client that waits for it.
    pub client: u64,
    /// The request.
    pub ask: Ask,
    entries: Vec<Value>,
    skipped: Vec<Value>,
    skips: u64,
}

/// The messages to the client that an answer leads to.
pub enum Message {
    /// Nothing yet.
    Nothing,
    /// A message, and bytes behind it.
    Part(Value, Vec<u8>),
    /// The last message, with entries that come before it.
    Last(Option<Value>, Value),
}

impl Job {
    /// A request that has been sent.
    pub fn new(client: u64, ask: Ask) -> Job {
        Job { client, ask, entries: Vec::new(), skipped: Vec::new(), skips: 0 }
    }

    /// Whether the client's next message belongs to this request.
    pub fn takes_message(&self) -> bool {
        self.ask.more || self.ask.op == Op::Watch
    }

    /// Turns an answer into messages to the client.
    pub fn hear(&mut self, report: Report) -> Message {
        let Report { kind, value, bytes } = report;
        match kind {
            Kind::Data if bytes.is_empty() => Message::Nothing,
            Kind::Data => Message::Part(json!({"data": value}), bytes),
            Kind::Entry => {
                if self.ask.op != Op::List {
                    self.entries.clear();
                }
                self.entries.extend(entry(&bytes));
                match self.ask.op {
                    Op::List if self.entries.len() >= BATCH => {
                        Message::Part(json!({"entries": std::mem::take(&mut self.entries)}), Vec::new())
                    }
                    _ => Message::Nothing,
                }
            }
            Kind::Event => Message::Part(event(value, &bytes), Vec::new()),
            Kind::Skipped => {
                self.skips += 1;
                if self.skipped.len() < SKIPPED {
                    self.skipped.push(wire::word(&bytes));
                }
                Message::Nothing
            }
            Kind::Begun if self.ask.op == Op::Watch => Message::Part(json!({"watching": true}), Vec::new()),
            Kind::Begun => Message::Nothing,
            Kind::Done => self.done(value, &bytes),
        }
    }

    fn done(&mut self, value: i64, path: &[u8]) -> Message {
        if value < 0 {
            return Message::Last(None, self.failed(value, path));
        }
        let mut done = json!({"done": true});
        let mut before = None;
        match self.ask.op {
            Op::Stat | Op::Read => {
                done["stat"] = self.entries.pop().unwrap_or(Value::Null);
                if self.ask.op == Op::Read {
                    done["more"] = (value > 0).into();
                }
            }
            Op::List => {
                before = Some(json!({"entries": std::mem::take(&mut self.entries)}));
                done["more"] = (value > 0).into();
            }
            Op::Write | Op::Append => done["written"] = value.into(),
            Op::Copy | Op::Pack | Op::Unpack => {
                done["count"] = value.into();
                done["skipped"] = std::mem::take(&mut self.skipped).into();
                done["skips"] = self.skips.into();
            }
            _ => {}
        }
        Message::Last(before, done)
    }

    fn failed(&self, value: i64, path: &[u8]) -> Value {
        let number = value.checked_neg().and_then(|number| i32::try_from(number).ok());
        let errno = number.map_or(Errno::EIO, Errno::from_raw);
        let op = self.ask.op;
        let why = match errno {
            Errno::ENXIO if matches!(op, Op::Read | Op::Write | Op::Append | Op::Copy | Op::Pack) => {
                "not a regular file".to_owned()
            }
            Errno::EFBIG if op == Op::Pack => format!("the tar would have more than {} bytes", self.ask.count),
            Errno::EINVAL if op == Op::Unpack => "not a tar, or a member whose name leads out of it".to_owned(),
            Errno::ECANCELED => "given up".to_owned(),
            errno => errno.to_string(),
        };
        json!({
            "error": format!("{}: {why}", shown(path)), "status": crate::failure::FAILED, "errno": errno.name(),
            "path": wire::word(path),
        })
    }
}

/// The name of a kind of files.
fn kind(mode: u32) -> &'static str {
    match mode & FORMAT {
        0o010_000 => "fifo",
        0o020_000 => "character device",
        0o040_000 => "directory",
        0o060_000 => "block device",
        0o100_000 => "file",
        0o120_000 => "link",
        _ => "socket",
    }
}

/// An entry as JSON.
fn entry(bytes: &[u8]) -> Option<Value> {
    let (head, texts) = bytes.split_at_checked(ENTRY)?;
    let mode = word(head, 24);
    let (name, target) = texts.split_at_checked(word(head, 44) as usize)?;
    #[expect(clippy::cast_precision_loss, reason = "a time in seconds needs no nanoseconds")]
    let mtime = long(head, 16).cast_signed() as f64 / 1e9;
    let mut entry = json!({
        "name": wire::word(name), "type": kind(mode), "size": long(head, 8), "mode": mode & 0o7777, "mtime": mtime,
        "uid": word(head, 28), "gid": word(head, 32), "links": word(head, 36), "inode": long(head, 0),
    });
    if mode & FORMAT == 0o120_000 {
        entry["target"] = wire::word(target);
    }
    if word(head, 40) != 0 {
        entry["errno"] = Errno::from_raw(word(head, 40).cast_signed()).name().into();
    }
    Some(entry)
}

fn event(mask: i64, name: &[u8]) -> Value {
    let mask = u32::try_from(mask).unwrap_or(0);
    let what = EVENTS.iter().find(|(bit, _)| mask & bit != 0).map_or("removed", |(_, what)| what);
    json!({"event": what, "name": wire::word(name), "directory": mask & DIRECTORY != 0})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn entries_are_claims() {
        let mut bytes = vec![0; ENTRY];
        bytes[24..28].copy_from_slice(&0o120_777_u32.to_le_bytes());
        bytes[44..48].copy_from_slice(&2_u32.to_le_bytes());
        assert!(entry(&bytes).is_none() && entry(&bytes[..9]).is_none());
        let made = entry(&[&bytes[..], b"a\xffto"].concat()).unwrap();
        assert_eq!((&made["name"], &made["target"], &made["type"]), (&json!([97, 255]), &json!("to"), &json!("link")));
    }

    #[test]
    fn ends_name_the_error() {
        let ask = Ask::read(&json!({"do": "read", "path": "/f"}), Path::new("/")).unwrap().unwrap();
        let mut job = Job::new(1, ask);
        let report = |value| Report { kind: Kind::Done, value, bytes: b"/f".to_vec() };
        let Message::Last(None, last) = job.hear(report(-2)) else { panic!("not the end") };
        assert_eq!((&last["errno"], &last["path"]), (&json!("ENOENT"), &json!("/f")));
        let Message::Last(None, last) = job.hear(report(-6)) else { panic!("not the end") };
        assert_eq!(last["error"], "/f: not a regular file");
        let Message::Last(None, last) = job.hear(report(1)) else { panic!("not the end") };
        assert_eq!(last["more"], true);
        let Message::Last(..) = job.hear(report(i64::MIN)) else { panic!("not the end") };
    }
}
