//! The configuration of srt, the Anthropic Sandbox Runtime.

use anyhow::Result;
use serde_json::{Map, Value};

use super::draft::Draft;
use super::json::{note_keys, parsed};
use super::sandboxed::{KEYS, Sandbox, take};
use crate::plan::source::Source;

/// Reads a configuration.
///
/// # Errors
/// A mistake in it.
pub fn read(source: &Source<'_>, draft: &mut Draft) -> Result<()> {
    let sandbox: Sandbox = parsed(source)?;
    let table: Map<String, Value> = parsed(source)?;
    take(&sandbox, "", |_, path| vec![path.to_owned()], draft)?;
    note_keys(draft, "", &table, KEYS);
    draft.settle()
}
