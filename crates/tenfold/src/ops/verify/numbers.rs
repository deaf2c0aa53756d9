//! Numbers that are allowed but seldom intended.

use crate::archive::{Archive, Tensor};
use crate::error::{Error, Result};
use crate::format::{Finding, Severity};
use crate::ops::stats::{StatsOptions, stats};
use crate::ops::verify::{Checked, Verified, VerifyOptions};
use crate::prelude::*;

/// Warnings about numbers that a sound model seldom has: NaN, infinities, tensors of nothing but zeros.
///
/// Tensors that cannot be read are left to [`verify`](crate::ops::verify()), those that are not numbers are skipped.
///
/// ```
/// use tenfold::{Archive, Bytes, model::DType, ops};
/// let mut builder = Archive::builder();
/// builder.push("x", DType::F32, &[2], Bytes::from_static(&[0, 0, 0xc0, 0x7f, 0, 0, 0, 0]))?;
/// let checked = ops::check_numbers(&builder.finish(), &Default::default())?;
/// assert_eq!(checked.findings[0].message, "1 of 2 numbers is NaN, the first at [0]");
/// assert_eq!(checked.checked.tensors, 1);
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn check_numbers(archive: &Archive, options: &VerifyOptions) -> Result<Verified> {
    let found = stats(archive, &StatsOptions::new().work(options.work.shared()))?;
    let mut findings = Vec::new();
    for (tensor, (_, stats)) in archive.tensors().zip(&found.tensors) {
        let Ok(stats) = stats else { continue };
        let plural = if stats.numbers == 1 { "" } else { "s" };
        let of = format!("of {} number{plural}", stats.numbers);
        let mut warn = |rule, message: String| {
            let error = tensor.blame(Error::malformed(rule, message));
            let place = tensor.info().parts.first();
            let error = match place.and_then(|part| part.payload.stored()) {
                Some((source, range)) => error.at_source(source, range),
                None => error,
            };
            findings.push(Finding {
                severity: Severity::Warning,
                ..Finding::from(&error)
            });
        };
        let are = |n: u64| if n == 1 { "is" } else { "are" };
        if stats.nans > 0 {
            warn(
                "nan",
                format!(
                    "{} {of} {} NaN{}",
                    stats.nans,
                    are(stats.nans),
                    first(tensor, stats.numbers, f64::is_nan)
                ),
            );
        }
        if stats.infinities() > 0 {
            let n = stats.infinities();
            let first = first(tensor, stats.numbers, f64::is_infinite);
            warn("infinite", format!("{n} {of} {} infinite{first}", are(n)));
        }
        if stats.numbers > 0 && stats.zeros == stats.numbers {
            warn(
                "zeros",
                format!("all of its {} numbers are 0", stats.numbers),
            );
        }
    }
    let looked_at = found.tensors.iter().filter(|(_, stats)| stats.is_ok());
    Ok(Verified {
        findings,
        checked: Checked {
            tensors: looked_at.count(),
            ..Checked::default()
        },
        is_of_numbers: true,
    })
}

/// Where the first number of a kind is among the `all` that a tensor has, by its indices.
fn first(tensor: Tensor<'_>, all: u64, is_meant: fn(f64) -> bool) -> String {
    let (mut passed, mut found) = (0, None);
    // What could be read for the statistics can be read again, and an error only ends it.
    let _ = tensor.numbers(&mut |numbers| {
        if let Some(place) = numbers.iter().position(|&number| is_meant(number)) {
            found = Some(passed + place as u64);
            return Err(Error::canceled());
        }
        passed += numbers.len() as u64;
        Ok(())
    });
    let Some(number) = found else {
        return String::new();
    };
    // An element may have several numbers, such as a complex one.
    let elements = tensor.info().elements().unwrap_or(all).max(1);
    let mut element = number / (all / elements).max(1);
    let mut indices = Vec::new();
    for &dim in tensor.info().shape.iter().rev() {
        indices.push(element % dim.max(1));
        element /= dim.max(1);
    }
    indices.reverse();
    format!(", the first at {indices:?}")
}
