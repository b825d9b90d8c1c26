use super::*;

/// One byte at a time: who holds it, and how.
#[derive(Default, Clone)]
struct Naive(BTreeMap<(u64, Owner), Mode>);

const BYTES: u64 = 24;

impl Naive {
    fn free_for(&self, wanted: &Lock) -> bool {
        !self.0.iter().any(|(&(byte, owner), &mode)| {
            wanted.range.contains(&byte)
                && owner != wanted.owner
                && (mode == Mode::Exclusive || wanted.mode == Mode::Exclusive)
        })
    }

    fn set(&mut self, owner: Owner, range: &Range<u64>, mode: Option<Mode>) {
        for byte in range.clone() {
            match mode {
                Some(mode) => self.0.insert((byte, owner), mode),
                None => self.0.remove(&(byte, owner)),
            };
        }
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

const FILE: FileId = FileId { dev: 1, ino: 1 };

fn cage(id: u32) -> Owner {
    Owner::Cage(CageId(id))
}

#[test]
fn random_locks_agree_with_bytes() {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let mut random = Random(seed);
    let owners = [cage(1), cage(2), Owner::Description(3)];
    let (locks, mut naive) = (Locks::default(), Naive::default());
    for step in 0..20_000 {
        let owner = owners[random.below(3) as usize];
        let start = random.below(BYTES);
        let range = start..start + 1 + random.below(BYTES - start);
        match random.below(4) {
            0 => {
                locks.give_up(FILE, owner, &range).unwrap();
                naive.set(owner, &range, None);
            }
            1 if random.below(20) == 0 => {
                locks.give_up_all(owner);
                naive.set(owner, &(0..BYTES), None);
            }
            _ => {
                let mode = if random.below(2) == 0 { Mode::Shared } else { Mode::Exclusive };
                let wanted = Lock { owner, mode, range: range.clone() };
                let free = naive.free_for(&wanted);
                assert_eq!(locks.obstacle(FILE, &wanted).is_none(), free, "step {step}");
                assert_eq!(locks.take(FILE, wanted), if free { Ok(()) } else { Err(Errno::EAGAIN) }, "step {step}");
                if free {
                    naive.set(owner, &range, Some(mode));
                }
            }
        }
        let state = locks.state();
        let held = state.files.get(&FILE).map_or(&[][..], |locks| locks);
        let mut expanded = BTreeMap::new();
        for lock in held {
            for byte in lock.range.clone() {
                assert_eq!(expanded.insert((byte, lock.owner), lock.mode), None, "step {step}: twice");
            }
        }
        assert_eq!(expanded, naive.0, "step {step}");
        assert!(held.is_sorted_by_key(|lock| lock.range.start), "step {step}");
        let joined = held.iter().all(|a| {
            held.iter().all(|b| a.owner != b.owner || a.mode != b.mode || a.range.end != b.range.start)
        });
        assert!(joined, "step {step}: neighbours that are alike are one");
    }
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_given_up() {
    let locks = std::sync::Arc::new(Locks::default());
    let whole = |owner, mode| Lock { owner, mode, range: 0..END };
    locks.take(FILE, whole(cage(1), Mode::Exclusive)).unwrap();
    let sleep = |word: &AtomicU32, value: u32| match futex::wait(word, futex::Flags::PRIVATE, value, None) {
        Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
        Err(errno) => Err(host::errno(errno)),
    };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| locks.take_patiently(FILE, &whole(cage(2), Mode::Shared), sleep));
        while locks.state().waiting.is_empty() {
            std::thread::yield_now();
        }
        // Each would wait for the other.
        let other = FileId { dev: 1, ino: 2 };
        locks.take(other, whole(cage(2), Mode::Exclusive)).unwrap();
        let never = |_: &AtomicU32, _| panic!("a circle is found before waiting");
        assert_eq!(locks.take_patiently(other, &whole(cage(1), Mode::Shared), never), Err(Errno::EDEADLK));
        locks.give_up_file(FILE, cage(1));
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
    assert_eq!(locks.take(FILE, whole(cage(1), Mode::Exclusive)), Err(Errno::EAGAIN));
    assert_eq!(locks.take(FILE, whole(cage(1), Mode::Shared)), Ok(()));
}

#[test]
fn a_waiter_that_is_interrupted_waits_for_nobody() {
    let locks = Locks::default();
    let whole = |owner| Lock { owner, mode: Mode::Exclusive, range: 0..END };
    locks.take(FILE, whole(cage(1))).unwrap();
    assert_eq!(locks.take_patiently(FILE, &whole(cage(2)), |_, _| Err(Errno::EINTR)), Err(Errno::EINTR));
    assert!(locks.state().waiting.is_empty());
}

#[test]
fn one_file_has_a_bounded_number_of_locks() {
    let locks = Locks::default();
    let taken = (0..END).step_by(2).map(|byte| {
        locks.take(FILE, Lock { owner: cage(1), mode: Mode::Shared, range: byte..byte + 1 })
    });
    let taken = taken.take_while(|result| result.is_ok()).count();
    assert!((MAX_LOCKS - 2..MAX_LOCKS).contains(&taken), "{taken}");
    locks.give_up_file(FILE, cage(1));
    assert!(locks.state().files.is_empty());
}
