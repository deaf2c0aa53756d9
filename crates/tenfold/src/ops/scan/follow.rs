//! Follows a pickle, and searches what cannot be followed.

use super::ScannedImport;
use super::verdict::judge;
use crate::error::{Error, Result};
use crate::prelude::*;
use crate::wire::pickle::{self, Budget, Import, Place, Policy};

/// Names that one pickle would import, at most.
const MAX_IMPORTS: usize = 100_000;
/// Bytes of a name that are kept.
const MAX_NAME: usize = 1024;

/// Everything that a pickle would import.
#[derive(Default)]
pub(super) struct Imports {
    list: Vec<ScannedImport>,
    known: LookupMap<(String, String), usize>,
}

impl Imports {
    fn add(&mut self, module: &str, name: &str, opcode: &'static str, at: u64) -> Result<()> {
        let cut = |text: &str| text.chars().take(MAX_NAME).collect::<String>();
        let key = (cut(module), cut(name));
        if let Some(import) = self.known.get(&key).and_then(|&at| self.list.get_mut(at)) {
            import.times += 1;
            return Ok(());
        }
        if self.list.len() >= MAX_IMPORTS {
            let message = format!("more than {MAX_IMPORTS} classes and functions");
            return Err(Error::limit("scan.limit", message));
        }
        let (verdict, could) = judge(module, name);
        self.known.insert(key.clone(), self.list.len());
        self.list.push(ScannedImport {
            module: key.0,
            name: key.1,
            verdict,
            could,
            opcode,
            at,
            times: 1,
        });
        Ok(())
    }
}

impl Policy for Imports {
    fn import(&mut self, import: Import<'_>) -> Result<()> {
        let Import {
            module,
            name,
            opcode,
            at,
        } = import;
        self.add(module, name, opcode, at as u64)
    }

    fn may_build(&self, _: &str, _: &str) -> bool {
        true
    }

    fn is_lenient(&self) -> bool {
        true
    }
}

/// What the pickle that some bytes begin with would import, and why it could not be followed to its end.
pub(super) fn follow(bytes: &[u8]) -> (Vec<ScannedImport>, Option<Error>) {
    let mut imports = Imports::default();
    let len = bytes.len() as u64;
    let mut budget = Budget::new(len.saturating_mul(6).saturating_add(1 << 20));
    let run = pickle::run(bytes, &Place::At(0), &mut imports, &mut budget);
    let fault = run.err();
    if let Some(error) = &fault {
        let from = error.range().map_or(0, |(_, range)| range.start);
        // Arrays lie between opcodes in joblib's files, and a loader that skips them goes on.
        let found = search(bytes, usize::try_from(from).unwrap_or(0), &mut imports);
        // A limit on names: those that are there are told.
        drop(found);
    }
    (imports.list, fault)
}

/// Searches bytes for what imports look like, whatever stands between them.
pub(super) fn search(bytes: &[u8], from: usize, imports: &mut Imports) -> Result<()> {
    let rest = bytes.get(from..).unwrap_or_default();
    for (place, byte) in rest.iter().enumerate() {
        let at = from.saturating_add(place);
        let after = rest.get(place.saturating_add(1)..).unwrap_or_default();
        match byte {
            b'c' | b'i' => {
                if let Some((module, name)) = two_lines(after) {
                    let opcode = if *byte == b'c' { "GLOBAL" } else { "INST" };
                    imports.add(module, name, opcode, at as u64)?;
                }
            }
            0x93 => {
                let before = bytes.get(..at).unwrap_or_default();
                if let Some((module, name)) = two_texts(before) {
                    imports.add(module, name, "STACK_GLOBAL", at as u64)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Only the imports that bytes seem to have.
pub(super) fn search_all(bytes: &[u8]) -> Vec<ScannedImport> {
    let mut imports = Imports::default();
    // A limit on names: those that are there are told.
    drop(search(bytes, 0, &mut imports));
    imports.list
}

/// Whether an import has the names of Python: text that is no pickle has others.
pub(super) fn is_plausible(import: &ScannedImport) -> bool {
    dotted(import.module.as_bytes()).is_some() && dotted(import.name.as_bytes()).is_some()
}

/// A module and a name, each on a line.
fn two_lines(bytes: &[u8]) -> Option<(&str, &str)> {
    const LONGEST: usize = 256;
    let line = |bytes: &[u8]| {
        let head = bytes.get(..bytes.len().min(LONGEST)).unwrap_or_default();
        head.iter().position(|byte| *byte == b'\n')
    };
    let first = line(bytes)?;
    let rest = bytes.get(first + 1..)?;
    let second = line(rest)?;
    Some((dotted(bytes.get(..first)?)?, dotted(rest.get(..second)?)?))
}

/// The two short texts that stand before STACK_GLOBAL, perhaps with what remembers them behind each.
fn two_texts(before: &[u8]) -> Option<(&str, &str)> {
    let (rest, name) = text_at_end(before)?;
    let (_, module) = text_at_end(rest)?;
    Some((module, name))
}

/// A text at the end of some bytes, and what lies before it.
fn text_at_end(bytes: &[u8]) -> Option<(&[u8], &str)> {
    // MEMOIZE, or BINPUT and a number.
    let bytes = match bytes {
        [text @ .., 0x94] => text,
        [text @ .., b'q', _] => text,
        text => text,
    };
    for len in 1..=255usize {
        let (head, text) = bytes.split_at_checked(bytes.len().checked_sub(len)?)?;
        if let [rest @ .., 0x8c, count] = head
            && usize::from(*count) == len
        {
            return Some((rest, dotted(text)?));
        }
    }
    None
}

/// A name of Python, perhaps with dots.
fn dotted(bytes: &[u8]) -> Option<&str> {
    let text = core::str::from_utf8(bytes).ok()?;
    let is_name = |part: &str| {
        let mut letters = part.chars();
        letters
            .next()
            .is_some_and(|c| c.is_alphabetic() || c == '_')
            && letters.all(|c| c.is_alphanumeric() || c == '_')
    };
    text.split('.').all(is_name).then_some(text)
}
