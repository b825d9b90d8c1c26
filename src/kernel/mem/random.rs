//! A small generator (xorshift) for tests with random operations.

/// A failing run can be repeated from the seed it prints.
pub struct Random(pub u64);

impl Random {
    /// From the clock.
    pub fn seeded() -> Random {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        let seed = u64::try_from(now.as_nanos() & u128::from(u64::MAX)).unwrap() | 1;
        println!("seed {seed}");
        Random(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
