//! The names of the machine that cages have, which are a namespace.

use std::sync::{Arc, Mutex};

use super::Cage;
use crate::lock::Locked;

/// The longest name, in bytes: __NEW_UTS_LEN.
pub(crate) const LONGEST_NAME: usize = 64;

/// The names that cages have given: a namespace.
#[derive(Default)]
pub(crate) struct Names {
    /// The number of the namespace.
    number: u64,
    host: Mutex<Option<Box<[u8]>>>,
    domain: Mutex<Option<Box<[u8]>>>,
}

impl Names {
    /// The names that a cage has.
    pub fn of(cage: &Cage) -> Arc<Names> {
        Arc::clone(&cage.settings().names)
    }

    /// The number by which programs tell namespaces apart.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// The same names in a namespace of this number, to be changed apart.
    pub fn apart(&self, number: u64) -> Arc<Names> {
        Arc::new(Names { number, host: Mutex::new(get(&self.host)), domain: Mutex::new(get(&self.domain)) })
    }

    /// The host name.
    pub fn host(&self) -> Box<[u8]> {
        get(&self.host).unwrap_or_else(|| rustix::system::uname().nodename().to_bytes().into())
    }

    /// The NIS domain name.
    pub fn domain(&self) -> Box<[u8]> {
        get(&self.domain).unwrap_or_else(|| rustix::system::uname().domainname().to_bytes().into())
    }

    /// Sets it: as much as fits.
    pub fn set_host(&self, name: &[u8]) {
        put(&self.host, &name[..name.len().min(LONGEST_NAME)]);
    }

    /// Sets it: as much as fits.
    pub fn set_domain(&self, name: &[u8]) {
        put(&self.domain, &name[..name.len().min(LONGEST_NAME)]);
    }
}

fn put(name: &Mutex<Option<Box<[u8]>>>, bytes: &[u8]) {
    *name.locked() = Some(bytes.into());
}

fn get(name: &Mutex<Option<Box<[u8]>>>) -> Option<Box<[u8]>> {
    name.locked().clone()
}
