//! Describes the record that a frame waiting at a site writes when it is left, and emits the code
//! that writes it.
//!
//! Behind each site is its *pad*: a branch over it is taken unless the stack is left. Pads are
//! written so that the compiler's register allocator is disturbed as little as possible
//! (`docs/fork.md`, "What it costs"). A value that is needed at many sites is stored by code at the
//! end of the function that all its pads lead to: to the allocator it is alive from site to pad to
//! there, as it is from site to site. If it were last used in each pad, its life would be in so
//! many pieces that the allocator gives up joining it with its life before and behind loops, and
//! moves it from place to place instead. And pads store, since the arguments of a call must be in
//! certain registers, for whose sake a value's life would be split also in code that runs.

use std::collections::HashMap;

use anyhow::Result;
use wasm_encoder::{BlockType, InstructionSink, ValType};

use super::emit::Slots;
use super::runtime::{self, Runtime, zero};
use super::shape::{Shape, Site};
use super::values;

/// The most values that a helper returns.
const CHUNK: usize = 64;

/// A value of a frame: its type and its local.
pub type Value = (ValType, u32);

/// The frames of a function at all its sites.
pub struct Frames {
    /// The values needed at a quarter of the sites or more; at a site that does not need one, it is
    /// 0 in the record.
    shared: Vec<Value>,
    pub sites: Vec<Saved>,
    /// In the pads and behind them: the address of the record, and its number.
    base: u32,
    number: u32,
    /// The number of pads at the end of the function.
    outside: u32,
    /// The local for the last result of a call, by its type.
    results: HashMap<ValType, u32>,
}

/// The values that a frame waiting at a site has to write.
pub struct Saved {
    pub site: u32,
    /// The shared values that it does not need.
    missing: Vec<Value>,
    own: Vec<Value>,
    /// The number of its pad, from the first, if that is at the end of the function: an exception
    /// leads there as well.
    outside: Option<u32>,
}

impl Frames {
    /// `tried` tells the sites at which an exception may be caught.
    pub fn of(shape: &Shape, slots: &mut Slots, tried: impl Fn(&Site) -> bool) -> Frames {
        let needed: Vec<(u32, bool, Vec<Value>)> = shape
            .numbered()
            .map(|(number, site)| {
                let locals = site.live.iter().map(|local| (shape.locals[*local as usize], *local));
                let operands = site.stack.below.iter().copied().enumerate().map(|(at, ty)| (ty, slots.of((at, ty))));
                let mut values: Vec<Value> = locals.chain(operands).collect();
                values.sort_unstable();
                (number, tried(site), values)
            })
            .collect();
        let shared = often(&needed);
        let mut outside = 0;
        let sites = needed.into_iter().map(|(site, tried, values)| {
            let (missing, own) = apart(&shared, &values);
            let at = tried.then_some(outside);
            outside += u32::from(tried);
            Saved { site, missing, own, outside: at }
        });
        let sites = sites.collect();
        let integers = [ValType::I32, ValType::I64];
        let used = |ty: &ValType| shape.numbered().any(|(_, site)| site.results.last() == Some(ty));
        let results = integers.into_iter().filter(used).map(|ty| (ty, slots.fresh(ty))).collect();
        Frames { shared, sites, base: slots.fresh(ValType::I32), number: slots.fresh(ValType::I32), outside, results }
    }

    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// A site's values in the order of the record.
    pub fn values(&self, saved: &Saved) -> Vec<Value> {
        self.shared.iter().chain(&saved.own).copied().collect()
    }

    /// The number of labels that `open` opens.
    pub fn labels(&self) -> u32 {
        self.outside + 2
    }

    /// Opens a block for the code that all pads share, one for each pad at the end, the last one's
    /// outermost, and one for the function itself.
    pub fn open(&self, sink: &mut InstructionSink, shape: &Shape, runtime: &mut Runtime) {
        for _ in 0..=self.outside {
            sink.block(BlockType::Empty);
        }
        sink.block(runtime.block_type(&[], &shape.results));
    }

    /// Emits the code behind the function: the way out for a normal return, the pads at the end,
    /// and the code that all pads share.
    pub fn close(&self, sink: &mut InstructionSink, shape: &Shape, runtime: &Runtime) -> Result<()> {
        sink.end().return_();
        let at_end = self.sites.iter().filter_map(|saved| Some((saved, saved.outside?)));
        for (saved, place) in at_end {
            sink.end();
            self.pad(sink, saved, self.outside - 1 - place, runtime)?;
        }
        sink.end();
        sink.local_get(self.base).local_get(self.number);
        values::store(sink, ValType::I32, 0);
        for (value, offset) in self.shared.iter().zip(runtime.offsets(&self.shared)?.0) {
            store(sink, self.base, *value, offset);
        }
        runtime::left(sink, &shape.results);
        Ok(())
    }

    /// The label of a site's pad, if it is at the end. `labels` counts the open labels, those of
    /// `open` included.
    pub fn label(&self, saved: &Saved, labels: u32) -> Option<u32> {
        saved.outside.map(|place| labels - 1 - self.outside + place)
    }

    /// Emits the code behind the call: to the pad, if the callee was left.
    pub fn leave(
        &self,
        sink: &mut InstructionSink,
        (saved, results): (&Saved, &[ValType]),
        labels: u32,
        runtime: &mut Runtime,
    ) -> Result<()> {
        if let Some(label) = self.label(saved, labels) {
            runtime.staying(sink).i32_eqz().br_if(label);
            return Ok(());
        }
        sink.block(runtime.block_type(results, results));
        let last = results.last().and_then(|ty| Some((*ty, *self.results.get(ty)?)));
        runtime.go_on(sink, last);
        // The label of the outermost block, with the block's own.
        self.pad(sink, saved, labels, runtime)?;
        sink.end();
        Ok(())
    }

    fn pad(&self, sink: &mut InstructionSink, saved: &Saved, common: u32, runtime: &Runtime) -> Result<()> {
        for (ty, local) in &saved.missing {
            zero(sink, *ty);
            sink.local_set(*local);
        }
        let (offsets, size) = runtime.offsets(&self.values(saved))?;
        sink.global_get(runtime.top).i32_const(size).i32_sub().local_tee(self.base).global_set(runtime.top);
        for (value, offset) in saved.own.iter().zip(&offsets[self.shared.len()..]) {
            store(sink, self.base, *value, *offset);
        }
        sink.i32_const(runtime.record(saved.site)?).local_set(self.number).br(common);
        Ok(())
    }
}

/// The values in the pieces that helpers return: the first piece with the record's number, which
/// lies lowest, and those behind it.
pub fn pieces(values: &[Value]) -> (&[Value], impl Iterator<Item = &[Value]>) {
    let (first, rest) = values.split_at(values.len().min(CHUNK));
    (first, rest.chunks(CHUNK))
}

/// The types of values.
pub fn types(values: &[Value]) -> Vec<ValType> {
    values.iter().map(|(ty, _)| *ty).collect()
}

/// The values that are needed at a quarter of the sites.
fn often(needed: &[(u32, bool, Vec<Value>)]) -> Vec<Value> {
    let mut all: Vec<Value> = needed.iter().flat_map(|(_, _, values)| values.iter().copied()).collect();
    all.sort_unstable();
    all.chunk_by(|a, b| a == b).filter(|same| same.len() * 4 >= needed.len()).map(|same| same[0]).collect()
}

/// The shared values that are not among these, and the values that are not shared. Both are sorted.
fn apart(shared: &[Value], values: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let missing = shared.iter().filter(|value| values.binary_search(value).is_err()).copied().collect();
    let own = values.iter().filter(|value| shared.binary_search(value).is_err()).copied().collect();
    (missing, own)
}

fn store(sink: &mut InstructionSink, base: u32, (ty, local): Value, offset: u64) {
    sink.local_get(base).local_get(local);
    values::store(sink, ty, offset);
}
