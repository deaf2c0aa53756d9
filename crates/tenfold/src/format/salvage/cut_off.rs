//! A file that ends before its tensors do: which of them are whole, and what becomes of the others.

use crate::error::lists::quoted;
use crate::error::{Error, Result};
use crate::format::Context;
use crate::model::{Payload, SourceId, TensorInfo};
use crate::prelude::*;

/// A file that ends before its tensors do.
pub(crate) struct CutOff {
    /// One of perhaps several files.
    pub(crate) source: SourceId,
    /// Bytes that it has.
    pub(crate) file: u64,
    /// Bytes that its tensors need.
    pub(crate) expected: u64,
    /// What else there is to say of that.
    pub(crate) remark: &'static str,
    /// What is reported where this is refused, if there is more to say.
    pub(crate) error: Option<Error>,
    /// The rule that this breaks.
    pub(crate) rule: &'static str,
    /// The rule of the warning in its place.
    pub(crate) salvaged: &'static str,
}

impl CutOff {
    /// Where it is wanted, leaves the tensors that are whole, gives the others a defect, and warns; else an error that
    /// says which are whole.
    pub(crate) fn settle(&self, cx: &mut Context<'_>, tensors: &mut [TensorInfo]) -> Result<()> {
        let (count, whole) = self.whole(tensors);
        if !cx.salvages() {
            return Err(match count {
                0 => self.error().adding(&whole),
                _ => self.error().leaving(whole),
            });
        }
        for tensor in tensors {
            self.mark(tensor);
        }
        let name = match self.source {
            SourceId::MAIN => None,
            source => cx.name_of(source),
        };
        let name = name.map(|name| format!("{name}: ")).unwrap_or_default();
        let message = format!("{name}{}{whole}", self.message());
        cx.warn_in(
            self.source,
            self.salvaged,
            self.file..self.expected,
            message,
        )
    }

    fn error(&self) -> Error {
        self.error.clone().unwrap_or_else(|| {
            Error::malformed(self.rule, self.message())
                .at_source(self.source, self.file..self.expected)
        })
    }

    fn message(&self) -> String {
        let Self {
            file,
            expected,
            remark,
            ..
        } = self;
        format!("truncated: the file has {file} bytes, its tensors need {expected}{remark}")
    }

    /// How many are whole: `; 2 of 3 tensors are complete: "a", "b"`.
    fn whole(&self, tensors: &[TensorInfo]) -> (usize, String) {
        let whole = tensors
            .iter()
            .filter(|tensor| self.missing(tensor).is_none());
        let count = whole.clone().count();
        let mut message = format!("; {count} of {} tensors are complete", tensors.len());
        if count > 0 {
            let names = whole.map(|tensor| tensor.name.as_str());
            message += &format!(": {}", quoted(names));
        }
        (count, message)
    }

    /// The bytes of a tensor that the file does not have.
    fn missing(&self, tensor: &TensorInfo) -> Option<Range<u64>> {
        let stored = tensor.parts.iter().filter_map(|part| part.payload.stored());
        let mut past = stored.filter(|(source, range)| {
            *source == self.source && !range.is_empty() && range.end > self.file
        });
        past.next()
            .map(|(_, range)| range.start.max(self.file)..range.end)
    }

    fn mark(&self, tensor: &mut TensorInfo) {
        match self.missing(tensor) {
            Some(missing) => tensor.defect = Some(self.defect(tensor, missing)),
            None => self.move_empty(tensor),
        }
    }

    fn defect(&self, tensor: &TensorInfo, missing: Range<u64>) -> Error {
        let parts = tensor.parts.iter();
        let len = parts.fold(0u64, |sum, part| {
            let stored = part.payload.stored();
            sum.saturating_add(stored.map_or(0, |(_, range)| range.end - range.start))
        });
        let message = match len.saturating_sub(missing.end - missing.start) {
            0 => format!("the file is cut off before its {len} bytes"),
            there => format!("the file is cut off, {there} of its {len} bytes are there"),
        };
        Error::malformed(self.rule, message)
            .at_source(self.source, missing)
            .in_tensor(&tensor.name)
    }

    /// Gives a tensor without bytes a place that can be read.
    fn move_empty(&self, tensor: &mut TensorInfo) {
        let end = self.file;
        for part in &mut tensor.parts {
            if let Payload::Raw { source, range } = &mut part.payload
                && *source == self.source
                && range.end > end
            {
                *range = end..end;
            }
        }
    }
}
