//! /proc/PID/ns: links by whose text programs tell namespaces apart. They lead nowhere.

use lind_abi::Result;

use super::Subject;
use crate::cage::Names;

pub(super) fn ipc(subject: &Subject<'_>) -> Result<Vec<u8>> {
    /// PROC_IPC_INIT_INO
    const FIRST: u64 = 0xefff_ffff;
    Ok(text("ipc", FIRST, subject.living()?.settings().ipc.number()))
}

pub(super) fn uts(subject: &Subject<'_>) -> Result<Vec<u8>> {
    /// PROC_UTS_INIT_INO
    const FIRST: u64 = 0xefff_fffe;
    Ok(text("uts", FIRST, Names::of(subject.living()?).number()))
}

/// The text of the link to a namespace; `first` is the number that Linux gives the first one.
fn text(kind: &str, first: u64, number: u64) -> Vec<u8> {
    /// PROC_DYNAMIC_FIRST
    const OTHERS: u64 = 0xf000_0000;
    let number = if number == 0 { first } else { OTHERS + number };
    format!("{kind}:[{number}]").into_bytes()
}
