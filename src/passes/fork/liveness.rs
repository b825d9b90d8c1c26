//! Finds the locals that are needed after a site: those that may be read before they are written.
//!
//! The function is walked backward. The locals that are needed at the head of a loop are known only
//! once the loop has been walked, so the walk is repeated until they no longer change: as many
//! times as loops are nested, at most, and once more.

use std::rc::Rc;

use wasmparser::{Catch, Operator};

use super::shape::{Block, Place, Shape};

/// Computes the locals that are live at each site.
pub fn find(shape: &mut Shape) {
    let is_loop = |block: &Block| matches!(shape.ops[block.start].op, Operator::Loop { .. });
    let size = |block| if is_loop(block) { shape.locals.len() } else { 0 };
    let mut heads: Vec<Set> = shape.blocks.iter().map(|block| Set::empty(size(block))).collect();
    loop {
        let (changed, sites) = Walk::new(shape, &mut heads).run();
        if !changed {
            for (site, live) in shape.sites.iter_mut().zip(sites) {
                site.live = live.map_or(Vec::new(), |live| live.members());
            }
            return;
        }
    }
}

/// A set of locals.
#[derive(Clone, PartialEq, Eq)]
struct Set(Vec<u64>);

impl Set {
    fn empty(locals: usize) -> Set {
        Set(vec![0; locals.div_ceil(64)])
    }

    fn insert(&mut self, local: u32) {
        if let Some(word) = self.0.get_mut(local as usize / 64) {
            *word |= 1 << (local % 64);
        }
    }

    fn remove(&mut self, local: u32) {
        if let Some(word) = self.0.get_mut(local as usize / 64) {
            *word &= !(1 << (local % 64));
        }
    }

    fn add(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(word, other)| *word |= other);
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }

    fn members(&self) -> Vec<u32> {
        let bits = |(word, bits): (usize, &u64)| {
            let (base, bits) = (u32::try_from(word * 64).unwrap_or(u32::MAX), *bits);
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| base + bit)
        };
        self.0.iter().enumerate().flat_map(bits).collect()
    }
}

/// A block around the current place of the walk.
struct Open {
    block: Option<usize>,
    /// The locals that are needed where a branch to it goes.
    label: Set,
    /// The locals that are needed at the start of its else.
    otherwise: Option<Set>,
    /// The locals that are needed where an exception thrown in it may be caught.
    caught: Option<Rc<Set>>,
}

struct Walk<'w, 'a> {
    shape: &'w Shape<'a>,
    heads: &'w mut [Set],
    changed: bool,
    sites: Vec<Option<Set>>,
    open: Vec<Open>,
    live: Set,
    /// The block of each instruction that ends one.
    ends: Vec<(usize, usize)>,
}

impl<'w, 'a> Walk<'w, 'a> {
    fn new(shape: &'w Shape<'a>, heads: &'w mut [Set]) -> Self {
        let empty = Set::empty(shape.locals.len());
        let mut ends: Vec<(usize, usize)> = shape.blocks.iter().enumerate().map(|(n, block)| (block.end, n)).collect();
        ends.sort_unstable();
        let sites = vec![None; shape.sites.len()];
        Walk { shape, heads, changed: false, sites, open: Vec::new(), live: empty, ends }
    }

    /// Whether the walk has to be repeated, and the locals that it found.
    fn run(mut self) -> (bool, Vec<Option<Set>>) {
        for at in (0..self.shape.ops.len()).rev() {
            self.step(at);
        }
        (self.changed, self.sites)
    }

    fn step(&mut self, at: usize) {
        let op = &self.shape.ops[at];
        match &op.op {
            Operator::LocalGet { local_index } => self.live.insert(*local_index),
            // A tee writes before anything reads the local again.
            Operator::LocalSet { local_index } | Operator::LocalTee { local_index } => self.live.remove(*local_index),
            Operator::End => self.enter(at),
            Operator::Else => {
                if let Some(open) = self.open.last_mut() {
                    let after = open.label.clone();
                    open.otherwise = Some(std::mem::replace(&mut self.live, after));
                }
            }
            Operator::Block { .. } | Operator::Loop { .. } | Operator::If { .. } | Operator::TryTable { .. } => {
                self.leave(op.place)
            }
            Operator::Br { relative_depth } => {
                self.live.clear();
                self.branch(*relative_depth);
            }
            Operator::BrIf { relative_depth }
            | Operator::BrOnNull { relative_depth }
            | Operator::BrOnNonNull { relative_depth }
            | Operator::BrOnCast { relative_depth, .. }
            | Operator::BrOnCastFail { relative_depth, .. } => self.branch(*relative_depth),
            Operator::BrTable { targets } => {
                self.live.clear();
                targets.targets().map_while(Result::ok).chain([targets.default()]).for_each(|label| self.branch(label));
            }
            Operator::Return
            | Operator::Unreachable
            | Operator::ReturnCall { .. }
            | Operator::ReturnCallIndirect { .. }
            | Operator::ReturnCallRef { .. } => self.live.clear(),
            Operator::Throw { .. } | Operator::ThrowRef => {
                self.live.clear();
                self.throw();
            }
            Operator::Call { .. } | Operator::CallIndirect { .. } | Operator::CallRef { .. } => {
                self.throw();
                if let Place::Site(site) = op.place {
                    self.sites[site] = Some(self.live.clone());
                }
            }
            _ => {}
        }
    }

    /// At the end of a block.
    fn enter(&mut self, at: usize) {
        let block = self.ends.binary_search_by_key(&at, |(end, _)| *end).ok().map(|found| self.ends[found].1);
        let mut caught = self.open.last().and_then(|open| open.caught.clone());
        let mut label = self.live.clone();
        match block.map(|block| &self.shape.ops[self.shape.blocks[block].start].op) {
            Some(Operator::Loop { .. }) => {
                label = block.map_or(label, |block| self.heads[block].clone());
            }
            Some(Operator::TryTable { try_table }) => {
                // An exception that it does not catch goes on to the next.
                let mut all = caught.map_or_else(|| Set::empty(self.shape.locals.len()), |set| (*set).clone());
                for catch in &try_table.catches {
                    let (Catch::One { label, .. }
                    | Catch::OneRef { label, .. }
                    | Catch::All { label }
                    | Catch::AllRef { label }) = catch;
                    if let Some(set) = self.label(*label) {
                        all.add(set);
                    }
                }
                caught = Some(Rc::new(all));
            }
            _ => {}
        }
        self.open.push(Open { block, label, otherwise: None, caught });
    }

    /// At the start of a block.
    fn leave(&mut self, place: Place) {
        let (Some(open), Place::Block(block)) = (self.open.pop(), place) else {
            return;
        };
        debug_assert_eq!(open.block, Some(block));
        match self.shape.ops[self.shape.blocks[block].start].op {
            Operator::If { .. } => self.live.add(open.otherwise.as_ref().unwrap_or(&open.label)),
            Operator::Loop { .. } if self.heads[block] != self.live => {
                self.heads[block] = self.live.clone();
                self.changed = true;
            }
            _ => {}
        }
    }

    fn label(&self, label: u32) -> Option<&Set> {
        Some(&self.open.get(self.open.len().checked_sub(1 + label as usize)?)?.label)
    }

    fn branch(&mut self, label: u32) {
        if let Some(at) = self.open.len().checked_sub(1 + label as usize) {
            self.live.add(&self.open[at].label);
        }
    }

    fn throw(&mut self) {
        if let Some(caught) = self.open.last().and_then(|open| open.caught.as_ref()) {
            self.live.add(caught);
        }
    }
}
