//! `--publish`: ports of the host that are forwarded to ports of the sandbox's own loopback.
//!
//! The host's sockets are bound before the walls are up. A thread behind the walls accepts
//! connections, and two more copy the bytes of each.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use lind_kernel::{Kernel, stdio};

use crate::cli::publish::Published;

/// The most connections to one port at one time. Further ones wait in the host's queue.
const MOST: usize = 256;

/// How long a thread sleeps before it looks again.
const AGAIN: Duration = Duration::from_millis(10);

/// For how long the end of a run waits for clients to take what programs wrote.
const DRAIN: Duration = Duration::from_secs(1);

/// The connections through which bytes of the sandbox may still be on their way out.
#[derive(Clone, Default)]
pub struct Leaving(Arc<AtomicUsize>);

impl Leaving {
    /// Waits until clients have what programs wrote before they ended. A connection that a program
    /// still holds, or a client that reads nothing, is left after a second.
    pub fn drain(&self) {
        let over = Instant::now() + DRAIN;
        while self.0.load(Ordering::Relaxed) > 0 && Instant::now() < over {
            std::thread::sleep(AGAIN);
        }
    }
}

/// The host's sockets, bound.
#[derive(Default)]
pub struct Listeners {
    bound: Vec<(TcpListener, u16)>,
    leaving: Leaving,
}

impl Listeners {
    /// Binds the host's ports.
    ///
    /// # Errors
    /// An error that names the port and the reason.
    pub fn bind(ports: &[Published]) -> Result<Listeners> {
        let bound = ports.iter().map(|published| {
            let listener = TcpListener::bind(published.host).with_context(|| {
                format!("--publish {}:{}: cannot listen on this port of the host", published.host, published.port)
            })?;
            if published.host.port() == 0 {
                let address =
                    listener.local_addr().context("--publish: cannot find out which port the system chose")?;
                stdio::say_line(&format!("published: {address} leads to port {}", published.port));
            }
            Ok((listener, published.port))
        });
        Ok(Listeners { bound: bound.collect::<Result<_>>()?, leaving: Leaving::default() })
    }

    /// The connections that the end of the run waits for.
    pub fn leaving(&self) -> Leaving {
        self.leaving.clone()
    }

    /// Accepts connections for the cages of `kernel`, until the process ends.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn serve(self, kernel: &Arc<Kernel>) -> Result<()> {
        for (listener, port) in self.bound {
            let (kernel, leaving) = (Arc::clone(kernel), self.leaving.clone());
            std::thread::Builder::new()
                .name("publish".to_owned())
                .spawn(move || take(&listener, port, &kernel, &leaving))
                .context("--publish: cannot start a thread (check `ulimit -u`)")?;
        }
        Ok(())
    }
}

fn take(listener: &TcpListener, port: u16, kernel: &Kernel, leaving: &Leaving) {
    let open = Arc::new(AtomicUsize::new(0));
    loop {
        let accepted = listener.accept();
        while open.load(Ordering::Relaxed) >= MOST {
            std::thread::sleep(AGAIN);
        }
        let Ok((outside, from)) = accepted else {
            // The usual reason is that no descriptor is free, until another connection ends.
            std::thread::sleep(AGAIN);
            continue;
        };
        // Before a program sees the connection, which may answer and end at once.
        let way_out = Counted::new(&leaving.0);
        // If no program listens on the port, the connection is closed, as it would be refused.
        let Ok(inside) = kernel.dial(port, from).map(UnixStream::from) else { continue };
        let _ = carry(outside, inside, &open, way_out);
    }
}

/// Copies bytes both ways until both sides have ended.
fn carry(outside: TcpStream, inside: UnixStream, open: &Arc<AtomicUsize>, way_out: Counted) -> io::Result<()> {
    let (outside, inside) = (Arc::new(outside), Arc::new(inside));
    let counted = Arc::new(Counted::new(open));
    let start = |copy: Box<dyn FnOnce() + Send>| std::thread::Builder::new().name("published".to_owned()).spawn(copy);
    let (from, to, count) = (Arc::clone(&outside), Arc::clone(&inside), Arc::clone(&counted));
    start(Box::new(move || {
        let ended = io::copy(&mut &*from, &mut &*to);
        let _ = to.shutdown(if ended.is_ok() { Shutdown::Write } else { Shutdown::Both });
        drop(count);
    }))?;
    let (from, to) = (inside, outside);
    start(Box::new(move || {
        let ended = io::copy(&mut &*from, &mut &*to);
        let _ = to.shutdown(if ended.is_ok() { Shutdown::Write } else { Shutdown::Both });
        drop((way_out, counted));
    }))?;
    Ok(())
}

/// Counts a connection, or one way of it, while it exists.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(open: &Arc<AtomicUsize>) -> Counted {
        open.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
