//! Follows a pickle, and searches what cannot be followed.

use super::ScannedImport;
use super::verdict::{Verdict, judge};
use crate::error::{Error, ErrorKind, Result};
use crate::prelude::*;
use crate::wire::pickle::{self, Budget, Import, Kind, Place, Policy};

/// Names that one pickle would import, at most.
const MAX_IMPORTS: usize = 100_000;
/// Bytes of a name that are kept.
const MAX_NAME: usize = 1024;

/// Everything that a pickle would import.
#[derive(Default)]
pub(super) struct Imports {
    list: Vec<ScannedImport>,
    known: LookupMap<(String, String), usize>,
    /// Whether there are more, whose names are computed.
    are_computed: bool,
    /// Whether the program goes to its end, and calls something on the way.
    calls: bool,
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

    fn computed(&mut self) -> Result<()> {
        self.are_computed = true;
        Ok(())
    }
}

/// What the pickle that some bytes begin with would import, and why it could not be followed to its end; what lies behind
/// that place is searched.
pub(super) fn follow(bytes: &[u8]) -> (Vec<ScannedImport>, Option<Error>) {
    let (mut imports, fault) = run(bytes);
    if let Some(error) = &fault {
        let from = error.range().map_or(0, |(_, range)| range.start);
        // Arrays lie between opcodes in joblib's files, and a loader that skips them goes on.
        search(bytes, usize::try_from(from).unwrap_or(0), &mut imports);
    }
    let fault = fault.or(imports.fault());
    (imports.list, fault)
}

/// The same up to where it cannot be followed, which is where a loader stops too, for bytes that may be no pickle: one that
/// is damaged, or calls nothing, counts if it imports what has the names of Python.
pub(super) fn follow_known(bytes: &[u8]) -> (Vec<ScannedImport>, Option<Error>) {
    let (mut imports, mut fault) = match run(bytes) {
        // Only we stop there.
        (_, Some(error)) if error.kind() == ErrorKind::Limit => return follow(bytes),
        followed => followed,
    };
    fault = fault.or(imports.fault());
    if !imports.calls {
        imports.list.retain(is_plausible);
    }
    (imports.list, fault)
}

fn run(bytes: &[u8]) -> (Imports, Option<Error>) {
    let mut imports = Imports::default();
    let len = bytes.len() as u64;
    let mut budget = Budget::new(len.saturating_mul(6).saturating_add(1 << 20));
    match pickle::run(bytes, &Place::At(0), &mut imports, &mut budget) {
        Ok(tree) => {
            let calls = |kind| tree.nodes(kind).next().is_some();
            imports.calls = calls(Kind::Call) || calls(Kind::New);
            (imports, None)
        }
        Err(fault) => (imports, Some(fault)),
    }
}

impl Imports {
    fn fault(&self) -> Option<Error> {
        let message = "it computes the name of a class or function that it imports";
        self.are_computed
            .then(|| Error::unsupported("scan.computed", message))
    }
}

/// Searches bytes for what imports look like, whatever stands between them. What is found by chance in tensors is left out
/// as far as it does no harm.
fn search(bytes: &[u8], from: usize, imports: &mut Imports) {
    let mut modules = Words::new(bytes);
    let mut names = Words::new(bytes);
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        let found = match byte {
            b'c' => two_lines(at + 1, &mut modules, &mut names).map(|two| (two, "GLOBAL", at)),
            b'i' => two_lines(at + 1, &mut modules, &mut names).map(|two| (two, "INST", at)),
            b'X' | b'U' | 0x8c => {
                two_texts(bytes, at).map(|(two, opcode)| (two, "STACK_GLOBAL", opcode))
            }
            _ => None,
        };
        let Some(((module, name), opcode, at)) = found else {
            continue;
        };
        let is_chance = module.len() < 3 || name.len() < 3;
        if is_chance && judge(module, name).0 < Verdict::Dangerous {
            continue;
        }
        if imports.add(module, name, opcode, at as u64).is_err() {
            // A limit on names: those that are there are told.
            return;
        }
    }
}

/// Only the imports that bytes seem to have.
pub(super) fn search_all(bytes: &[u8]) -> Vec<ScannedImport> {
    let mut imports = Imports::default();
    search(bytes, 0, &mut imports);
    imports.list
}

/// Whether an import has the names of Python: text that is no pickle has others.
fn is_plausible(import: &ScannedImport) -> bool {
    dotted(import.module.as_bytes()).is_some() && dotted(import.name.as_bytes()).is_some()
}

/// Where words end, for places that only go forward: no byte is looked at twice.
struct Words<'b> {
    bytes: &'b [u8],
    end: usize,
}

impl<'b> Words<'b> {
    fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, end: 0 }
    }

    /// The line that begins at a place, if it is a short word, and where the next one begins.
    fn line(&mut self, from: usize) -> Option<(&'b [u8], usize)> {
        const LONGEST: usize = 256;
        self.end = self.end.max(from);
        let rest = self.bytes.get(self.end..)?;
        let is_part =
            |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | 0x80..);
        let len = rest.iter().position(|byte| !is_part(byte));
        self.end += len.unwrap_or(rest.len());
        let line = self.bytes.get(from..self.end)?;
        let is_line = self.bytes.get(self.end) == Some(&b'\n') && line.len() <= LONGEST;
        is_line.then_some((line, self.end + 1))
    }
}

/// A module and a name, each on a line.
fn two_lines<'b>(
    at: usize,
    modules: &mut Words<'b>,
    names: &mut Words<'b>,
) -> Option<(&'b str, &'b str)> {
    let (module, next) = modules.line(at)?;
    let (name, _) = names.line(next)?;
    Some((dotted(module)?, dotted(name)?))
}

/// Two short texts in front of STACK_GLOBAL, perhaps with what remembers them behind each, and where that opcode is.
fn two_texts(bytes: &[u8], at: usize) -> Option<((&str, &str), usize)> {
    let (module, next) = text(bytes, at)?;
    let (name, next) = text(bytes, next)?;
    let is_import = bytes.get(next) == Some(&0x93);
    is_import.then_some(((dotted(module)?, dotted(name)?), next))
}

/// A short text that an opcode says whole, and what lies behind it.
fn text(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let (len, start) = match bytes.get(at..)? {
        [0x8c | b'U', len, ..] => (usize::from(*len), at + 2),
        [b'X', len, 0, 0, 0, ..] => (usize::from(*len), at + 5),
        _ => return None,
    };
    let end = start + len;
    let text = bytes.get(start..end)?;
    let next = match bytes.get(end..)? {
        // MEMOIZE, or BINPUT and a number, or more of them.
        [0x94, ..] => end + 1,
        [b'q', ..] => end + 2,
        [b'r', ..] => end + 5,
        _ => end,
    };
    Some((text, next))
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
