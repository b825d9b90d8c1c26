//! The map of an address space: which pages are mapped, how, and from what.

/// What is mapped where.
pub struct Vmmap {
    limit: u64,
}

impl Vmmap {
    /// An empty map that may hold `limit` bytes.
    pub fn new(limit: u64) -> Vmmap {
        Vmmap { limit }
    }

    /// The bytes that may be mapped.
    pub fn limit(&self) -> u64 {
        self.limit
    }
}
