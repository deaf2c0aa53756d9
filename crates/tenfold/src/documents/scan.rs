//! What the pickles of a file would import.

use serde::Serialize;

use super::{Words, line, text};
use crate::ops::{Scan, ScannedImport, ScannedPickle, Verdict};
use crate::prelude::*;

/// `tenfold.scan/1`: the pickles of a file, and everything that each would import.
#[derive(Debug, Serialize)]
pub struct ScanDocument<'a> {
    schema: &'static str,
    file: &'a str,
    #[serde(serialize_with = "text")]
    verdict: Verdict,
    pickles: Vec<Pickle<'a>>,
    unread: Vec<Unread<'a>>,
}

#[derive(Debug, Serialize)]
struct Pickle<'a> {
    member: Option<&'a str>,
    at: u64,
    #[serde(serialize_with = "text")]
    verdict: Verdict,
    globals: Vec<Global<'a>>,
    fault: Option<String>,
}

#[derive(Debug, Serialize)]
struct Global<'a> {
    module: &'a str,
    name: &'a str,
    #[serde(serialize_with = "text")]
    verdict: Verdict,
    could: Option<&'static str>,
    opcode: &'static str,
    at: u64,
    times: u64,
}

#[derive(Debug, Serialize)]
struct Unread<'a> {
    member: Option<&'a str>,
    why: String,
}

impl<'a> ScanDocument<'a> {
    /// The document of what was found in a file.
    pub fn new(file: &'a str, scan: &'a Scan, words: Words) -> Self {
        let unread = scan.unread.iter().map(|(member, error)| Unread {
            member: named(member),
            why: line(error, words),
        });
        Self {
            schema: "tenfold.scan/1",
            file,
            verdict: scan.verdict(),
            pickles: (scan.pickles.iter())
                .map(|pickle| Pickle::new(pickle, words))
                .collect(),
            unread: unread.collect(),
        }
    }
}

impl<'a> Pickle<'a> {
    fn new(pickle: &'a ScannedPickle, words: Words) -> Self {
        Self {
            member: named(&pickle.member),
            at: pickle.at,
            verdict: pickle.verdict(),
            globals: pickle.imports.iter().map(Global::new).collect(),
            fault: pickle.fault.as_ref().map(|fault| line(fault, words)),
        }
    }
}

impl<'a> Global<'a> {
    fn new(import: &'a ScannedImport) -> Self {
        Self {
            module: &import.module,
            name: &import.name,
            verdict: import.verdict,
            could: import.could,
            opcode: import.opcode,
            at: import.at,
            times: import.times,
        }
    }
}

fn named(member: &str) -> Option<&str> {
    (!member.is_empty()).then_some(member)
}
