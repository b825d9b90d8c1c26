use super::*;

/// One byte at a time: its holder, and the mode.
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

const NOT_AT_HOST: Opener<'_> = &|| None;

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
                assert_eq!(locks.obstacle(FILE, &wanted, NOT_AT_HOST).is_none(), free, "step {step}");
                assert_eq!(
                    locks.take(FILE, wanted, NOT_AT_HOST),
                    if free { Ok(()) } else { Err(Errno::EAGAIN) },
                    "step {step}"
                );
                if free {
                    naive.set(owner, &range, Some(mode));
                }
            }
        }
        let state = locks.state();
        let held = state.files.get(&FILE).map_or(&[][..], |held| &held.locks);
        let mut expanded = BTreeMap::new();
        for lock in held {
            for byte in lock.range.clone() {
                assert_eq!(expanded.insert((byte, lock.owner), lock.mode), None, "step {step}: twice");
            }
        }
        assert_eq!(expanded, naive.0, "step {step}");
        assert!(held.is_sorted_by_key(|lock| lock.range.start), "step {step}");
        let joined = held
            .iter()
            .all(|a| held.iter().all(|b| a.owner != b.owner || a.mode != b.mode || a.range.end != b.range.start));
        assert!(joined, "step {step}: neighbours that are alike are one");
    }
}

#[test]
fn a_waiter_gets_the_lock_when_it_is_given_up() {
    let locks = std::sync::Arc::new(Locks::default());
    let whole = |owner, mode| Lock { owner, mode, range: 0..END };
    locks.take(FILE, whole(cage(1), Mode::Exclusive), NOT_AT_HOST).unwrap();
    let sleep =
        |word: &AtomicU32, value: u32, _: Option<Duration>| match futex::wait(word, futex::Flags::PRIVATE, value, None)
        {
            Ok(()) | Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(host::errno(errno)),
        };
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| locks.take_patiently(FILE, &whole(cage(2), Mode::Shared), NOT_AT_HOST, sleep));
        while locks.state().waiting.is_empty() {
            std::thread::yield_now();
        }
        // Each would wait for the other.
        let other = FileId { dev: 1, ino: 2 };
        locks.take(other, whole(cage(2), Mode::Exclusive), NOT_AT_HOST).unwrap();
        let never = |_: &AtomicU32, _, _| panic!("a circle is found before waiting");
        assert_eq!(locks.take_patiently(other, &whole(cage(1), Mode::Shared), NOT_AT_HOST, never), Err(Errno::EDEADLK));
        locks.give_up_file(FILE, cage(1));
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
    assert_eq!(locks.take(FILE, whole(cage(1), Mode::Exclusive), NOT_AT_HOST), Err(Errno::EAGAIN));
    assert_eq!(locks.take(FILE, whole(cage(1), Mode::Shared), NOT_AT_HOST), Ok(()));
}

#[test]
fn a_waiter_that_is_interrupted_waits_for_nobody() {
    let locks = Locks::default();
    let whole = |owner| Lock { owner, mode: Mode::Exclusive, range: 0..END };
    locks.take(FILE, whole(cage(1)), NOT_AT_HOST).unwrap();
    assert_eq!(
        locks.take_patiently(FILE, &whole(cage(2)), NOT_AT_HOST, |_, _, _| Err(Errno::EINTR)),
        Err(Errno::EINTR)
    );
    assert!(locks.state().waiting.is_empty());
}

#[test]
fn one_file_has_a_bounded_number_of_locks() {
    let locks = Locks::default();
    let taken = (0..END)
        .step_by(2)
        .map(|byte| locks.take(FILE, Lock { owner: cage(1), mode: Mode::Shared, range: byte..byte + 1 }, NOT_AT_HOST));
    let taken = taken.take_while(|result| result.is_ok()).count();
    assert!((MAX_LOCKS - 2..MAX_LOCKS).contains(&taken), "{taken}");
    locks.give_up_file(FILE, cage(1));
    assert!(locks.state().files.is_empty());
}

/// Two kernels are two processes to the host: each has descriptions of its own.
#[test]
fn other_processes_are_kept_out() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let open = || Some(OwnedFd::from(std::fs::File::options().read(true).write(true).open(file.path()).unwrap()));
    let id = FileId::of(file.as_file().as_fd()).unwrap();
    let (here, there) = (Locks::default(), Locks::default());
    let lock = |owner, mode, range: Range<u64>| Lock { owner, mode, range };
    here.take(id, lock(cage(1), Mode::Shared, 0..10), &open).unwrap();
    here.take(id, lock(cage(2), Mode::Shared, 5..20), &open).unwrap();
    there.take(id, lock(cage(1), Mode::Shared, 0..30), &open).unwrap();
    // Our own are compatible, theirs is not: nothing changes, here or at the host.
    assert_eq!(here.take(id, lock(cage(1), Mode::Exclusive, 25..40), &open), Err(Errno::EAGAIN));
    let found = here.obstacle(id, &lock(cage(1), Mode::Exclusive, 15..40), &open).unwrap();
    assert_eq!(found, (Some(cage(2)), Mode::Shared, 5..20));
    let found = here.obstacle(id, &lock(cage(1), Mode::Exclusive, 20..40), &open).unwrap();
    assert_eq!(found, (None, Mode::Shared, 0..30));
    there.take(id, lock(cage(3), Mode::Exclusive, 30..50), &open).unwrap();
    there.give_up(id, cage(1), &(0..END)).unwrap();
    // One of two owners gives up; the bytes that the other has stay locked.
    here.give_up(id, cage(1), &(0..END)).unwrap();
    there.take(id, lock(cage(1), Mode::Exclusive, 0..5), &open).unwrap();
    assert_eq!(there.take(id, lock(cage(1), Mode::Exclusive, 4..6), &open), Err(Errno::EAGAIN));
    // The end of a cage, and of its last descriptor, reach the host.
    here.give_up_all(cage(2));
    there.take(id, lock(cage(1), Mode::Exclusive, 0..30), &open).unwrap();
    there.give_up_file(id, cage(1));
    there.give_up_file(id, cage(3));
    assert!(there.state().files.is_empty());
    here.take(id, lock(cage(1), Mode::Exclusive, 0..END), &open).unwrap();
    std::thread::scope(|scope| {
        let sleep = |word: &AtomicU32, value: u32, limit: Option<Duration>| {
            assert_eq!(limit, Some(GLANCE), "nobody here will wake us");
            let limit = rustix::fs::Timespec::try_from(limit.unwrap()).unwrap();
            let _ = futex::wait(word, futex::Flags::PRIVATE, value, Some(&limit));
            Ok(())
        };
        let wanted = lock(cage(1), Mode::Exclusive, 7..8);
        let (there, open) = (&there, &open);
        let waiter = scope.spawn(move || there.take_patiently(id, &wanted, open, sleep));
        std::thread::sleep(2 * GLANCE);
        assert!(!waiter.is_finished());
        here.give_up(id, cage(1), &(5..9)).unwrap();
        assert_eq!(waiter.join().unwrap(), Ok(()));
    });
}
