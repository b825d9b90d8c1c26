//! Tests of handler tables against naive ones, and of the checks around changes.

use super::*;

/// The numbers the test plays with: both sides of DIRECT, some outside the default, one beyond 32
/// bits.
const NUMBERS: [u64; 12] = [0, 1, 60, 231, 1009, 1010, 1011, 1001, 3000, 0xffff_fffe, 0xffff_ffff_0000, 39];

/// A table written without regard to speed: below DIRECT every number has a handler of its own,
/// above it only numbers with a registration.
#[derive(Clone, Default)]
struct Model {
    own: BTreeMap<u64, Handler>,
    default: Option<Handler>,
    born: Option<Box<Model>>,
}

impl Model {
    fn get(&self, number: u64) -> Handler {
        let default = if number < DIRECT as u64 || outside_default(number) { None } else { self.default };
        self.own.get(&number).copied().or(default).unwrap_or(Handler::Kernel)
    }

    fn born(&self, number: u64) -> Handler {
        self.born.as_ref().map_or(Handler::Kernel, |born| born.get(number))
    }

    fn set_default(&mut self, change: Change, covers: impl Fn(u64) -> bool) {
        let old = self.default.unwrap_or(Handler::Kernel);
        let born = self.born.as_ref().and_then(|born| born.default);
        let direct = NUMBERS.into_iter().filter(|&n| n < DIRECT as u64);
        let present: Vec<u64> = direct.chain(self.own.keys().copied().filter(|&n| n >= DIRECT as u64)).collect();
        for number in present.into_iter().filter(|&n| !outside_default(n)) {
            match change {
                Change::To(handler) if covers(number) => drop(self.own.insert(number, handler)),
                Change::Inherited if self.get(number) == old => drop(self.own.insert(number, self.born(number))),
                _ => {}
            }
        }
        self.default = match change {
            Change::To(handler) => Some(handler),
            Change::Inherited => born,
        };
    }
}

/// xorshift: enough for choosing operations.
struct Random(u64);
impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % n
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

#[test]
fn random_operations_agree_with_a_naive_table() {
    for seed in 1..200_u64 {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut tables = vec![(HandlerTable::default(), Model::default())];
        for step in 0..60 {
            let at = usize::try_from(random.below(tables.len() as u64)).unwrap();
            let handler = Handler::Grate {
                cage: CageId(u32::try_from(random.below(3)).unwrap() + 1),
                entry: u32::try_from(random.below(2)).unwrap(),
                serialized: random.below(2) == 0,
            };
            let number = random.pick(&NUMBERS);
            let change = if random.below(3) == 0 { Change::Inherited } else { Change::To(handler) };
            match random.below(6) {
                0..=2 => {
                    let (table, model) = &mut tables[at];
                    table.set(number, change, |_| Ok::<(), ()>(())).unwrap();
                    let word = match change {
                        Change::To(handler) => handler,
                        Change::Inherited => model.born(number),
                    };
                    model.own.insert(number, word);
                }
                3 => {
                    let covered = random.below(1 << 12);
                    let covers = |n: u64| covered >> (n % 12) & 1 == 1;
                    let (table, model) = &mut tables[at];
                    table.set_default(change, |_| Ok::<(), ()>(()), |n, _| covers(n)).unwrap();
                    model.set_default(change, covers);
                }
                4 => {
                    let (table, model) = &tables[at];
                    let mut child = model.clone();
                    child.born = Some(Box::new(Model { born: None, ..model.clone() }));
                    let table = table.inherit();
                    tables.push((table, child));
                }
                _ => {
                    let from = usize::try_from(random.below(tables.len() as u64)).unwrap();
                    if from != at {
                        let source = tables[from].1.clone();
                        tables[at].0.replace(&tables[from].0, |_| Ok::<(), ()>(())).unwrap();
                        let born = tables[at].1.born.take();
                        tables[at].1 = Model { born, ..source };
                    }
                }
            }
            for (which, (table, model)) in tables.iter().enumerate() {
                for number in NUMBERS {
                    assert_eq!(
                        table.get_wide(number),
                        model.get(number),
                        "seed {seed} step {step} table {which} number {number}"
                    );
                    if let Ok(short) = u32::try_from(number) {
                        assert_eq!(table.get(short), table.get_wide(number));
                    }
                }
            }
        }
    }
}

#[test]
fn a_refused_change_changes_nothing() {
    let table = HandlerTable::default();
    let handler = Handler::Grate { cage: CageId(1), entry: 2, serialized: false };
    assert_eq!(table.set(0, Change::To(handler), |_| Err("no")), Err("no"));
    assert_eq!(table.set_default(Change::To(handler), |_| Err("no"), |_, _| true), Err("no"));
    assert_eq!(table.get(0), Handler::Kernel);
    table.set(0, Change::To(handler), |_| Ok::<(), ()>(())).unwrap();
    let copied = table.replace(&HandlerTable::default(), |has_grate| if has_grate { Err("no") } else { Ok(()) });
    assert_eq!(copied, Err("no"));
    assert_eq!(table.get(0), handler);
}

/// Another thread that changes the table waits from the check until the change has been made.
#[test]
fn what_a_change_rests_on_holds_until_it_is_made() {
    let handler = Handler::Grate { cage: CageId(1), entry: 2, serialized: false };
    let other = Handler::Grate { cage: CageId(2), entry: 2, serialized: false };
    let any = |_: Handler| Ok::<(), ()>(());
    let copies = |table: &HandlerTable, meanwhile: &dyn Fn()| {
        let allowed = |has_grate: bool| {
            meanwhile();
            if has_grate { Err(()) } else { Ok(()) }
        };
        table.replace(&HandlerTable::default(), allowed)
    };
    let sets_default = |table: &HandlerTable, meanwhile: &dyn Fn()| {
        let allowed = |old: Handler| {
            meanwhile();
            if old == Handler::Kernel { Ok(()) } else { Err(()) }
        };
        table.set_default(Change::To(other), allowed, |_, old| old == Handler::Kernel)
    };
    type Changes<'a> = &'a dyn Fn(&HandlerTable, &dyn Fn()) -> std::result::Result<(), ()>;
    for change in [&copies as Changes<'_>, &sets_default] {
        let table = Arc::new(HandlerTable::default());
        let registering = std::cell::Cell::new(None);
        let meanwhile = || {
            let table = Arc::clone(&table);
            let register = move || {
                table.set_default(Change::To(handler), any, |_, _| true)?;
                table.set(5000, Change::To(handler), any)
            };
            let registered = std::thread::spawn(register);
            // Long enough to have done it, were it not held up.
            std::thread::sleep(std::time::Duration::from_millis(30));
            registering.set(Some(registered));
        };
        assert_eq!(change(&table, &meanwhile), Ok(()));
        registering.take().unwrap().join().unwrap().unwrap();
        for number in [u64::from(NR_ANY), 0, 4000, 5000] {
            assert_eq!(table.get_wide(number), handler, "{number}");
        }
    }
}

#[test]
fn an_entry_survives_packing() {
    for serialized in [false, true] {
        for (cage, entry) in [(1, 0), (u32::MAX, MAX_ENTRY), (7, 12)] {
            let handler = Handler::Grate { cage: CageId(cage), entry, serialized };
            assert_eq!(Handler::unpack(handler.pack()), handler);
        }
    }
}

#[test]
fn a_table_of_few_calls_sends_all_others_to_nobody() {
    let far = nr::host_file;
    let table = HandlerTable::only(&[nr::read, nr::exit, far]);
    for allowed in [nr::read, nr::exit, far] {
        assert!(matches!(table.get(allowed), Handler::Kernel), "{allowed}");
    }
    for number in [nr::write, nr::exit_group, nr::register_handler, nr::call_by, 1099, 1100, 5000, NR_ANY] {
        assert!(matches!(table.get(number), Handler::Grate { cage: NOBODY, .. }), "{number}");
    }
    assert!(matches!(table.inherit().get(nr::write), Handler::Grate { cage: NOBODY, .. }));
}
