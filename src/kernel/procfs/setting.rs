//! Settings in /proc that a process, or a supervisor above it, may write.
//!
//! A write is the whole new value, whatever the position, and takes effect at once. The open file
//! continues to show the text of the moment it was opened.

use lind_abi::{Errno, In, Len, Result};

use super::{Place, Subject, What, system};
use crate::cage::Names;
use crate::call::Ctx;
use crate::lock::Locked;
use crate::mem::PAGE;

/// The longest value.
const LONGEST: usize = 128;

/// OOM_SCORE_ADJ_MAX, and the range of the older file, whose least value means never.
const WORST: i32 = 1000;
const OLD_WORST: i32 = 15;
const OLD_NEVER: i32 = -17;

/// The badness of a process when memory runs out. Kept and inherited: it is the runner that the
/// host would end, with all cages.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct OomScore {
    /// oom_score_adj
    adjustment: i32,
    /// The least that root has set, below which nobody else goes.
    least: i32,
}

/// write(2) to a place that is a setting. All is taken.
///
/// # Errors
/// ENOENT for a process that is gone; EINVAL for no such value; EACCES, EPERM.
pub(crate) fn change(cx: &Ctx<'_>, place: &Place, buf: In<u8>, len: Len) -> Result<usize> {
    let What::Setting(_, set) = place.node().entry.what else { return Err(Errno::EINVAL) };
    let whole = usize::try_from(len.0).map_err(|_| Errno::EINVAL)?;
    let mut bytes = [0; LONGEST];
    let bytes = &mut bytes[..whole.min(LONGEST)];
    cx.copy_in(buf, bytes)?;
    set(&place.subject(cx)?, bytes)?;
    Ok(whole)
}

/// A decimal number with blanks around it.
fn number<T: std::str::FromStr>(bytes: &[u8]) -> Result<T> {
    let text = std::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?;
    text.trim_matches([' ', '\t', '\n', '\0']).parse().map_err(|_| Errno::EINVAL)
}

/// Which mappings a dump of core would hold. Cages never dump any; it is kept and inherited.
pub(super) fn core_filter(subject: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(format!("{:08x}\n", subject.living()?.settings().core_filter).into_bytes())
}

pub(super) fn set_core_filter(subject: &Subject<'_>, bytes: &[u8]) -> Result<()> {
    let text = std::str::from_utf8(bytes).map_err(|_| Errno::EINVAL)?.trim_end_matches(['\n', '\0']);
    let (digits, base) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    let wanted = u32::from_str_radix(digits, base).ok().filter(|_| !digits.starts_with('+')).ok_or(Errno::EINVAL)?;
    // Linux has nine kinds.
    subject.living()?.settings().core_filter = wanted & 0x1ff;
    Ok(())
}

pub(super) fn oom_score_adj(subject: &Subject<'_>) -> Result<Vec<u8>> {
    Ok(format!("{}\n", subject.living()?.settings().oom.adjustment).into_bytes())
}

pub(super) fn set_oom_score_adj(subject: &Subject<'_>, bytes: &[u8]) -> Result<()> {
    let wanted = number(bytes)?;
    if !(-WORST..=WORST).contains(&wanted) {
        return Err(Errno::EINVAL);
    }
    set_oom(subject, wanted)
}

pub(super) fn oom_adj(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let old = match subject.living()?.settings().oom.adjustment {
        WORST => OLD_WORST,
        adjustment => adjustment * -OLD_NEVER / WORST,
    };
    Ok(format!("{old}\n").into_bytes())
}

pub(super) fn set_oom_adj(subject: &Subject<'_>, bytes: &[u8]) -> Result<()> {
    let old: i32 = number(bytes)?;
    match old {
        OLD_WORST => set_oom(subject, WORST),
        OLD_NEVER..OLD_WORST => set_oom(subject, old * WORST / -OLD_NEVER),
        _ => Err(Errno::EINVAL),
    }
}

fn set_oom(subject: &Subject<'_>, wanted: i32) -> Result<()> {
    let is_root = subject.cx.cage.settings().credentials.fsuid == 0;
    let oom = &mut subject.living()?.settings().oom;
    if wanted < oom.least && !is_root {
        return Err(Errno::EACCES);
    }
    oom.adjustment = wanted;
    if is_root {
        oom.least = wanted;
    }
    Ok(())
}

/// The likelihood of the process being chosen: by its memory and the setting.
pub(super) fn oom_score(subject: &Subject<'_>) -> Result<Vec<u8>> {
    let cage = subject.living()?;
    let adjustment = i64::from(cage.settings().oom.adjustment);
    let resident = super::mappings::pages(&cage.memory).resident;
    let share = resident.saturating_mul(1000) / (system::total_memory(subject) / PAGE).max(1);
    let points = if adjustment == i64::from(-WORST) { -1000 } else { i64::try_from(share).unwrap_or(0) + adjustment };
    Ok(format!("{}\n", ((1000 + points) * 2 / 3).max(0)).into_bytes())
}

/// comm: the name of a thread, which its own process may set.
pub(super) fn set_comm(subject: &Subject<'_>, bytes: &[u8]) -> Result<()> {
    let cage = subject.living()?;
    if cage.id != subject.cx.cage.id {
        return Err(Errno::EINVAL);
    }
    let thread = subject.thread.clone().or_else(|| cage.thread(cage.id.0)).ok_or(Errno::ESRCH)?;
    let mut name = [0; 16];
    let len = bytes.len().min(15);
    name[..len].copy_from_slice(&bytes[..len]);
    *thread.name.locked() = name;
    Ok(())
}

pub(super) fn set_timer_slack(subject: &Subject<'_>, bytes: &[u8]) -> Result<()> {
    let wanted = number(bytes)?;
    subject.living()?.settings().set_timer_slack(wanted);
    Ok(())
}

pub(super) fn set_hostname(subject: &Subject<'_>, bytes: &[u8]) -> Result<()> {
    Names::of(subject.cx.cage).set_host(line(bytes));
    Ok(())
}

pub(super) fn set_domainname(subject: &Subject<'_>, bytes: &[u8]) -> Result<()> {
    Names::of(subject.cx.cage).set_domain(line(bytes));
    Ok(())
}

/// The text before the first end of a line.
fn line(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| matches!(byte, b'\n' | 0)).next().unwrap_or_default()
}
