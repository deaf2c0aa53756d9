//! Elements as text, exactly.

use serde::Serialize;
use tenfold::digits::{self, Number};
use tenfold::model::{Scalar, Slice};
use tenfold::{Sliced, Tensor};

use crate::answer::{Answer, Int, Refusal};
use crate::opened::Opened;
use crate::query::Query;

/// Elements that are given at once.
pub(crate) const MOST: u64 = 10_000;

#[derive(Serialize)]
struct Values {
    dtype: String,
    shape: Vec<Int>,
    texts: Vec<String>,
    /// A letter for each: `n` NaN, `+` and `-` infinities, `0` zero, `s` subnormal, `.` any other.
    kinds: String,
}

/// The slice of a tensor that a question names.
pub(crate) fn sliced<'a>(tensor: Tensor<'a>, query: &Query) -> Result<Sliced<'a>, Refusal> {
    let slices = Slice::parse(query.text("slice").unwrap_or_default())?;
    Ok(tensor.slice(&slices)?)
}

pub(crate) fn values(opened: &Opened, query: &Query) -> Result<Answer, Refusal> {
    let (_, tensor) = opened.tensor(query)?;
    let sliced = sliced(tensor, query)?;
    let count = sliced.elements().unwrap_or(u64::MAX);
    if count > MOST {
        let message = format!("{count} elements were asked for, {MOST} are given at once");
        return Err(Refusal::wrong(message));
    }
    let (mut texts, mut kinds) = (Vec::new(), String::new());
    sliced.exact(&mut |element| {
        texts.push(digits::text(element));
        kinds.push(
            element
                .iter()
                .map(kind)
                .max_by_key(|kind| weight(*kind))
                .unwrap_or('.'),
        );
        Ok(())
    })?;
    Answer::json(&Values {
        dtype: sliced.dtype().to_string(),
        shape: sliced.shape().into_iter().map(Int).collect(),
        texts,
        kinds,
    })
}

/// Of several numbers of an element, the one that is worth a mark.
fn weight(kind: char) -> usize {
    "0.s-+n".find(kind).unwrap_or(0)
}

fn kind(number: &Number) -> char {
    match number {
        Number::Float(float) if float.is_nan() => 'n',
        Number::Float(float) if float.is_infinite() => {
            if float.is_negative() {
                '-'
            } else {
                '+'
            }
        }
        Number::Float(float) if float.is_zero() => '0',
        Number::Float(float) if is_subnormal(float.scalar(), float.to_f64()) => 's',
        Number::Signed(0) | Number::Unsigned(0) | Number::Bool(false) => '0',
        _ => '.',
    }
}

/// Whether a number is nearer to 0 than the smallest normal one of its type.
fn is_subnormal(scalar: Scalar, value: f64) -> bool {
    let least = match scalar {
        Scalar::F16 => 2f64.powi(-14),
        Scalar::BF16 | Scalar::F32 => f64::from(f32::MIN_POSITIVE),
        Scalar::F64 => f64::MIN_POSITIVE,
        // All values of small types are near to 0.
        _ => return false,
    };
    value.abs() < least
}
