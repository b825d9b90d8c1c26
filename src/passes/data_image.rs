//! The data-image pass: the contents of a program's memory when its code begins, computed once and
//! stored in the module.
//!
//! Data segments are passive. The linker's start function copies them to their places and fills
//! variables without a value with zeroes, unless a word of memory shows that another instance has
//! done so: at each start of a program, all those pages would be made and written. So the start
//! function is interpreted here, and the memory that it leaves becomes the custom section
//! [`SECTION`], whose pages the runner maps privately. That word is in it: the start function still
//! runs, and finds nothing to do.
//!
//! The pass does not rely on the form of the function. It is interpreted twice, on empty memory and
//! on the memory that the first run has left. The image is only used if the second run changes
//! nothing, and leaves globals and segments as the first did. One global may differ, `__tls_base`,
//! because the runner can set it: it is exported. A function of other instructions than the few
//! below (calls and loops are not among them), or one that touches memory outside the data, has no
//! image, and the program starts as its module says.

mod pages;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU32;
use std::ops::Range;

use anyhow::Result;
use wasmparser::{
    BlockType, ConstExpr, ExternalKind, FunctionBody, MemArg, Operator, Parser, Payload, TypeRef, ValType,
};

use crate::module::Module;
use pages::{PAGE, Pages, Span};

/// The section: `__tls_base` (0 to leave it), how many spans, first page and number of pages of
/// each (all u32, little-endian), and then the pages of the spans, one after the other. Spans
/// ascend.
const SECTION: &str = "lind.data";

/// The global that the runner sets for the first instance.
const TLS_BASE: &str = "__tls_base";

/// The lowest address where data can begin (`wasm-ld --global-base`).
const FIRST: u64 = 0x10000;
/// A function that touches fewer bytes has no image: mappings cost time, both at a start and at
/// each fork.
const LEAST_BYTES: u64 = 32 << 10;
/// The most bytes that the function may write.
const MOST_BYTES: u64 = 64 << 20;
/// The most instructions it may have.
const MOST_STEPS: usize = 1024;
/// The most spans: each is a mapping of the host's.
const MOST_SPANS: usize = 32;

/// Writes the section, replacing an existing one.
pub fn attach(module: &mut Module<'_>) -> Result<()> {
    module.remove_custom(|name| name == SECTION);
    if let Some(image) = DataImage::of(&module.finish()?) {
        module.add_custom(SECTION, &image.to_bytes());
    }
    Ok(())
}

/// The memory a program begins with.
#[derive(Debug)]
struct DataImage {
    /// The addresses of the pages, ascending.
    spans: Vec<Span>,
    /// The value of `__tls_base` in the first instance.
    tls_base: Option<NonZeroU32>,
    /// The pages, in this order.
    pages: Vec<u8>,
}

impl DataImage {
    /// Computes the image of a valid module. None if the module has to run its start function.
    fn of(wasm: &[u8]) -> Option<DataImage> {
        let start = Start::read(wasm)?;
        let data = FIRST..u64::from(start.heap_base?).next_multiple_of(PAGE);
        let first = Machine::run(&start, &data, Pages::default())?;
        if first.written + first.cleared < LEAST_BYTES {
            return None;
        }
        let second = Machine::run(&start, &data, first.pages.clone())?;
        if second.pages != first.pages || second.dropped != first.dropped {
            return None;
        }
        let mut tls_base = None;
        for global in first.globals.keys().chain(second.globals.keys()) {
            let value = first.globals.get(global);
            if value == second.globals.get(global) {
                continue;
            }
            if Some(*global) != start.tls_base {
                return None;
            }
            tls_base = Some(NonZeroU32::new(*value?)?);
        }
        let spans = first.pages.spans();
        if spans.is_empty() || spans.len() > MOST_SPANS {
            return None;
        }
        let pages = first.pages.bytes(&spans);
        Some(DataImage { spans, tls_base, pages })
    }

    /// The bytes of the section.
    fn to_bytes(&self) -> Vec<u8> {
        let tls_base = self.tls_base.map_or(0, NonZeroU32::get);
        let count = u32::try_from(self.spans.len()).expect("at most MOST_SPANS");
        let spans = self.spans.iter().flat_map(|span| [span.first, span.pages]);
        let mut bytes: Vec<u8> = [tls_base, count].into_iter().chain(spans).flat_map(u32::to_le_bytes).collect();
        bytes.extend_from_slice(&self.pages);
        bytes
    }
}

/// An instruction.
enum Step {
    Nothing,
    Block,
    End,
    Branch(u32),
    BranchIf(u32),
    BranchTable(Vec<u32>, u32),
    Return,
    Push(u64),
    Drop,
    SetGlobal(u32),
    Init(u32),
    Fill,
    DropData(u32),
    Store(u64),
    CompareExchange(u64),
    Notify(u64),
    /// An instruction that no run may reach.
    Wait,
}

impl Step {
    fn read(operator: &Operator<'_>) -> Option<Step> {
        let offset = |memarg: &MemArg| (memarg.memory == 0).then_some(memarg.offset);
        Some(match operator {
            Operator::Nop => Step::Nothing,
            Operator::Block { blockty: BlockType::Empty } => Step::Block,
            Operator::End => Step::End,
            Operator::Br { relative_depth } => Step::Branch(*relative_depth),
            Operator::BrIf { relative_depth } => Step::BranchIf(*relative_depth),
            Operator::BrTable { targets } => {
                Step::BranchTable(targets.targets().collect::<Result<_, _>>().ok()?, targets.default())
            }
            Operator::Return => Step::Return,
            Operator::I32Const { value } => Step::Push(u64::from(value.cast_unsigned())),
            Operator::I64Const { value } => Step::Push(value.cast_unsigned()),
            Operator::Drop => Step::Drop,
            Operator::GlobalSet { global_index } => Step::SetGlobal(*global_index),
            Operator::MemoryInit { data_index, mem: 0 } => Step::Init(*data_index),
            Operator::MemoryFill { mem: 0 } => Step::Fill,
            Operator::DataDrop { data_index } => Step::DropData(*data_index),
            Operator::I32AtomicStore { memarg } => Step::Store(offset(memarg)?),
            Operator::I32AtomicRmwCmpxchg { memarg } => Step::CompareExchange(offset(memarg)?),
            Operator::MemoryAtomicNotify { memarg } => Step::Notify(offset(memarg)?),
            Operator::MemoryAtomicWait32 { .. } => Step::Wait,
            _ => return None,
        })
    }
}

/// A module's start function and what it refers to.
#[derive(Default)]
struct Start<'w> {
    steps: Vec<Step>,
    segments: Vec<&'w [u8]>,
    /// For each global, whether it is a variable of type i32.
    globals: Vec<bool>,
    /// The value of each global that begins with a constant.
    values: Vec<Option<u32>>,
    tls_base: Option<u32>,
    heap_base: Option<u32>,
}

impl<'w> Start<'w> {
    fn read(wasm: &'w [u8]) -> Option<Start<'w>> {
        let (mut function, mut imported, mut bodies) = (None, 0_u32, 0_u32);
        let mut start = Start::default();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload.ok()? {
                Payload::ImportSection(reader) => {
                    for import in reader.into_imports() {
                        let TypeRef::Func(_) = import.ok()?.ty else { return None };
                        imported += 1;
                    }
                }
                Payload::GlobalSection(reader) => {
                    for global in reader {
                        let global = global.ok()?;
                        start.globals.push(global.ty.mutable && global.ty.content_type == ValType::I32);
                        start.values.push(constant(&global.init_expr));
                    }
                }
                Payload::ExportSection(reader) => {
                    for export in reader {
                        let export = export.ok()?;
                        if export.kind == ExternalKind::Global {
                            match export.name {
                                TLS_BASE => start.tls_base = Some(export.index),
                                "__heap_base" => {
                                    start.heap_base = *start.values.get(usize::try_from(export.index).ok()?)?;
                                }
                                _ => {}
                            }
                        }
                    }
                }
                Payload::StartSection { func, .. } => function = Some(func),
                Payload::CodeSectionEntry(body) => {
                    if function.and_then(|function: u32| function.checked_sub(imported)) == Some(bodies) {
                        start.steps = steps(&body)?;
                    }
                    bodies += 1;
                }
                Payload::DataSection(reader) => {
                    for segment in reader {
                        start.segments.push(segment.ok()?.data);
                    }
                }
                _ => {}
            }
        }
        function.map(|_| start)
    }
}

fn constant(value: &ConstExpr<'_>) -> Option<u32> {
    match value.get_operators_reader().read().ok()? {
        Operator::I32Const { value } => Some(value.cast_unsigned()),
        _ => None,
    }
}

fn steps(body: &FunctionBody<'_>) -> Option<Vec<Step>> {
    let mut steps = Vec::new();
    for operator in body.get_operators_reader().ok()? {
        if steps.len() == MOST_STEPS {
            return None;
        }
        steps.push(Step::read(&operator.ok()?)?);
    }
    Some(steps)
}

/// The state of one run of the start function: memory, globals and segments.
struct Machine<'s> {
    start: &'s Start<'s>,
    data: &'s Range<u64>,
    pages: Pages,
    globals: BTreeMap<u32, u32>,
    dropped: BTreeSet<u32>,
    stack: Vec<u64>,
    written: u64,
    cleared: u64,
}

impl<'s> Machine<'s> {
    /// Runs the function on memory that holds `pages`. It ends, as every branch leads forward. None
    /// if it traps, or uses an unknown instruction.
    fn run(start: &'s Start<'s>, data: &'s Range<u64>, pages: Pages) -> Option<Machine<'s>> {
        let (globals, dropped) = (BTreeMap::new(), BTreeSet::new());
        let mut machine = Machine { start, data, pages, globals, dropped, stack: Vec::new(), written: 0, cleared: 0 };
        // The height of the stack at the beginning of each block around the instruction.
        let mut blocks = Vec::new();
        let mut at = 0;
        loop {
            let step = start.steps.get(at)?;
            at += 1;
            let branch = match step {
                Step::Block => {
                    blocks.push(machine.stack.len());
                    continue;
                }
                // The end of a block, or of the function.
                Step::End => match blocks.pop() {
                    Some(_) => continue,
                    None => break,
                },
                Step::Return => break,
                Step::Branch(depth) => Some(*depth),
                Step::BranchIf(depth) => (machine.pop32()? != 0).then_some(*depth),
                Step::BranchTable(targets, default) => {
                    let index = usize::try_from(machine.pop32()?).ok()?;
                    Some(*targets.get(index).unwrap_or(default))
                }
                step => {
                    machine.step(step)?;
                    None
                }
            };
            let Some(depth) = branch else { continue };
            let Some(target) = blocks.len().checked_sub(usize::try_from(depth).ok()? + 1) else { break };
            machine.stack.truncate(blocks[target]);
            at = start.after(at, blocks.len() - target)?;
            blocks.truncate(target);
        }
        machine.pages.forget_empty();
        Some(machine)
    }

    fn step(&mut self, step: &Step) -> Option<()> {
        match *step {
            Step::Nothing => {}
            Step::Push(value) => self.stack.push(value),
            Step::Drop => {
                self.stack.pop()?;
            }
            Step::SetGlobal(global) => {
                let known = self.start.globals.get(usize::try_from(global).ok()?)?;
                let value = self.pop32()?;
                known.then(|| self.globals.insert(global, value))?;
            }
            Step::Init(segment) => self.init(segment)?,
            Step::Fill => {
                let (len, byte, to) = (self.pop32()?, self.pop32()?, self.pop32()?);
                let range = self.range(u64::from(to), u64::from(len))?;
                match byte.to_le_bytes()[0] {
                    0 => {
                        self.cleared += u64::from(len);
                        self.pages.clear(range);
                    }
                    byte => {
                        self.count(u64::from(len))?;
                        self.pages.each(range, |part| part.fill(byte));
                    }
                }
            }
            Step::DropData(segment) => {
                self.dropped.insert(segment);
            }
            Step::Store(offset) => {
                let value = self.pop32()?;
                let word = self.word(offset)?;
                self.pages.write(word, &value.to_le_bytes());
            }
            Step::CompareExchange(offset) => {
                let (new, expected) = (self.pop32()?, self.pop32()?);
                let word = self.word(offset)?;
                let found = self.pages.load(word);
                if found == expected {
                    self.pages.write(word, &new.to_le_bytes());
                }
                self.stack.push(u64::from(found));
            }
            Step::Notify(offset) => {
                self.pop32()?;
                self.word(offset)?;
                // Nobody waits, since this is the first instance.
                self.stack.push(0);
            }
            Step::Block
            | Step::End
            | Step::Branch(_)
            | Step::BranchIf(_)
            | Step::BranchTable(..)
            | Step::Return
            | Step::Wait => return None,
        }
        Some(())
    }

    fn init(&mut self, segment: u32) -> Option<()> {
        let (len, from, to) = (self.pop32()?, self.pop32()?, self.pop32()?);
        let bytes = *self.start.segments.get(usize::try_from(segment).ok()?)?;
        let bytes = if self.dropped.contains(&segment) { &[] } else { bytes };
        let from = usize::try_from(from).ok()?;
        let bytes = bytes.get(from..from.checked_add(usize::try_from(len).ok()?)?)?;
        let range = self.range(u64::from(to), u64::from(len))?;
        self.count(u64::from(len))?;
        self.pages.write(range.start, bytes);
        Some(())
    }

    fn pop32(&mut self) -> Option<u32> {
        u32::try_from(self.stack.pop()?).ok()
    }

    /// The address of an aligned word of data.
    fn word(&mut self, offset: u64) -> Option<u64> {
        let address = u64::from(self.pop32()?).checked_add(offset)?;
        self.count(4)?;
        self.range(address, 4).filter(|word| word.start.is_multiple_of(4)).map(|word| word.start)
    }

    /// A range within the data: these pages are mapped when the function runs.
    fn range(&self, start: u64, len: u64) -> Option<Range<u64>> {
        let range = start..start.checked_add(len)?;
        (self.data.start <= range.start && range.end <= self.data.end).then_some(range)
    }

    fn count(&mut self, bytes: u64) -> Option<()> {
        self.written += bytes;
        (self.written <= MOST_BYTES).then_some(())
    }
}

impl Start<'_> {
    /// The instruction behind the `blocks`th end of a block from `at`.
    fn after(&self, at: usize, blocks: usize) -> Option<usize> {
        let mut open = blocks;
        for (index, step) in self.steps.iter().enumerate().skip(at) {
            match step {
                Step::Block => open += 1,
                Step::End => open -= 1,
                _ => {}
            }
            if open == 0 {
                return Some(index + 1);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
