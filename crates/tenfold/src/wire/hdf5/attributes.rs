//! Attributes: what an object says about itself.

use super::block::{Block, File, UNDEFINED};
use super::header::{Header, kind, shared_type};
use super::heap::{FractalHeap, collection, global};
use super::tree2::Tree;
use super::types::{Class, Dataspace, Datatype};
use crate::error::{Error, ErrorKind, Result};
use crate::io::Reader;
use crate::model::{DType, Endian, Metadata, Packer, Scalar, Value, ValueKind};
use crate::prelude::*;

/// Bytes of a reference to a text: its length, a collection, an index.
const REFERENCE: u64 = 16;

/// Collections of texts that were read.
#[derive(Default)]
pub(super) struct Collections(Vec<(u64, Block)>);

impl Collections {
    /// Collections that are kept.
    const MOST: usize = 16;

    fn get(&mut self, file: &mut File<'_>, address: u64) -> Result<Block> {
        if let Some((_, block)) = self.0.iter().find(|(known, _)| *known == address) {
            return Ok(block.clone());
        }
        let block = collection(file, address)?;
        if self.0.len() == Self::MOST {
            self.0.remove(0);
        }
        self.0.push((address, block.clone()));
        Ok(block)
    }
}

/// The attributes of an object, and what is said of the first one that has no value here.
#[derive(Default)]
pub(super) struct Attributes {
    pub(super) values: Metadata,
    pub(super) skipped: Option<String>,
}

/// Reads the attributes of an object.
pub(super) fn of(
    file: &mut File<'_>,
    header: &Header,
    collections: &mut Collections,
) -> Result<Attributes> {
    let mut found = Attributes::default();
    let mut names: LookupMap<String, ()> = LookupMap::new();
    for message in header.of(kind::ATTRIBUTE) {
        if message.is_shared() {
            let why = || "an attribute of it is shared with others, which is not read".to_owned();
            found.skipped.get_or_insert_with(why);
            continue;
        }
        found.add(file, &message.data, collections, &mut names)?;
    }
    if let Some(message) = header.one(kind::ATTRIBUTE_INFO)? {
        let (heap, tree) = message.data.parse(|r| {
            r.skip(1, "version")?;
            let flags = r.u8("flags of attributes")?;
            r.skip(if flags & 1 == 0 { 0 } else { 2 }, "order of attributes")?;
            Ok((r.u64("address of a heap")?, r.u64("address of a B-tree")?))
        })?;
        if heap != UNDEFINED {
            let mut heap = FractalHeap::read(file, heap)?;
            let tree = Tree::read(file, tree)?;
            for id in tree.collect(file, 0..8)? {
                let body = heap.object(file, &id)?;
                found.add(file, &body, collections, &mut names)?;
            }
        }
    }
    Ok(found)
}

impl Attributes {
    /// Adds an attribute. One that is damaged costs itself: no tensor is another for it.
    fn add(
        &mut self,
        file: &mut File<'_>,
        block: &Block,
        collections: &mut Collections,
        names: &mut LookupMap<String, ()>,
    ) -> Result<()> {
        match self.add_sound(file, block, collections, names) {
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::Malformed | ErrorKind::Mismatch | ErrorKind::Unsupported
                ) =>
            {
                let why = || format!("an attribute of it cannot be read: {}", error.message());
                self.skipped.get_or_insert_with(why);
                Ok(())
            }
            done => done,
        }
    }

    fn add_sound(
        &mut self,
        file: &mut File<'_>,
        block: &Block,
        collections: &mut Collections,
        names: &mut LookupMap<String, ()>,
    ) -> Result<()> {
        let Attribute {
            name,
            datatype,
            dataspace,
            data,
        } = Attribute::read(file, block)?;
        file.make(2 * name.len())?;
        if names.insert(name.clone(), ()).is_some() {
            let message = format!("an object has two attributes {name:?}");
            return Err(block.wrong("hdf5.duplicate", message));
        }
        match value(file, &datatype, &dataspace, &data, collections)? {
            Some(value) => self.values.push(&name, value),
            None => {
                let why = || format!("its attribute {name:?} is neither numbers nor text");
                self.skipped.get_or_insert_with(why);
            }
        }
        Ok(())
    }
}

struct Attribute {
    name: String,
    datatype: Datatype,
    dataspace: Dataspace,
    data: Block,
}

impl Attribute {
    fn read(file: &mut File<'_>, block: &Block) -> Result<Self> {
        let (flags, parts, front, pad) = block.parse(|r| {
            let version = r.u8("version of an attribute")?;
            if !(1..=3).contains(&version) {
                let message = format!("an attribute of version {version}, 1 to 3 are known");
                return Err(Error::unsupported("hdf5.attribute", message));
            }
            let flags = r.u8("flags of an attribute")?;
            let lens = [
                r.u16("length of a name")?,
                r.u16("length of a type")?,
                r.u16("length of a dataspace")?,
            ];
            r.skip(if version == 3 { 1 } else { 0 }, "character set")?;
            let flags = if version == 1 { 0 } else { flags };
            Ok((flags, lens, r.pos(), version == 1))
        })?;
        let mut at = front;
        let mut next = |len: u16, what| {
            let part = block.part(at, len.into(), what);
            let len = u64::from(len);
            at += if pad { len.next_multiple_of(8) } else { len };
            part
        };
        let [name, datatype, dataspace] = parts;
        let name = next(name, "name of an attribute")?;
        let datatype = next(datatype, "type of an attribute")?;
        let dataspace = next(dataspace, "dataspace of an attribute")?;
        let data = block.part(at, block.len().saturating_sub(at), "data of an attribute")?;
        let text = name.bytes.strip_suffix(b"\0").unwrap_or(&name.bytes);
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let text = core::str::from_utf8(text).map_err(|cause| {
            name.wrong("hdf5.name", "the name of an attribute is not UTF-8")
                .because(cause)
        })?;
        let datatype = if flags & 1 == 0 {
            datatype
        } else {
            shared_type(file, &datatype)?
        };
        if flags & 2 != 0 {
            let message = "an attribute with a shared dataspace, which is not read";
            return Err(Error::unsupported("hdf5.message", message).at(block.range()));
        }
        Ok(Self {
            name: text.to_owned(),
            datatype: Datatype::read(&datatype)?,
            dataspace: Dataspace::read(&dataspace)?,
            data,
        })
    }
}

/// The value of an attribute; `None` where it is neither numbers nor text.
fn value(
    file: &mut File<'_>,
    datatype: &Datatype,
    dataspace: &Dataspace,
    data: &Block,
    collections: &mut Collections,
) -> Result<Option<Value>> {
    let width = match &datatype.class {
        Class::LongText => REFERENCE,
        Class::Text | Class::Number { .. } => datatype.size.into(),
        Class::Unknown(_) | Class::Opaque | Class::Reference | Class::Other(_) => return Ok(None),
    };
    if dataspace.is_null {
        // A type without a value, as h5py's `Empty`.
        let mut map = Packer::map();
        map.key("empty");
        map.str(type_name(&datatype.class));
        return Ok(Some(Value::Map(map.into_map())));
    }
    let count = crate::model::element_count(&dataspace.dims);
    let len = count.and_then(|count| count.checked_mul(width));
    if len.is_none_or(|len| len > data.len()) {
        let message = format!(
            "an attribute of {:?} elements of {width} bytes, its data has {}",
            dataspace.dims,
            data.len()
        );
        return Err(data.wrong("hdf5.attribute", message));
    }
    let mut entries = Entries {
        file,
        class: &datatype.class,
        width,
        data,
        collections,
        at: 0,
        packer: Packer::new(),
    };
    match *dataspace.dims.as_slice() {
        [] => return entries.one().map(Some),
        [0] => return Ok(Some(Value::Empty(kind(&datatype.class)))),
        _ => {}
    }
    entries.list(&dataspace.dims)?;
    Ok(Some(entries.packer.finish()))
}

/// The elements of an attribute, one after the other.
struct Entries<'e, 'f, 'a> {
    file: &'f mut File<'a>,
    class: &'e Class,
    width: u64,
    data: &'e Block,
    collections: &'e mut Collections,
    at: u64,
    packer: Packer,
}

impl Entries<'_, '_, '_> {
    /// Lists within each other, as many levels as there are dimensions.
    fn list(&mut self, dims: &[u64]) -> Result<()> {
        let Some((first, rest)) = dims.split_first() else {
            let value = self.one()?;
            self.packer.value(&value);
            return Ok(());
        };
        // Lists of lists without entries would be many for nothing.
        self.file.make(16)?;
        self.packer.open_list();
        for _ in 0..*first {
            self.list(rest)?;
        }
        self.packer.close();
        Ok(())
    }

    fn one(&mut self) -> Result<Value> {
        let element = self
            .data
            .part(self.at, self.width, "data of an attribute")?;
        self.at += self.width;
        match self.class {
            Class::Text => self.text(&element),
            Class::LongText => {
                let (len, address, index) = element.parse(|r| {
                    let len = r.u32("length of a text")?;
                    Ok((
                        len,
                        r.u64("address of a collection")?,
                        r.u32("index of a text")?,
                    ))
                })?;
                if len == 0 || address == 0 {
                    return Ok(Value::Str(String::new()));
                }
                let collection = self.collections.get(self.file, address)?;
                let object = global(&collection, index)?;
                let text = object.part(0, len.into(), "a text")?;
                self.text(&text)
            }
            Class::Number { dtype, endian, .. } => {
                self.file.make(crate::io::as_size(self.width)?)?;
                let endian = *endian;
                element.parse(|r| number(r, *dtype, endian))
            }
            Class::Unknown(_) | Class::Opaque | Class::Reference | Class::Other(_) => {
                Ok(Value::Null)
            }
        }
    }

    /// Text up to its first zero byte.
    fn text(&mut self, block: &Block) -> Result<Value> {
        let text = block
            .bytes
            .split(|byte| *byte == 0)
            .next()
            .unwrap_or_default();
        self.file.make(text.len())?;
        Ok(match core::str::from_utf8(text) {
            Ok(text) => Value::Str(text.to_owned()),
            Err(_) => Value::Bytes(text.to_vec().into()),
        })
    }
}

/// A number of a type.
fn number(r: &mut Reader<'_>, dtype: DType, endian: Endian) -> Result<Value> {
    let DType::Number(scalar, lanes) = dtype else {
        return Ok(Value::Null);
    };
    if lanes.count() > 1 {
        let real = real(r, scalar, endian)?;
        return Ok(vec![real, self::real(r, scalar, endian)?].into());
    }
    real(r, scalar, endian)
}

fn real(r: &mut Reader<'_>, scalar: Scalar, endian: Endian) -> Result<Value> {
    fn bytes<const N: usize>(r: &mut Reader<'_>, endian: Endian) -> Result<[u8; N]> {
        let mut bytes: [u8; N] = r.array("a number")?;
        if endian == Endian::Big {
            bytes.reverse();
        }
        Ok(bytes)
    }
    Ok(match scalar {
        Scalar::Bool => Value::Bool(r.u8("a number")? != 0),
        Scalar::U8 => Value::U8(r.u8("a number")?),
        Scalar::U16 => Value::U16(u16::from_le_bytes(bytes(r, endian)?)),
        Scalar::U32 => Value::U32(u32::from_le_bytes(bytes(r, endian)?)),
        Scalar::U64 => Value::U64(u64::from_le_bytes(bytes(r, endian)?)),
        Scalar::I8 => Value::I8(i8::from_le_bytes(bytes(r, endian)?)),
        Scalar::I16 => Value::I16(i16::from_le_bytes(bytes(r, endian)?)),
        Scalar::I32 => Value::I32(i32::from_le_bytes(bytes(r, endian)?)),
        Scalar::I64 => Value::I64(i64::from_le_bytes(bytes(r, endian)?)),
        Scalar::F32 => Value::F32(f32::from_le_bytes(bytes(r, endian)?)),
        Scalar::F64 => Value::F64(f64::from_le_bytes(bytes(r, endian)?)),
        Scalar::F16 => Value::F32(half::f16::from_le_bytes(bytes(r, endian)?).to_f32()),
        Scalar::BF16 => Value::F32(half::bf16::from_le_bytes(bytes(r, endian)?).to_f32()),
        // Eight bits, which other formats have no number for.
        _ => Value::U8(r.u8("a number")?),
    })
}

/// What the entries of a list of such elements would be.
fn kind(class: &Class) -> ValueKind {
    let Class::Number { dtype, .. } = class else {
        return ValueKind::Str;
    };
    match *dtype {
        DType::BOOL => ValueKind::Bool,
        DType::U16 => ValueKind::U16,
        DType::U32 => ValueKind::U32,
        DType::U64 => ValueKind::U64,
        DType::I8 => ValueKind::I8,
        DType::I16 => ValueKind::I16,
        DType::I32 => ValueKind::I32,
        DType::I64 => ValueKind::I64,
        DType::F16 | DType::BF16 | DType::F32 => ValueKind::F32,
        DType::F64 => ValueKind::F64,
        DType::C64 | DType::C128 => ValueKind::List,
        _ => ValueKind::U8,
    }
}

/// What NumPy calls a type.
fn type_name(class: &Class) -> &'static str {
    let Class::Number { dtype, .. } = class else {
        return "object";
    };
    match *dtype {
        DType::BOOL => "bool",
        DType::U8 => "uint8",
        DType::U16 => "uint16",
        DType::U32 => "uint32",
        DType::U64 => "uint64",
        DType::I8 => "int8",
        DType::I16 => "int16",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::F16 => "float16",
        DType::F32 => "float32",
        DType::F64 => "float64",
        DType::C64 => "complex64",
        DType::C128 => "complex128",
        _ => "other",
    }
}
