//! Answers: JSON, or a head of JSON with columns of numbers behind it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};
use tenfold::Error;
use tenfold::documents::ErrorDocument;

use crate::words;

/// What the bytes of an answer are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A JSON document.
    Json,
    /// A head of JSON and columns, or bytes of a file.
    Binary,
    /// A file to be saved.
    File,
    /// A JSON document that says what is wrong: with the file, or with the question.
    Refusal,
    /// The same about something that is not there.
    Unknown,
}

/// What a question is answered.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// What the bytes are.
    pub kind: Kind,
    /// The answer itself.
    pub bytes: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(document: &impl Serialize) -> Result<Self, Refusal> {
        let bytes = to_json(document)
            .map_err(|_| Refusal::wrong("the answer cannot be written as JSON".into()))?;
        Ok(Self::new(Kind::Json, bytes))
    }

    pub(crate) fn new(kind: Kind, bytes: Vec<u8>) -> Self {
        Self { kind, bytes }
    }
}

/// Why a question is not answered.
#[derive(Debug)]
pub(crate) enum Refusal {
    Library(Error),
    /// The question makes no sense.
    Wrong(String),
    /// What it asks for is not there.
    Unknown(String),
}

impl Refusal {
    pub(crate) fn wrong(message: String) -> Self {
        Refusal::Wrong(message)
    }

    pub(crate) fn unknown(message: String) -> Self {
        Refusal::Unknown(message)
    }

    pub(crate) fn answer(&self) -> Answer {
        let (kind, message, error) = match self {
            Refusal::Library(error) => (Kind::Refusal, words::message(error), Some(error)),
            Refusal::Wrong(message) => (Kind::Refusal, message.clone(), None),
            Refusal::Unknown(message) => (Kind::Unknown, message.clone(), None),
        };
        let document = ErrorDocument::new(None, &message, error, &[], words::words);
        // Texts and numbers are always JSON.
        Answer::new(kind, to_json(&document).unwrap_or_default())
    }
}

fn to_json(document: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    document.serialize(&mut Serializer::with_formatter(&mut bytes, Digits))?;
    Ok(bytes)
}

/// Floating-point numbers in the digits of Rust's own library, which is part of a page in any case: `serde_json` brings a
/// second one, whose tables are a good part of what a browser loads.
struct Digits;

impl Formatter for Digits {
    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, value: f64) -> io::Result<()> {
        write!(writer, "{value:?}")
    }

    fn write_f32<W: ?Sized + Write>(&mut self, writer: &mut W, value: f32) -> io::Result<()> {
        write!(writer, "{value:?}")
    }
}

/// A number as JavaScript holds it; as text where it would be rounded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Int(pub(crate) u64);

impl Serialize for Int {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 < 1 << 53 {
            serializer.serialize_u64(self.0)
        } else {
            serializer.collect_str(&self.0)
        }
    }
}

/// A floating-point number; as text where it is not finite, which JSON does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Float(pub(crate) f64);

impl Serialize for Float {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else {
            serializer.collect_str(&self.0)
        }
    }
}

/// Columns of numbers behind a head: its length in 4 bytes, the head, padding to a multiple of 8, and the columns, each
/// beginning at one.
#[derive(Default)]
pub(crate) struct Columns {
    columns: Vec<Column>,
    data: Vec<u8>,
}

#[derive(Serialize)]
struct Column {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    at: usize,
    count: usize,
}

impl Columns {
    pub(crate) fn f64s(&mut self, name: &'static str, numbers: impl Iterator<Item = f64>) {
        self.push(name, "f64", numbers.map(f64::to_le_bytes));
    }

    pub(crate) fn u32s(&mut self, name: &'static str, numbers: impl Iterator<Item = u64>) {
        let numbers = numbers.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        self.push(name, "u32", numbers.map(u32::to_le_bytes));
    }

    pub(crate) fn bytes(&mut self, name: &'static str, bytes: impl Iterator<Item = u8>) {
        self.push(name, "u8", bytes.map(|byte| [byte]));
    }

    fn push<const N: usize>(
        &mut self,
        name: &'static str,
        kind: &'static str,
        numbers: impl Iterator<Item = [u8; N]>,
    ) {
        let at = self.data.len();
        for number in numbers {
            self.data.extend_from_slice(&number);
        }
        self.columns.push(Column {
            name,
            kind,
            at,
            count: (self.data.len() - at) / N,
        });
        self.data.resize(self.data.len().next_multiple_of(8), 0);
    }

    pub(crate) fn finish(self, head: &impl Serialize) -> Result<Answer, Refusal> {
        #[derive(Serialize)]
        struct Head<'a, H: Serialize> {
            #[serde(flatten)]
            head: &'a H,
            columns: &'a [Column],
        }
        let columns = &self.columns;
        let head = Answer::json(&Head { head, columns })?.bytes;
        // Descriptions of a tensor or of columns: far below 4 GiB.
        let len = u32::try_from(head.len()).unwrap_or(u32::MAX);
        let mut bytes = len.to_le_bytes().to_vec();
        bytes.extend(head);
        bytes.resize(bytes.len().next_multiple_of(8), b' ');
        bytes.extend(self.data);
        Ok(Answer::new(Kind::Binary, bytes))
    }
}
