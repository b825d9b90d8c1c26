//! The texts of /proc about the mappings of a process: maps, smaps, statm.

use std::fmt::Write;
use std::ops::Range;

use lind_abi::Result;

use super::Subject;
use super::process::LONGEST;
use crate::mem::{Memory, PAGE, Region, Use};

pub(super) fn maps(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let cage = subject.cage()?;
    let mut text = String::new();
    if cage.is_dead() {
        return Ok(Vec::new());
    }
    for (range, region) in cage.memory.map().regions().filter(|(_, region)| region.usage != Use::Guard) {
        mapping(&mut text, &range, region);
    }
    Ok(text.into_bytes())
}

fn mapping(text: &mut String, range: &Range<u64>, region: &Region) {
    let flag = |bit: u32, letter: char| if region.prot & bit != 0 { letter } else { '-' };
    let shared = if region.shared { 's' } else { 'p' };
    let name = match region.usage {
        Use::Heap => "[heap]",
        Use::Stack => "[stack]",
        _ => "",
    };
    let (r, w, x) = (flag(1, 'r'), flag(2, 'w'), flag(4, 'x'));
    let _ = write!(text, "{:08x}-{:08x} {r}{w}{x}{shared} 00000000 00:00 0 ", range.start, range.end);
    let _ = if name.is_empty() { writeln!(text) } else { writeln!(text, "                         {name}") };
}

/// The resident parts of mappings, in KiB.
#[derive(Default)]
struct Resident {
    shared: u64,
    private: u64,
    anonymous: u64,
    locked: u64,
}

impl Resident {
    fn add(&mut self, memory: &Memory, range: &Range<u64>, region: &Region) {
        let here = resident(memory, range) * PAGE / 1024;
        *(if region.shared { &mut self.shared } else { &mut self.private }) += here;
        self.anonymous += if region.is_plain() { here } else { 0 };
        self.locked += if region.locked { here } else { 0 };
    }

    /// The number of sharers of a page is not known: each page is counted whole. Nothing here is
    /// known to be clean.
    fn write(&self, text: &mut String) {
        let all = self.shared + self.private;
        let rows = [
            ("Rss", all),
            ("Pss", all),
            ("Pss_Dirty", all),
            ("Shared_Clean", 0),
            ("Shared_Dirty", self.shared),
            ("Private_Clean", 0),
            ("Private_Dirty", self.private),
            ("Referenced", all),
            ("Anonymous", self.anonymous),
            ("Swap", 0),
            ("SwapPss", 0),
            ("Locked", self.locked),
        ];
        rows.iter().for_each(|(name, kib)| row(text, name, *kib));
    }
}

fn row(text: &mut String, name: &str, kib: u64) {
    let _ = writeln!(text, "{:<16}{kib:8} kB", format!("{name}:"));
}

pub(super) fn smaps(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let memory = &subject.cage()?.memory;
    let mut text = String::new();
    let map = memory.map();
    for (range, region) in map.regions().filter(|(_, region)| region.usage != Use::Guard) {
        // Each open file keeps its text: ten thousand mappings say no more than this.
        if text.len() as u64 > LONGEST {
            break;
        }
        mapping(&mut text, &range, region);
        row(&mut text, "Size", (range.end - range.start) / 1024);
        row(&mut text, "KernelPageSize", PAGE / 1024);
        row(&mut text, "MMUPageSize", PAGE / 1024);
        let mut found = Resident::default();
        found.add(memory, &range, region);
        found.write(&mut text);
        let flags =
            [(1, "rd "), (2, "wr "), (4, "ex ")].map(|(bit, name)| if region.prot & bit != 0 { name } else { "" });
        let shared = if region.shared { "sh " } else { "" };
        let locked = if region.locked { "lo " } else { "" };
        let _ = writeln!(text, "VmFlags: {}{shared}mr mw me {locked}", flags.concat());
    }
    Ok(text.into_bytes())
}

pub(super) fn smaps_rollup(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let memory = &subject.cage()?.memory;
    let map = memory.map();
    let mut found = Resident::default();
    let (mut start, mut end) = (u64::MAX, 0);
    for (range, region) in map.regions().filter(|(_, region)| region.usage != Use::Guard) {
        (start, end) = (start.min(range.start), end.max(range.end));
        found.add(memory, &range, region);
    }
    let mut text = format!("{:08x}-{end:08x} ---p 00000000 00:00 0 {:26}[rollup]\n", start.min(end), "");
    found.write(&mut text);
    Ok(text.into_bytes())
}

/// Pages that are mapped, resident, shared, and of data and stack.
pub(super) struct Pages {
    pub size: u64,
    pub resident: u64,
    pub shared: u64,
    pub data: u64,
    pub stack: u64,
}

pub(super) fn pages(memory: &Memory) -> Pages {
    let mut pages = Pages { size: 0, resident: 0, shared: 0, data: 0, stack: 0 };
    let map = memory.map();
    for (range, region) in map.regions().filter(|(_, region)| region.usage != Use::Guard) {
        let count = (range.end - range.start) / PAGE;
        pages.size += count;
        match region.usage {
            Use::Stack => pages.stack += count,
            Use::Data | Use::Heap | Use::Worker => pages.data += count,
            _ if region.prot & 2 != 0 && !region.shared => pages.data += count,
            _ => {}
        }
        let here = resident(memory, &range);
        pages.resident += here;
        pages.shared += if region.shared { here } else { 0 };
    }
    pages
}

/// How many pages of a range are resident.
fn resident(memory: &Memory, range: &Range<u64>) -> u64 {
    let mut present = [0_u8; 1024];
    let (mut at, mut found) = (range.start, 0);
    while at < range.end {
        let part = (range.end - at).min(present.len() as u64 * PAGE);
        let present = &mut present[..usize::try_from(part / PAGE).unwrap_or(0)];
        if memory.guest.resident(at, part, present).is_ok() {
            found += present.iter().filter(|&&page| page & 1 != 0).count() as u64;
        }
        at += part;
    }
    found
}

pub(super) fn statm(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let Pages { size, resident, shared, data, stack } = pages(&subject.cage()?.memory);
    Ok(format!("{size} {resident} {shared} 0 0 {} 0\n", data + stack).into_bytes())
}
