//! The facts about a function's loops that the loop pass needs: whether memory may change on the
//! way around, and whether a load's address stays the same.
//!
//! Each loop is walked on its own, innermost first, in program order, assuming at its head that the
//! locals it sets have the values they had before; if the walk shows that one does not come around
//! unchanged, the loop is walked again without that assumption. Where all this is not exact it errs
//! towards "the same address, and no barrier": that costs an instruction, the opposite would cost
//! the program.

use std::collections::HashMap;

use crate::ops::{Body, Kind, Loop, Op};

impl<'a> Body<'a> {
    /// The places in the code section where the bodies of the loops start that need a barrier, in
    /// order.
    pub fn loops_to_watch(&self) -> Vec<usize> {
        let mut watched = Vec::new();
        let mut known = HashMap::new();
        let mut budget = self.ops.len().saturating_mul(256).saturating_add(1 << 20);
        for found in &self.loops {
            let mut around = self.look(found, &known, &mut budget);
            if around.again && around.fixed_load && !around.barrier {
                watched.push(self.ops[found.start].end);
                around.barrier = true;
            }
            known.insert(found.start, around);
        }
        watched.sort_unstable();
        watched
    }

    fn look(&self, found: &Loop, known: &HashMap<usize, Around>, budget: &mut usize) -> Around {
        const ROUNDS: usize = 8;
        *budget = budget.saturating_sub(found.end - found.start);
        if *budget == 0 {
            return self.unseen(found);
        }
        let set = locals_set(&self.ops[found.start..found.end]);
        let mut held = vec![true; set.len()];
        let mut around = self.unseen(found);
        for _ in 0..ROUNDS {
            let walk = Walk::new(self, found, known, &set, &held, budget);
            let Some((seen, back)) = walk.run() else {
                return self.unseen(found);
            };
            around = seen;
            let before = held.clone();
            held.iter_mut().zip(back).for_each(|(held, back)| *held &= back);
            if held == before {
                break;
            }
        }
        around.changes = set.into_iter().zip(held).filter(|(_, held)| !held).map(|(local, _)| local).collect();
        around
    }

    /// The result for a loop that costs too much to examine: watch it if it has a load.
    fn unseen(&self, found: &Loop) -> Around {
        let loads = self.ops[found.end].loads > self.ops[found.start].loads;
        Around { barrier: false, again: true, fixed_load: loads, changes: Vec::new() }
    }
}

/// The facts about a loop.
struct Around {
    /// A way around the loop passes a barrier.
    barrier: bool,
    /// There is a way around it.
    again: bool,
    /// A load's address is the same each time around.
    fixed_load: bool,
    /// The locals that do not come around unchanged.
    changes: Vec<u32>,
}

/// A value: a number for each computation whose result is the same each time around, or this one,
/// for a value that changes.
const CHANGES: u32 = 0;
/// The value that a local or a parameter has on entry to the loop. One number for all of them: two
/// locals may hold copies of one value, and then the engine drops `if (c) x = p;`, which has no
/// effect.
const BEFORE: u32 = 1;

/// The facts at one place of the loop.
#[derive(Clone)]
struct State {
    /// A barrier may have been passed since the head of the loop.
    barrier: bool,
    /// The values of the locals that the loop sets, in the order of `Walk::set`.
    locals: Vec<u32>,
}

enum Frame {
    Loop,
    Block,
    If(State, Vec<u32>),
}

struct Label {
    frame: Frame,
    /// The operand stack's height below the parameters.
    height: usize,
    results: usize,
    /// The facts where the branches to the label meet, with the values they carry.
    met: Option<(State, Vec<u32>)>,
}

struct Walk<'w, 'a> {
    body: &'w Body<'a>,
    range: std::ops::Range<usize>,
    /// The facts about the inner loops, by their first instruction.
    known: &'w HashMap<usize, Around>,
    /// The locals that the loop sets, sorted.
    set: &'w [u32],
    /// Their values at the head; these meet the values of each way back to the head.
    head: Vec<u32>,
    back: Option<Vec<u32>>,
    numbers: HashMap<Key<'a>, u32>,
    labels: Vec<Label>,
    stack: Vec<u32>,
    /// None in unreachable code.
    state: Option<State>,
    around: Around,
    budget: &'w mut usize,
}

/// The computation that gives a value: an instruction's bytes and operands.
#[derive(PartialEq, Eq, Hash)]
struct Key<'a>(&'a [u8], [u32; 3]);

impl<'w, 'a> Walk<'w, 'a> {
    fn new(
        body: &'w Body<'a>,
        found: &Loop,
        known: &'w HashMap<usize, Around>,
        set: &'w [u32],
        held: &[bool],
        budget: &'w mut usize,
    ) -> Self {
        let around = Around { barrier: false, again: false, fixed_load: false, changes: Vec::new() };
        let mut walk = Walk {
            body,
            range: found.start + 1..found.end,
            known,
            set,
            head: Vec::new(),
            back: None,
            numbers: HashMap::new(),
            labels: Vec::new(),
            stack: Vec::new(),
            state: None,
            around,
            budget,
        };
        walk.head = held.iter().map(|held| if *held { BEFORE } else { CHANGES }).collect();
        walk.state = Some(State { barrier: false, locals: walk.head.clone() });
        walk
    }

    /// Walks the loop. Returns the facts, and for each local that it sets, whether it came around
    /// with its value at the head. None if the budget was not enough.
    fn run(mut self) -> Option<(Around, Vec<bool>)> {
        let Kind::Loop(params, results) = self.body.ops[self.range.start - 1].kind else {
            return None;
        };
        // A parameter of the loop may get the same value each time around.
        self.stack.resize(params, BEFORE);
        self.labels.push(Label { frame: Frame::Loop, height: 0, results, met: None });
        for at in self.range.clone() {
            self.spend(1);
            if *self.budget == 0 {
                return None;
            }
            self.step(at);
        }
        let back = self.back.unwrap_or_else(|| self.head.clone());
        let same = back.iter().zip(&self.head).map(|(back, head)| back == head).collect();
        Some((self.around, same))
    }

    fn step(&mut self, at: usize) {
        let op = &self.body.ops[at];
        if self.state.is_none()
            && !matches!(
                op.kind,
                Kind::Block(..) | Kind::Loop(..) | Kind::If(..) | Kind::Try(..) | Kind::Else | Kind::End
            )
        {
            return;
        }
        match &op.kind {
            Kind::Pure(operands) => self.compute(op.bytes, *operands),
            Kind::LocalGet(local) => {
                let value = self.local(*local);
                self.stack.push(value);
            }
            Kind::LocalSet(local) => {
                let value = self.pop();
                self.set_local(*local, value);
            }
            Kind::LocalTee(local) => {
                let value = self.pop();
                self.set_local(*local, value);
                self.stack.push(value);
            }
            Kind::Load(operands) => {
                self.drop(operands - 1);
                let address = self.pop();
                self.around.fixed_load |= address != CHANGES;
                self.stack.push(CHANGES);
            }
            Kind::Other { pops, pushes, barrier } => {
                self.drop(*pops);
                self.stack.extend(std::iter::repeat_n(CHANGES, *pushes));
                if let Some(state) = &mut self.state {
                    state.barrier |= barrier;
                }
            }
            Kind::Block(..) | Kind::Loop(..) | Kind::If(..) | Kind::Try(..) => self.enter(at),
            Kind::Else => self.otherwise(),
            Kind::End => self.end(),
            Kind::Br(_) | Kind::BrIf(_) | Kind::BrTable(_) | Kind::BrRef { .. } | Kind::Leave => self.leave(&op.kind),
        }
    }

    fn compute(&mut self, bytes: &'a [u8], operands: usize) {
        let mut from = [CHANGES; 3];
        let mut changes = false;
        for slot in from.iter_mut().take(operands) {
            *slot = self.pop();
            changes |= *slot == CHANGES;
        }
        let value = if changes { CHANGES } else { self.number(Key(bytes, from)) };
        self.stack.push(value);
    }

    /// The number of a computation, the same for the same computation.
    fn number(&mut self, key: Key<'a>) -> u32 {
        let next = u32::try_from(self.numbers.len()).map_or(u32::MAX, |n| n.saturating_add(BEFORE + 1));
        *self.numbers.entry(key).or_insert(next)
    }

    fn local(&self, local: u32) -> u32 {
        match (self.set.binary_search(&local), &self.state) {
            (Ok(slot), Some(state)) => state.locals[slot],
            (Ok(_), None) => CHANGES,
            (Err(_), _) => BEFORE,
        }
    }

    fn set_local(&mut self, local: u32, value: u32) {
        if let (Ok(slot), Some(state)) = (self.set.binary_search(&local), &mut self.state) {
            state.locals[slot] = value;
        }
    }

    fn enter(&mut self, at: usize) {
        if matches!(self.body.ops[at].kind, Kind::If(..)) {
            self.drop(1);
        }
        let (frame, params, results) = match &self.body.ops[at].kind {
            Kind::If(params, results) => {
                // Without a state the else branch is not reached either.
                let before = self.state.clone().map(|state| Frame::If(state, self.top(*params)));
                (before.unwrap_or(Frame::Block), *params, *results)
            }
            Kind::Loop(params, results) => {
                self.enter_loop(at);
                (Frame::Loop, *params, *results)
            }
            Kind::Try(params, results, catches) => {
                // Reached from anywhere in the block, with values from the exception.
                for &label in catches {
                    self.branch(label, true);
                }
                (Frame::Block, *params, *results)
            }
            Kind::Block(params, results) => (Frame::Block, *params, *results),
            _ => return,
        };
        self.spend(self.set.len());
        let height = self.stack.len().saturating_sub(params);
        self.labels.push(Label { frame, height, results, met: None });
    }

    /// At the head of an inner loop: the locals that it changes, and a barrier that it may have
    /// passed.
    fn enter_loop(&mut self, at: usize) {
        let (Some(state), Some(inner)) = (&mut self.state, self.known.get(&at)) else {
            return;
        };
        state.barrier |= inner.barrier;
        for local in &inner.changes {
            if let Ok(slot) = self.set.binary_search(local) {
                state.locals[slot] = CHANGES;
            }
        }
        self.spend(inner.changes.len());
    }

    fn otherwise(&mut self) {
        self.branch(0, false);
        let Some(label) = self.labels.last_mut() else {
            return;
        };
        let height = label.height;
        self.state = None;
        if let Frame::If(state, params) = std::mem::replace(&mut label.frame, Frame::Block) {
            self.state = Some(state);
            self.stack.truncate(height);
            self.stack.extend(params);
        }
    }

    fn end(&mut self) {
        if matches!(self.labels.last(), Some(Label { frame: Frame::Loop, .. })) {
            // Branches to a loop go to its head, so only this way leads to its end.
            let Some(label) = self.labels.pop() else {
                return;
            };
            let values = self.top(label.results);
            self.stack.truncate(label.height);
            self.stack.extend(values);
            return;
        }
        if matches!(self.labels.last(), Some(Label { frame: Frame::If(..), .. })) {
            self.otherwise(); // an if without else
        }
        self.branch(0, false);
        let Some(label) = self.labels.pop() else {
            return;
        };
        self.stack.truncate(label.height);
        match label.met {
            Some((state, values)) => {
                self.state = Some(state);
                self.stack.extend(values);
            }
            None => {
                self.state = None;
                self.stack.extend(std::iter::repeat_n(CHANGES, label.results));
            }
        }
    }

    fn leave(&mut self, kind: &Kind) {
        match kind {
            Kind::BrIf(label) => {
                self.drop(1);
                self.branch(*label, false);
                return;
            }
            Kind::BrRef { before, label, after, results } => {
                self.drop(*before);
                self.branch(*label, false);
                self.drop(*after);
                self.stack.extend(std::iter::repeat_n(CHANGES, *results));
                return;
            }
            Kind::Br(label) => self.branch(*label, false),
            Kind::BrTable(labels) => {
                self.drop(1);
                for &label in labels {
                    self.branch(label, false);
                }
            }
            _ => {}
        }
        self.state = None;
    }

    /// A branch leads from here to a label. `unknown`: the values that it carries are not those on
    /// the stack.
    fn branch(&mut self, label: u32, unknown: bool) {
        // A label beyond the loop's own leads out of it.
        let Some(index) = self.labels.len().checked_sub(1 + label as usize) else {
            return;
        };
        let Some(state) = self.state.clone() else {
            return;
        };
        self.spend(state.locals.len());
        if matches!(self.labels[index].frame, Frame::Loop) {
            if index == 0 {
                self.around.again = true;
                self.around.barrier |= state.barrier;
                match &mut self.back {
                    Some(back) => meet(back, &state.locals),
                    none => *none = Some(state.locals),
                }
            }
            return;
        }
        let results = self.labels[index].results;
        let values = if unknown { vec![CHANGES; results] } else { self.top(results) };
        match &mut self.labels[index].met {
            Some((met, carried)) => {
                met.barrier |= state.barrier;
                meet(&mut met.locals, &state.locals);
                meet(carried, &values);
            }
            none => *none = Some((state, values)),
        }
    }

    fn spend(&mut self, work: usize) {
        *self.budget = self.budget.saturating_sub(work);
    }

    /// The topmost values; unknown ones where the stack, after unreachable code, has fewer.
    fn top(&self, count: usize) -> Vec<u32> {
        let have = &self.stack[self.stack.len().saturating_sub(count)..];
        std::iter::repeat_n(CHANGES, count - have.len()).chain(have.iter().copied()).collect()
    }

    fn pop(&mut self) -> u32 {
        self.stack.pop().unwrap_or(CHANGES)
    }

    fn drop(&mut self, count: usize) {
        self.stack.truncate(self.stack.len().saturating_sub(count));
    }
}

/// Where ways meet, values that differ make one that changes.
fn meet(into: &mut [u32], from: &[u32]) {
    for (a, b) in into.iter_mut().zip(from) {
        if a != b {
            *a = CHANGES;
        }
    }
}
fn locals_set(ops: &[Op]) -> Vec<u32> {
    let mut found: Vec<u32> = ops
        .iter()
        .filter_map(|op| match op.kind {
            Kind::LocalSet(local) | Kind::LocalTee(local) => Some(local),
            _ => None,
        })
        .collect();
    found.sort_unstable();
    found.dedup();
    found
}
