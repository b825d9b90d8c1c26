//! The amounts that a session uses.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::Server;
use crate::sandbox::Used;

/// The bytes of a kB in /proc.
const KIB: u64 = 1024;

/// Where the amounts are read. It is made before the walls go up, and reads what the host says of
/// this process.
pub struct Meter {
    status: Option<File>,
    io: Option<File>,
    /// The amounts that have limits.
    used: Option<Arc<Used>>,
}

impl Meter {
    /// The meter of this process, and of the grate that counts.
    pub fn new(used: Option<Arc<Used>>) -> Meter {
        let of = |name: &str| File::open(format!("/proc/self/{name}")).ok();
        Meter { status: of("status"), io: of("io"), used }
    }
}

/// The number behind a key in a file of /proc. Null if there is no such file or key.
fn number(file: Option<&File>, key: &str, times: u64) -> Value {
    let mut bytes = [0; 4096];
    let read = file.and_then(|file| file.read_at(&mut bytes, 0).ok());
    let text = read.and_then(|count| str::from_utf8(bytes.get(..count)?).ok()).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.and_then(|number| number.checked_mul(times)).into()
}

impl Server {
    /// The amounts that the session uses, and its limits.
    pub(super) fn stats(&self) -> Value {
        let cpu_time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        let cpu_time = Duration::new(cpu_time.tv_sec.try_into().unwrap_or(0), cpu_time.tv_nsec.try_into().unwrap_or(0));
        let meter = &self.about.meter;
        let mut counted = meter.used.as_ref().map(|used| used.now()).unwrap_or_default();
        let mut of =
            |name: &str| counted.remove(name).unwrap_or_else(|| json!({"used": null, "peak": null, "limit": null}));
        let mut cpu = of("cpu");
        cpu["used"] = cpu_time.as_secs_f64().into();
        if let Some(cpu) = cpu.as_object_mut() {
            cpu.remove("peak");
        }
        let mut memory = of("memory");
        memory["resident"] = number(meter.status.as_ref(), "VmRSS", KIB);
        memory["resident_peak"] = number(meter.status.as_ref(), "VmHWM", KIB);
        let mut cages = of("cages");
        if cages["used"].is_null() {
            cages["used"] = self.kernel.cages.len().into();
        }
        json!({
            "name": self.about.name, "pid": std::process::id(), "seconds": self.began.elapsed().as_secs_f64(),
            "commands": self.commands.count(), "cpu": cpu, "memory": memory, "cages": cages, "threads": of("threads"),
            "files": of("files"), "disk": of("disk"),
            "io": {"read": number(meter.io.as_ref(), "read_bytes", 1), "written": number(meter.io.as_ref(), "write_bytes", 1)},
            "denials": self.about.denials.count(),
        })
    }
}
