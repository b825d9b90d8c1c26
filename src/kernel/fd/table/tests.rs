use std::collections::BTreeMap;

use super::*;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit).unwrap()
    }
}

/// Number -> which file, close-on-exec.
type Naive = BTreeMap<usize, (usize, bool)>;

fn lowest(naive: &Naive, from: usize, limit: usize) -> Option<usize> {
    (from..limit).find(|number| !naive.contains_key(number))
}

fn compare(table: &FdTable, naive: &Naive, files: &[Arc<File>], reader: &Reader, step: usize) {
    for number in 0..MOST {
        let fd = i32::try_from(number).unwrap();
        let found = table.get(fd).ok().map(|file| file.share());
        let expected = naive.get(&number).map(|(which, _)| &files[*which]);
        assert_eq!(found.as_ref().map(Arc::as_ptr), expected.map(Arc::as_ptr), "step {step}: {number}");
        let host = table.host(fd, reader).ok().map(|host| host.number());
        assert_eq!(host, expected.map(|file| file.host().as_raw_fd()), "step {step}: {number}");
        assert_eq!(table.cloexec(fd).ok(), naive.get(&number).map(|(_, on)| *on), "step {step}: {number}");
    }
}

/// Numbers that are looked at: across a chunk's end.
const MOST: usize = CHUNK + 40;

#[test]
fn random_operations_agree_with_a_map() {
    let seed = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos() as u64 | 1;
    println!("seed {seed}");
    let mut random = Random(seed);
    let readers = Arc::default();
    let reader = Readers::join(&readers);
    let null = || std::fs::File::open("/dev/null").unwrap().into();
    let files: Vec<_> = (0..8).map(|_| Arc::new(File::new(null(), Kind::Host))).collect();
    let mut limit = MOST - 10;
    let mut table = FdTable::new(limit as u64, &readers);
    let mut naive = Naive::new();
    for step in 0..4000 {
        let (number, which, cloexec) = (random.below(MOST as u64), random.below(8), random.below(2) == 0);
        let fd = i32::try_from(number).unwrap();
        match random.below(16) {
            0..=5 => {
                let from = if random.below(3) == 0 { number } else { 0 };
                let expected = lowest(&naive, from, limit);
                let got = table.add_from(from, Arc::clone(&files[which]), cloexec);
                assert_eq!(got.ok(), expected.map(|n| i32::try_from(n).unwrap()), "step {step}");
                naive.extend(expected.map(|n| (n, (which, cloexec))));
            }
            6..=7 => {
                let old = table.put(number, Arc::clone(&files[which]), cloexec, None);
                if number < limit {
                    let expected = naive.insert(number, (which, cloexec)).map(|(which, _)| Arc::as_ptr(&files[which]));
                    assert_eq!(old.unwrap().as_ref().map(Arc::as_ptr), expected, "step {step}");
                } else {
                    assert_eq!(old.err(), Some(Errno::EBADF), "step {step}");
                }
            }
            8..=10 => assert_eq!(table.remove(fd, &reader).is_ok(), naive.remove(&number).is_some(), "step {step}"),
            11 => {
                let set = table.set_cloexec(fd, cloexec).is_ok();
                assert_eq!(set, naive.get_mut(&number).map(|entry| entry.1 = cloexec).is_some(), "step {step}");
            }
            12 => {
                let (first, last) = (number, number + random.below(40));
                let open = table.open_in(u32::try_from(first).unwrap(), u32::try_from(last).unwrap());
                let expected: Vec<_> = naive.range(first..=last).map(|(n, _)| i32::try_from(*n).unwrap()).collect();
                assert_eq!(open, expected, "step {step}");
                for fd in open {
                    table.remove(fd, &reader).unwrap();
                }
                naive.retain(|n, _| !(first..=last).contains(n));
            }
            13 if random.below(8) == 0 => {
                limit = MOST - random.below(40);
                table.set_limit(limit as u64);
            }
            14 if random.below(8) == 0 => {
                let child = table.inherit();
                compare(&table, &naive, &files, &reader, step);
                naive.retain(|_, (_, cloexec)| !*cloexec);
                table = child;
            }
            15 if random.below(20) == 0 => {
                table.close_all();
                naive.clear();
            }
            _ => {
                let room = random.below(300);
                let free = (0..limit).filter(|n| !naive.contains_key(n)).count();
                assert_eq!(table.check_room(room).is_ok(), room <= free, "step {step}");
            }
        }
        if step % 50 == 0 {
            compare(&table, &naive, &files, &reader, step);
        }
    }
    compare(&table, &naive, &files, &reader, usize::MAX);
    drop(table);
    assert!(files.iter().all(|file| Arc::strong_count(file) == 1), "a closed table keeps no file");
}

#[test]
fn numbers_out_of_range_are_not_open() {
    let readers = Arc::default();
    let reader = Readers::join(&readers);
    let table = FdTable::new(u64::MAX, &readers);
    for number in [-1, i32::MIN, i32::MAX, i32::try_from(MAX_FILES).unwrap()] {
        assert_eq!(table.get(number).err(), Some(Errno::EBADF));
        assert_eq!(table.remove(number, &reader).err(), Some(Errno::EBADF));
        assert_eq!(table.cloexec(number).err(), Some(Errno::EBADF));
    }
    let file = || Arc::new(File::new(std::fs::File::open("/dev/null").unwrap().into(), Kind::Host));
    assert_eq!(table.put(MAX_FILES, file(), false, None).err(), Some(Errno::EBADF));
    assert_eq!(table.add_from(MAX_FILES, file(), false), Err(Errno::EMFILE));
    assert_eq!(table.add_from(MAX_FILES - 1, file(), false), Ok(i32::try_from(MAX_FILES).unwrap() - 1));
    assert_eq!(table.open_in(0, u32::MAX).len(), 1);
    assert!(table.open_in(u32::MAX, 0).is_empty());
}

/// A pipe's other end hangs up only when the last user of a closed descriptor is done.
#[test]
fn closing_waits_for_nobody_and_pulls_nothing_away() {
    let readers = Arc::default();
    let table = FdTable::new(64, &readers);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let reader = Readers::join(&readers);
                for _ in 0..20_000 {
                    if let Ok(host) = table.host(0, &reader) {
                        // If it was not kept open for us, another file may have the number at the
                        // host by now, and is not a pipe.
                        use std::os::fd::AsFd;
                        let stat = rustix::fs::fstat(host.as_fd()).expect("kept open");
                        assert!(rustix::fs::FileType::from_raw_mode(stat.st_mode).is_fifo(), "pulled away");
                    }
                }
            });
        }
        let reader = Readers::join(&readers);
        for _ in 0..3000 {
            let (read, _write) = std::io::pipe().unwrap();
            table.put(0, Arc::new(File::new(read.into(), Kind::Host)), false, None).unwrap();
            drop(table.remove(0, &reader));
            let _other = std::fs::File::open("/dev/null").unwrap();
        }
    });
}
