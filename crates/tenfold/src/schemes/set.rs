//! Tensors of a model by name, and those that belong together.

use bytes::Bytes;

use super::config::Config;
use super::decoder::{Grid, Quant};
use super::plane::Plane;
use crate::error::{Error, Result};
use crate::model::{
    DType, Endian, Lanes, Layout, Manifest, Part, Quoted, Role, Scalar, SourceId, TensorInfo,
};
use crate::prelude::*;
use crate::transform::Data;

/// Bytes of a tensor that says something about others, at most.
const LONGEST: u64 = 4 << 10;
/// The same where all of them are read beforehand.
const SHORT: u64 = 1 << 10;

/// A description, with its tensors by name.
pub(super) struct Model<'m> {
    pub(super) manifest: &'m Manifest,
    pub(super) config: Option<&'m Config>,
    data: Data<'m>,
    places: LookupMap<&'m str, usize>,
    /// What was read of tensors that say something about others, by place.
    read: LookupMap<usize, Bytes>,
}

impl<'m> Model<'m> {
    pub(super) fn new(manifest: &'m Manifest, config: Option<&'m Config>, data: Data<'m>) -> Self {
        let names = manifest.tensors.iter().enumerate();
        let places = names.map(|(place, tensor)| (tensor.name.as_str(), place));
        Self {
            manifest,
            config,
            data,
            places: places.collect(),
            read: LookupMap::default(),
        }
    }

    pub(super) fn get(&self, name: &str) -> Option<(usize, &'m TensorInfo)> {
        let place = *self.places.get(name)?;
        Some((place, self.manifest.tensors.get(place)?))
    }

    /// Reads what all tensors say whose names end so, with few requests.
    pub(super) fn read_ahead(&mut self, endings: &[&str]) -> Result<()> {
        let mut wanted: Vec<(usize, SourceId, Range<u64>)> = Vec::new();
        for (place, tensor) in self.manifest.tensors.iter().enumerate() {
            if !endings.iter().any(|ending| tensor.name.ends_with(ending)) {
                continue;
            }
            if let [part] = tensor.parts.as_slice()
                && !part.payload.is_encoded()
                && let Some((source, range)) = part.payload.stored()
                && range.end - range.start <= SHORT
            {
                wanted.push((place, source, range));
            }
        }
        wanted.sort_unstable_by_key(|(_, source, range)| (source.0, range.start));
        for of_one in wanted.chunk_by(|(_, a, _), (_, b, _)| a == b) {
            let Some((_, id, _)) = of_one.first() else {
                continue;
            };
            let ranges: Vec<_> = of_one.iter().map(|(.., range)| range.clone()).collect();
            let Some(source) = self.data.sources.get(id.index()) else {
                continue;
            };
            let read = crate::io::read_ranges_exactly(&**source, &ranges)
                .map_err(|error| error.in_source(*id))?;
            for ((place, ..), bytes) in of_one.iter().zip(read) {
                // Slices would keep all that was read around them.
                self.read.insert(*place, Bytes::copy_from_slice(&bytes));
            }
        }
        Ok(())
    }

    fn bytes(&self, place: usize, part: &Part) -> Result<Bytes> {
        if let Some(bytes) = self.read.get(&place) {
            return Ok(bytes.clone());
        }
        let input = self.data.random_access(&part.payload)?;
        input.read(0, part.payload.len())
    }
}

/// Tensors that may be one quantized tensor together: those whose names begin with the same.
pub(super) struct Set<'s, 'm> {
    pub(super) model: &'s Model<'m>,
    /// What their names begin with, up to the ending of the one that shows the scheme.
    pub(super) base: &'m str,
    pub(super) ending: &'static str,
    pub(super) parts: Vec<Part>,
    /// The tensors that it consists of, by place; the first has the codes.
    pub(super) places: Vec<usize>,
}

/// One of them.
#[derive(Clone, Copy)]
pub(super) struct Member<'m> {
    pub(super) info: &'m TensorInfo,
    pub(super) part: usize,
    pub(super) scalar: Scalar,
}

impl<'s, 'm> Set<'s, 'm> {
    pub(super) fn config(&self) -> Option<&'s Config> {
        self.model.config
    }

    /// A tensor that may be missing, by the ending of its name.
    pub(super) fn find(&self, ending: &str) -> Option<&'m TensorInfo> {
        let (_, info) = self.model.get(&format!("{}{ending}", self.base))?;
        Some(info)
    }

    pub(super) fn scalar(&self, ending: &str) -> Option<Scalar> {
        match self.find(ending)?.parts.as_slice() {
            [part] => real(part.dtype),
            _ => None,
        }
    }

    /// That tensors of these endings belong to nothing but quantization and mean nothing without it.
    pub(super) fn leave(&mut self, endings: &[&str]) {
        for ending in endings {
            if let Some((place, _)) = self.model.get(&format!("{}{ending}", self.base)) {
                self.places.push(place);
            }
        }
    }

    /// A tensor that may be missing, as a part.
    pub(super) fn maybe(&mut self, ending: &str) -> Result<Option<Member<'m>>> {
        match self.find(ending) {
            Some(_) => self.take(ending).map(Some),
            None => Ok(None),
        }
    }

    /// A tensor that must be there, as a part.
    pub(super) fn take(&mut self, ending: &str) -> Result<Member<'m>> {
        let name = format!("{}{ending}", self.base);
        let Some((place, info)) = self.model.get(&name) else {
            return Err(self.missing(&name));
        };
        info.readable()?;
        let [part] = info.parts.as_slice() else {
            return Err(wrong(info, "quantized.layout", "it has several parts"));
        };
        let scalar = real(part.dtype);
        let scalar = scalar.ok_or_else(|| {
            let message = format!("{} is no type of codes or scales", part.dtype);
            wrong(info, "quantized.dtype", message)
        })?;
        if info.layout != Layout::RowMajor && info.shape.len() > 1
            || !matches!(info.layout, Layout::RowMajor | Layout::ColumnMajor)
        {
            let message = format!("its layout is {}, not row-major", info.layout.name());
            return Err(wrong(info, "quantized.layout", message));
        }
        if part.endian == Endian::Big && scalar.bits() > 8 {
            return Err(wrong(info, "quantized.layout", "it is big-endian"));
        }
        let len = info
            .elements()
            .and_then(|count| part.dtype.bytes_for(count));
        if len != Some(part.payload.len()) {
            let message = format!(
                "it has {} bytes, which are not those of its shape",
                part.payload.len()
            );
            return Err(wrong(info, "quantized.shape", message));
        }
        let mut part = part.clone();
        let role = ending.trim_start_matches(['.', '_']);
        let role = if role.is_empty() { "codes" } else { role };
        part.role = Role::Named(role.to_owned());
        self.parts.push(part);
        self.places.push(place);
        Ok(Member {
            info,
            part: self.parts.len() - 1,
            scalar,
        })
    }

    /// What a tensor holds that says something about others, of one of these types.
    pub(super) fn say(&mut self, ending: &str) -> Result<(Bytes, Member<'m>)> {
        let mut without = Self {
            parts: Vec::new(),
            places: Vec::new(),
            ..*self
        };
        let member = without.take(ending)?;
        self.places.append(&mut without.places);
        let (Some(part), Some(place)) = (without.parts.first(), self.places.last()) else {
            return Err(self.missing(ending));
        };
        if part.payload.len() > LONGEST {
            let message = format!("it has {} bytes, too many", part.payload.len());
            return Err(wrong(member.info, "quantized.shape", message));
        }
        Ok((self.model.bytes(*place, part)?, member))
    }

    /// The whole numbers that a tensor holds.
    pub(super) fn integers(&mut self, ending: &str) -> Result<Vec<i64>> {
        let (bytes, member) = self.say(ending)?;
        let width = usize::try_from(member.scalar.bits() / 8).unwrap_or(1);
        let number = |bytes: &[u8]| {
            let mut word = [0; 16];
            word.get_mut(..bytes.len())?.copy_from_slice(bytes);
            let number = member.scalar.to_f64(u128::from_le_bytes(word));
            whole(number)
        };
        let numbers = bytes.chunks(width.max(1)).map(number);
        numbers.collect::<Option<_>>().ok_or_else(|| {
            let message = "it holds other numbers than whole ones";
            wrong(member.info, "quantized.state", message)
        })
    }

    /// One whole number.
    pub(super) fn integer(&mut self, ending: &str) -> Result<i64> {
        match self.integers(ending)?.as_slice() {
            [number] => Ok(*number),
            numbers => {
                let message = format!("{} numbers where one is expected", numbers.len());
                Err(self.error("quantized.state", ending, message))
            }
        }
    }

    pub(super) fn missing(&self, name: &str) -> Error {
        let shown = format!("{}{}", self.base, self.ending);
        let message = format!(
            "{} is there, but {} is missing",
            Quoted(&shown),
            Quoted(name)
        );
        Error::malformed("quantized.incomplete", message).in_tensor(&shown)
    }

    pub(super) fn ambiguous(&self, message: impl Into<String>) -> Error {
        let shown = format!("{}{}", self.base, self.ending);
        Error::unsupported("quantized.ambiguous", message).in_tensor(&shown)
    }

    /// What is wrong with one of its tensors.
    pub(super) fn error(
        &self,
        rule: &'static str,
        ending: &str,
        message: impl Into<String>,
    ) -> Error {
        match self.find(ending) {
            Some(info) => wrong(info, rule, message),
            None => Error::malformed(rule, message).in_tensor(self.base),
        }
    }

    /// Refuses a quantized tensor whose parts are shorter than what it is made of.
    pub(super) fn check(&self, quant: &Quant) -> Result<()> {
        let uncovered = || {
            let message = "its scales or codes do not cover it";
            Error::malformed("quantized.shape", message).in_tensor(self.base)
        };
        for (place, needed) in quant.needs().ok_or_else(uncovered)? {
            let part = self.parts.get(place).ok_or_else(uncovered)?;
            let len = part.payload.len();
            if len < needed {
                let name = part.role.name();
                let message = format!("{name} has {len} bytes, and {needed} are needed");
                return Err(Error::malformed("quantized.shape", message).in_tensor(self.base));
            }
        }
        Ok(())
    }
}

impl<'m> Member<'m> {
    pub(super) fn shape(&self) -> &'m [u64] {
        &self.info.shape
    }

    /// The dimensions of a matrix.
    pub(super) fn matrix(&self) -> Result<[u64; 2]> {
        <[u64; 2]>::try_from(self.shape()).map_err(|_| {
            let message = format!("its shape is {:?}, not that of a matrix", self.shape());
            wrong(self.info, "quantized.shape", message)
        })
    }

    /// Matrices of one size, and their dimensions.
    pub(super) fn matrices(&self) -> Result<[u64; 3]> {
        let none = || {
            let message = format!("its shape is {:?}, not that of matrices", self.shape());
            wrong(self.info, "quantized.shape", message)
        };
        let [before @ .., rows, cols] = self.shape() else {
            return Err(none());
        };
        let count = before
            .iter()
            .try_fold(1u64, |all, dim| all.checked_mul(*dim));
        Ok([count.ok_or_else(none)?, *rows, *cols])
    }

    /// Rows as they follow each other, whatever dimensions they have, and the numbers of a row.
    pub(super) fn rows(&self) -> Result<[u64; 2]> {
        let [count, rows, cols] = self.matrices()?;
        let rows = count.checked_mul(rows).ok_or_else(|| {
            let message = "the number of its rows does not fit 64 bits";
            wrong(self.info, "quantized.shape", message)
        })?;
        Ok([rows, cols])
    }

    pub(super) fn elements(&self) -> u64 {
        self.info.elements().unwrap_or(u64::MAX)
    }

    /// Refuses other types than these.
    pub(super) fn is_of(self, scalars: &[Scalar]) -> Result<Self> {
        if scalars.contains(&self.scalar) {
            return Ok(self);
        }
        let expected: Vec<_> = scalars.iter().map(|scalar| scalar.name()).collect();
        let message = format!(
            "its type is {}, expected {}",
            self.scalar.name(),
            expected.join(" or ")
        );
        Err(wrong(self.info, "quantized.dtype", message))
    }

    /// Refuses another shape.
    pub(super) fn has_shape(self, shape: &[u64]) -> Result<Self> {
        if self.shape() == shape {
            return Ok(self);
        }
        let message = format!("its shape is {:?}, expected {shape:?}", self.shape());
        Err(wrong(self.info, "quantized.shape", message))
    }

    /// Its numbers as they are, in rows and columns.
    pub(super) fn plane(&self, rows: u64, cols: u64) -> Plane {
        Plane::numbers(self.part, self.scalar, rows, cols)
    }

    /// Numbers for the blocks of matrices, of which their own shape says how many there are: one, one for each row, or one
    /// for each of the blocks along rows and columns. `said` is the size of a block where something says it.
    pub(super) fn grid(
        &self,
        [count, rows, cols]: [u64; 3],
        scalar: Scalar,
        said: [Option<u64>; 2],
    ) -> Result<Grid> {
        let shape = self.shape();
        let one = [1, 1];
        let (matrices, down, along) = match shape {
            [] | [1] => (1, 1, 1),
            [all] if *all == rows => (1, *all, 1),
            [first, second] if count == 1 => (1, *first, *second),
            [before @ .., first, second] => {
                let all = before
                    .iter()
                    .try_fold(1u64, |all, dim| all.checked_mul(*dim));
                (all.unwrap_or(u64::MAX), *first, *second)
            }
            _ => (0, 0, 0),
        };
        let block = if [down, along] == one && shape.len() < 2 {
            [rows.max(1), cols.max(1)]
        } else {
            let size = |of, blocks, said| self.block(of, blocks, said);
            [size(rows, down, said[0])?, size(cols, along, said[1])?]
        };
        let shared = matrices == 1;
        if !shared && matrices != count {
            let message =
                format!("its shape is {shape:?}, which fits no blocks of {rows} x {cols}");
            return Err(wrong(self.info, "quantized.shape", message));
        }
        let plane = Plane::numbers(self.part, scalar, down, along);
        let grid = Grid::new(plane, block);
        Ok(Grid { shared, ..grid })
    }

    /// How many of `of` neighbours each of so many numbers is for.
    pub(super) fn block(&self, of: u64, blocks: u64, said: Option<u64>) -> Result<u64> {
        if let Some(said) = said {
            if said > 0 && of.div_ceil(said) == blocks {
                return Ok(said);
            }
            let message = format!("{blocks} numbers for {of} places in blocks of {said}");
            return Err(wrong(self.info, "quantized.shape", message));
        }
        match blocks {
            0 if of == 0 => return Ok(1),
            0 => {}
            1 => return Ok(of.max(1)),
            _ if blocks == of => return Ok(1),
            _ => {
                // Blocks of a power of two with a short one at the end would be as many.
                let is_round = of.is_multiple_of(blocks) && (of / blocks).is_power_of_two();
                let mut others = (1..32).map(|power| 1u64 << power);
                let is_other = others.any(|size| of.div_ceil(size) == blocks);
                if is_round || (of.is_multiple_of(blocks) && !is_other) {
                    return Ok(of / blocks);
                }
                if is_other {
                    let message = format!(
                        "{blocks} numbers for {of} places: only a configuration can say how large blocks are"
                    );
                    let error = Error::unsupported("quantized.ambiguous", message);
                    return Err(error.in_tensor(&self.info.name));
                }
            }
        }
        let message = format!("{blocks} numbers for {of} places");
        Err(wrong(self.info, "quantized.shape", message))
    }
}

/// A real type.
fn real(dtype: DType) -> Option<Scalar> {
    match dtype {
        DType::Number(scalar, Lanes::Real) if scalar.bits() >= 8 => Some(scalar),
        _ => None,
    }
}

/// A whole number as one.
#[allow(clippy::cast_possible_truncation)]
fn whole(number: f64) -> Option<i64> {
    // Behind it, neighbours are further apart than 1.
    let is_whole = number.abs() <= 9_007_199_254_740_992.0 && number % 1.0 == 0.0;
    is_whole.then_some(number as i64)
}

/// What is wrong with a tensor, and where it is.
pub(super) fn wrong(info: &TensorInfo, rule: &'static str, message: impl Into<String>) -> Error {
    let error = Error::malformed(rule, message).in_tensor(&info.name);
    let mut places = info.parts.iter().filter_map(|part| part.payload.stored());
    match places.next() {
        Some((source, range)) => error.at_source(source, range),
        None => error,
    }
}
