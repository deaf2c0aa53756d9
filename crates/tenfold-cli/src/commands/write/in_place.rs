//! The file itself is changed, and no other one written.

use tenfold::documents::Written;
use tenfold::format::Entry;
use tenfold::ops::Conversion;

use super::Request;
use super::summary::Summary;
use crate::failure::{Exit, Result};
use crate::output::{Out, say, show_path, size};

impl Request<'_> {
    /// Changes the index of the file, unless that is only to be tried, and says what was done.
    pub(super) fn edit_in_place(
        &self,
        target: &Entry,
        conversion: Conversion,
        extra: Written<'_>,
        out: &mut Out<'_>,
    ) -> Result<Exit> {
        let summary = Summary::new(self, target, Vec::new(), &conversion);
        let file = show_path(self.output);
        let edited = if self.writing.dry_run {
            None
        } else {
            let edited = conversion.edit_in_place(!self.writing.no_sync);
            Some(edited.map_err(|error| self.about(&error))?)
        };
        if !self.writing.quiet {
            match &edited {
                None => say(format_args!(
                    "{file} would be edited in place; nothing was written"
                )),
                Some(edited) => say(format_args!(
                    "{file}: edited in place, {} of {} written in {:.2} s",
                    size(edited.written),
                    size(edited.len),
                    self.started.elapsed().as_secs_f64()
                )),
            }
        }
        if self.writing.json {
            let written = edited.map(|edited| edited.written);
            let extra = Written {
                in_place: Some(written.unwrap_or(0)),
                ..extra
            };
            summary.write_json(None, extra, out)?;
        }
        Ok(Exit::Done)
    }
}
