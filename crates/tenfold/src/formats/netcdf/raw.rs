//! The header as it is on disk.

use super::MAX_RANK;
use super::types::{self, CHAR, LAST_OLD};
use crate::error::{Error, Result};
use crate::io::{Limits, Reader, Source};
use crate::model::{DType, List, Metadata, Value, ValueKind};
use crate::prelude::*;

const TRUNCATED: &str = "netcdf.truncated";
const TAG_DIMENSION: u32 = 10;
const TAG_VARIABLE: u32 = 11;
const TAG_ATTRIBUTE: u32 = 12;

/// Everything in front of the data.
#[derive(Debug)]
pub(super) struct Header {
    /// 1, 2 or 5.
    pub(super) version: u8,
    /// `None` where the file does not say.
    pub(super) numrecs: Option<u64>,
    pub(super) dim_list: Vec<Dimension>,
    pub(super) gatt_list: Metadata,
    pub(super) var_list: Vec<Variable>,
    /// Where it ends.
    pub(super) end: u64,
    /// The first bytes that pad something and are not 0.
    pub(super) padding: Option<Range<u64>>,
}

#[derive(Debug)]
pub(super) struct Dimension {
    pub(super) name: String,
    /// 0 for that of the records.
    pub(super) dim_length: u64,
}

#[derive(Debug)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Places in the list of dimensions.
    pub(super) dimids: Vec<u32>,
    pub(super) vatt_list: Metadata,
    pub(super) nc_type: u32,
    pub(super) begin: u64,
    /// Its entry in the header.
    pub(super) at: Range<u64>,
}

impl Header {
    pub(super) fn parse(source: &dyn Source, limits: &Limits) -> Result<Self> {
        let mut r = Reader::new(source, TRUNCATED);
        let [c, d, f, version] = r.array("the magic and the version")?;
        if [c, d, f] != *b"CDF" {
            let message = "it does not begin with CDF";
            return Err(Error::malformed("netcdf.magic", message).at(0..3));
        }
        if !matches!(version, 1 | 2 | 5) {
            let message = format!("version {version}; 1, 2 and 5 are known");
            return Err(Error::unsupported("netcdf.version", message).at(3..4));
        }
        let mut fields = Fields {
            r,
            version,
            limit: limits.header_bytes,
            padding: None,
        };
        let numrecs = fields.number("numrecs")?;
        let streaming = if version == 5 {
            u64::MAX
        } else {
            u32::MAX.into()
        };
        let dim_list = fields.dimensions()?;
        let gatt_list = fields.attributes()?;
        let var_list = fields.variables(&dim_list, limits.rank)?;
        Ok(Self {
            version,
            numrecs: (numrecs != streaming).then_some(numrecs),
            dim_list,
            gatt_list,
            var_list,
            end: fields.r.pos(),
            padding: fields.padding,
        })
    }

    /// Whether a variable has an element block in every record.
    pub(super) fn is_record(&self, variable: &Variable) -> bool {
        let first = variable.dimids.first();
        first.is_some_and(|id| self.dimension(*id).is_some_and(|dim| dim.dim_length == 0))
    }

    pub(super) fn dimension(&self, id: u32) -> Option<&Dimension> {
        self.dim_list.get(usize::try_from(id).ok()?)
    }
}

/// Reads fields whose width depends on the version.
struct Fields<'a> {
    r: Reader<'a>,
    version: u8,
    limit: u64,
    padding: Option<Range<u64>>,
}

impl Fields<'_> {
    /// Bytes of a count.
    fn width(&self) -> u64 {
        if self.version == 5 { 8 } else { 4 }
    }

    fn word(&mut self, field: &'static str) -> Result<u32> {
        self.r.array(field).map(u32::from_be_bytes)
    }

    /// A count or a length: N of the specification.
    fn number(&mut self, field: &'static str) -> Result<u64> {
        if self.version == 5 {
            self.r.array(field).map(u64::from_be_bytes)
        } else {
            self.word(field).map(u64::from)
        }
    }

    fn offset(&mut self, field: &'static str) -> Result<u64> {
        if self.version == 1 {
            self.word(field).map(u64::from)
        } else {
            self.r.array(field).map(u64::from_be_bytes)
        }
    }

    /// How many entries a list has, each of at least so many bytes.
    fn list(&mut self, wanted: u32, least: u64, field: &'static str) -> Result<usize> {
        let at = self.r.pos();
        let tag = self.word(field)?;
        let count = self.number(field)?;
        match (tag, count) {
            (0, 0) => Ok(0),
            (tag, count) if tag == wanted => self.r.count(count, least, field),
            _ => {
                let message =
                    format!("{field} has the tag {tag} and {count} entries, the tag is {wanted}");
                Err(Error::malformed("netcdf.tag", message).at(at..at + 4))
            }
        }
    }

    /// Passes over what pads `len` bytes to a multiple of 4.
    fn pad(&mut self, len: u64, field: &'static str) -> Result<()> {
        let at = self.r.pos();
        let missing = len.wrapping_neg() % 4;
        let bytes = self.r.take(missing, field)?;
        if bytes.iter().any(|byte| *byte != 0) && self.padding.is_none() {
            self.padding = Some(at..at + missing);
        }
        Ok(())
    }

    fn name(&mut self, field: &'static str) -> Result<String> {
        let at = self.r.pos();
        let len = self.number(field)?;
        self.check_limit(len, field)?;
        let name = self.r.text(len, "netcdf.utf8", field)?;
        let range = at..self.r.pos();
        self.pad(len, field)?;
        let why = if name.is_empty() {
            "is empty"
        } else if name.contains('\0') {
            "has a zero byte"
        } else if name.contains('/') {
            "has a slash"
        } else {
            return Ok(name);
        };
        let shown = crate::model::brief(&name);
        let message = format!("{field} {shown} {why}, which NetCDF's names never have");
        Err(Error::malformed("netcdf.name", message).at(range))
    }

    fn check_limit(&self, len: u64, field: &'static str) -> Result<()> {
        let end = self.r.pos().saturating_add(len);
        if end > self.limit && len <= self.r.remaining() {
            let limit = self.limit;
            let message = format!("{field} ends at byte {end}, the limit for headers is {limit}");
            let error = Error::limit("netcdf.limit", message).at(self.r.pos()..end);
            return Err(error.raised_by("header_bytes", end));
        }
        Ok(())
    }

    fn dimensions(&mut self) -> Result<Vec<Dimension>> {
        let count = self.list(TAG_DIMENSION, 2 * self.width(), "dim_list")?;
        let mut dimensions: Vec<Dimension> = Vec::new();
        let mut has_records = false;
        for _ in 0..count {
            let at = self.r.pos();
            let name = self.name("the name of a dimension")?;
            let dim_length = self.number("the length of a dimension")?;
            if dim_length == 0 && has_records {
                let message =
                    format!("{name:?} is a second dimension of length 0, which counts records");
                let range = at..self.r.pos();
                return Err(Error::malformed("netcdf.record-dimension", message).at(range));
            }
            has_records |= dim_length == 0;
            push_tight(&mut dimensions, Dimension { name, dim_length });
        }
        unique(
            dimensions.iter().map(|dimension| dimension.name.as_str()),
            "dimension",
        )?;
        Ok(dimensions)
    }

    fn attributes(&mut self) -> Result<Metadata> {
        let least = 2 * self.width() + 4;
        let count = self.list(TAG_ATTRIBUTE, least, "att_list")?;
        let mut attributes = Metadata::new();
        for _ in 0..count {
            let name = self.name("the name of an attribute")?;
            let value = self.values()?;
            attributes.push(name, value);
        }
        unique(attributes.iter().map(|(key, _)| key), "attribute")?;
        Ok(attributes)
    }

    /// The values of an attribute: text, one number, or a list of them.
    fn values(&mut self) -> Result<Value> {
        let nc_type = self.nc_type()?;
        let count = self.number("the length of an attribute")?;
        let Some((dtype, kind)) = types::known(nc_type) else {
            self.check_limit(count, "an attribute")?;
            let bytes = self.r.take(count, "text of an attribute")?;
            self.pad(count, "text of an attribute")?;
            return Ok(match core::str::from_utf8(&bytes) {
                Ok(text) => Value::Str(text.to_owned()),
                Err(_) => Value::Bytes(bytes.to_vec().into()),
            });
        };
        let field = "values of an attribute";
        let width = dtype.width().unwrap_or(1) as u64;
        let count = self.r.count(count, width, field)? as u64;
        self.check_limit(count.saturating_mul(width), field)?;
        let value = match count {
            0 => Value::Empty(kind),
            1 => self.value(kind)?,
            _ => {
                let values = (0..count).map(|_| self.value(kind));
                Value::List(values.collect::<Result<List>>()?)
            }
        };
        self.pad(count.wrapping_mul(width), field)?;
        Ok(value)
    }

    fn value(&mut self, kind: ValueKind) -> Result<Value> {
        let field = "a value of an attribute";
        Ok(match kind {
            ValueKind::I8 => Value::I8(i8::from_be_bytes(self.r.array(field)?)),
            ValueKind::U8 => Value::U8(self.r.u8(field)?),
            ValueKind::I16 => Value::I16(i16::from_be_bytes(self.r.array(field)?)),
            ValueKind::U16 => Value::U16(u16::from_be_bytes(self.r.array(field)?)),
            ValueKind::I32 => Value::I32(i32::from_be_bytes(self.r.array(field)?)),
            ValueKind::U32 => Value::U32(u32::from_be_bytes(self.r.array(field)?)),
            ValueKind::I64 => Value::I64(i64::from_be_bytes(self.r.array(field)?)),
            ValueKind::U64 => Value::U64(u64::from_be_bytes(self.r.array(field)?)),
            ValueKind::F32 => Value::F32(f32::from_be_bytes(self.r.array(field)?)),
            _ => Value::F64(f64::from_be_bytes(self.r.array(field)?)),
        })
    }

    fn nc_type(&mut self) -> Result<u32> {
        let at = self.r.pos();
        let nc_type = self.word("a type")?;
        let last = if self.version == 5 { 11 } else { LAST_OLD };
        if nc_type == 0 || nc_type > last {
            let message = format!("type {nc_type}; CDF-{} has 1 to {last}", self.version);
            return Err(Error::malformed("netcdf.type", message).at(at..at + 4));
        }
        Ok(nc_type)
    }

    fn variables(&mut self, dimensions: &[Dimension], rank: usize) -> Result<Vec<Variable>> {
        let least = 3 * self.width() + 8;
        let count = self.list(TAG_VARIABLE, least, "var_list")?;
        let mut variables = Vec::new();
        for _ in 0..count {
            let variable = self.variable(dimensions, rank)?;
            push_tight(&mut variables, variable);
        }
        unique(
            variables.iter().map(|variable| variable.name.as_str()),
            "variable",
        )?;
        Ok(variables)
    }

    fn variable(&mut self, dimensions: &[Dimension], limit: usize) -> Result<Variable> {
        let at = self.r.pos();
        let name = self.name("the name of a variable")?;
        let rank = self.number("the rank of a variable")?;
        if rank > MAX_RANK as u64 {
            let message = format!("{rank} dimensions, NetCDF has {MAX_RANK} at most");
            let error = Error::malformed("netcdf.rank", message).at(at..self.r.pos());
            return Err(error.in_tensor(&name));
        }
        if rank > limit as u64 {
            let message = format!("{rank} dimensions, the limit is {limit}");
            let error = Error::limit("netcdf.rank", message).at(at..self.r.pos());
            return Err(error.raised_by("rank", rank).in_tensor(&name));
        }
        let mut dimids = Vec::new();
        for place in 0..self.r.count(rank, self.width(), "the rank of a variable")? {
            let range = self.r.pos()..self.r.pos() + self.width();
            let id = self.number("a dimension of a variable")?;
            let known = usize::try_from(id).ok().and_then(|id| dimensions.get(id));
            let refuse = |rule, message: String| {
                Err(Error::malformed(rule, message).at(range).in_tensor(&name))
            };
            let (Some(dimension), Ok(id)) = (known, u32::try_from(id)) else {
                let message = format!("dimension {id} of {}", dimensions.len());
                return refuse("netcdf.dimension", message);
            };
            if dimension.dim_length == 0 && place > 0 {
                let message = format!(
                    "{:?}, which counts records, is not its first dimension",
                    dimension.name
                );
                return refuse("netcdf.record-dimension", message);
            }
            push_tight(&mut dimids, id);
        }
        let vatt_list = self.attributes().map_err(|error| error.in_tensor(&name))?;
        let nc_type = self.nc_type().map_err(|error| error.in_tensor(&name))?;
        // 2^32-1, or what is left of a number of more bits, for large variables: not to be relied on.
        self.number("vsize")?;
        let begin = self.offset("begin")?;
        Ok(Variable {
            name,
            dimids,
            vatt_list,
            nc_type,
            begin,
            at: at..self.r.pos(),
        })
    }
}

/// The type of a variable's elements; `None` where they are text.
pub(super) fn dtype(variable: &Variable) -> Option<DType> {
    debug_assert!(variable.nc_type == CHAR || types::known(variable.nc_type).is_some());
    types::known(variable.nc_type).map(|(dtype, _)| dtype)
}

fn unique<'n>(names: impl Iterator<Item = &'n str>, of: &str) -> Result<()> {
    match crate::model::repeated(names) {
        Some((_, name)) => {
            let shown = crate::model::brief(name);
            let message = format!("there are two {of}s {shown}");
            Err(Error::malformed("netcdf.duplicate", message))
        }
        None => Ok(()),
    }
}
