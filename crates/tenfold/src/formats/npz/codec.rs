//! Between the members of an archive and the model.

use bytes::Bytes;

use super::{EXTENSION, SPEC, ZIP, salvage, write};
use crate::digest::Crc32;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    Arranged, Confidence, Context, Effect, Format, Head, Loss, Lost, Plan, PlanOptions, Spec,
};
use crate::io::Source;
use crate::model::{
    Checksum, Codec, DType, DigestKind, Kept, Layout, Manifest, Over, Payload, Scheme, SealedRange,
    SourceId, TensorInfo, element_count,
};
use crate::prelude::*;
use crate::transform::{Inflate, Input};
use crate::wire::numpy::{self, Header, Place};
use crate::wire::zip::{self, Kind, Member, Zip};

/// Reads and writes `.npz`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Npz;

impl Format for Npz {
    fn spec(&self) -> &'static Spec {
        &SPEC
    }

    fn detect(&self, head: &Head<'_>) -> Result<Confidence> {
        let first = head.first();
        if !first.starts_with(b"PK\x03\x04") && !first.starts_with(b"PK\x05\x06") {
            return Ok(if has_end(head)? && Kind::of(head)? == Kind::Arrays {
                // The beginning is damaged: describing it says how.
                Confidence::Possible
            } else {
                Confidence::No
            });
        }
        Ok(match Kind::of(head)? {
            Kind::Nothing => Confidence::Possible,
            Kind::Arrays => Confidence::Certain,
            // Not looked at one by one: archives of all kinds begin like this.
            Kind::Others if first_is_array(head)? => Confidence::Likely,
            Kind::Others | Kind::Torch | Kind::Zarr | Kind::Keras => Confidence::No,
            // Perhaps damaged or cut off.
            Kind::Unknown
                if first_name(head)?.ends_with(EXTENSION.as_bytes()) || first_is_array(head)? =>
            {
                Confidence::Likely
            }
            Kind::Unknown => Confidence::No,
        })
    }

    fn describe(&self, cx: &mut Context<'_>) -> Result<Manifest> {
        let limit = cx.limits().header_bytes;
        let Some(zip) = Zip::open_with(cx.source(), limit, HEADER)? else {
            let error = zip::no_end(cx.source());
            return salvage::describe(cx, error);
        };
        for (rule, at, message) in zip.remarks {
            cx.warn(rule, at, message)?;
        }
        refuse_ambiguous(&zip.members)?;
        let mut contained = Contained::new(Manifest::new(ZIP));
        for member in &zip.members {
            contained.add(cx, member)?;
        }
        let mut manifest = contained.finish(cx);
        manifest.region(zip.tail, "directory");
        Ok(manifest)
    }

    #[cfg(feature = "write")]
    fn arrange(&self, what: &Manifest, _: &PlanOptions) -> Result<Option<Arranged>> {
        Ok(crate::formats::numpy::arrange(what, shadowed(what)))
    }

    #[cfg(feature = "write")]
    fn plan(&self, what: &Manifest, options: &PlanOptions) -> Result<Plan> {
        write::plan(what, options)
    }
}

/// What the members of an archive hold.
pub(super) struct Contained<'m> {
    pub(super) manifest: Manifest,
    /// Those that are not arrays.
    others: Vec<&'m Member>,
}

impl<'m> Contained<'m> {
    pub(super) fn new(manifest: Manifest) -> Self {
        Self {
            manifest,
            others: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, cx: &mut Context<'_>, member: &'m Member) -> Result<()> {
        let manifest = &mut self.manifest;
        manifest.region(member.header.clone(), "member's header");
        if let Some(range) = &member.descriptor {
            manifest.region(range.clone(), "member's descriptor");
        }
        match array_name(cx.source(), member)? {
            Some(name) => {
                let tensor = tensor(cx, manifest, member, name)?;
                push_tight(&mut manifest.tensors, tensor);
            }
            None => {
                self.others.push(member);
                other(manifest, member);
            }
        }
        Ok(())
    }

    pub(super) fn finish(self, cx: &mut Context<'_>) -> Manifest {
        if let [first, rest @ ..] = self.others.as_slice() {
            let more = match rest.len() {
                0 => String::new(),
                n => format!(", and {n} more"),
            };
            let message = format!("skipped, not an array: member {:?}{more}", first.name);
            cx.note("npz.other-member", first.data.clone(), message);
        }
        self.manifest
    }
}

/// Whether a file ends like a zip archive without a comment.
fn has_end(source: &dyn Source) -> Result<bool> {
    let len = source.len();
    let end = source.read(len.saturating_sub(22)..len)?;
    Ok(end.starts_with(b"PK\x05\x06"))
}

/// Bytes of an array's header, unless it is long.
const HEADER: u64 = 256;

/// The name of the member that a file begins with, as it is.
fn first_name(source: &dyn Source) -> Result<Bytes> {
    let head = source.read(0..source.len().min(30))?;
    let len = short_at(&head, 26);
    source.read(30.min(source.len())..(30 + len).min(source.len()))
}

/// Whether the member that a file begins with is an array.
fn first_is_array(source: &dyn Source) -> Result<bool> {
    let head = source.read(0..source.len().min(30))?;
    let at = 30 + short_at(&head, 26) + short_at(&head, 28);
    let is_deflated = short_at(&head, 8) == 8;
    begins_like_an_array(source, at..source.len(), is_deflated)
}

/// A number of 16 bits in the header of a member; 0 where that ends before.
fn short_at(head: &[u8], at: usize) -> u64 {
    match head.get(at..at + 2) {
        Some(&[low, high]) => u64::from(u16::from_le_bytes([low, high])),
        _ => 0,
    }
}

/// The name of the array that a member is: NumPy goes by the content where the name does not say so.
pub(super) fn array_name<'m>(source: &dyn Source, member: &'m Member) -> Result<Option<&'m str>> {
    if let Some(name) = member.name.strip_suffix(EXTENSION) {
        return Ok(Some(name));
    }
    let source = &Begun { source, member };
    let is_array = begins_like_an_array(source, member.data.clone(), member.is_deflated)?;
    Ok(is_array.then_some(member.name.as_str()))
}

/// Whether a member begins with the magic. What cannot be unpacked so far does not.
fn begins_like_an_array(source: &dyn Source, data: Range<u64>, is_deflated: bool) -> Result<bool> {
    const LEN: usize = numpy::MAGIC.len();
    let range = data.start..data.end.min(source.len());
    let mut magic = [0; LEN];
    if !is_deflated {
        let end = range.start.saturating_add(LEN as u64);
        return Ok(end <= range.end && source.read(range.start..end)? == numpy::MAGIC);
    }
    if range.is_empty() {
        return Ok(false);
    }
    let id = SourceId::MAIN;
    let mut inflate = Inflate::new(Input::Source {
        id,
        source,
        range,
        control: None,
    });
    match inflate.fill(&mut magic) {
        Ok(is_whole) => Ok(is_whole && magic == numpy::MAGIC),
        Err(error) if error.kind() == ErrorKind::Io => Err(error),
        Err(_) => Ok(false),
    }
}

/// A file in which the beginning of a member is known.
struct Begun<'s> {
    source: &'s dyn Source,
    member: &'s Member,
}

impl Source for Begun<'_> {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let Member {
            data, beginning, ..
        } = self.member;
        let place = |at: u64| usize::try_from(at.checked_sub(data.start)?).ok();
        let known = place(range.start).zip(place(range.end));
        match known.and_then(|(from, to)| beginning.get(from..to)) {
            Some(known) => Ok(beginning.slice_ref(known)),
            None => self.source.read(range),
        }
    }

    fn window(&self) -> u64 {
        self.source.window()
    }
}

/// Refuses a member `a` beside `a.npy`: NumPy gives the first by the name that the array in the second has here.
pub(super) fn refuse_ambiguous(members: &[Member]) -> Result<()> {
    let mut arrays = LookupMap::new();
    let names = members.iter().map(|member| member.name.as_str());
    arrays.extend(names.filter_map(|name| Some((name.strip_suffix(EXTENSION)?, ()))));
    let is_both = |member: &&Member| {
        let name = member.name.as_str();
        !name.ends_with(EXTENSION) && arrays.contains_key(name)
    };
    let Some(member) = members.iter().find(is_both) else {
        return Ok(());
    };
    let name = &member.name;
    let message = format!(
        "there are members {name:?} and {:?}, both of which NumPy calls {name:?}: which one counts is unclear",
        format!("{name}{EXTENSION}")
    );
    Err(Error::malformed("npz.duplicate", message).at(member.header.clone()))
}

/// The tensor of a member. What is wrong with the array in it loses only that.
fn tensor(
    cx: &mut Context<'_>,
    manifest: &mut Manifest,
    member: &Member,
    name: &str,
) -> Result<TensorInfo> {
    let ArrayHead {
        header,
        crc32,
        range,
    } = match read_header(cx, member) {
        Ok(read) => read,
        Err(error) => {
            manifest.region(member.data.clone(), "member");
            let mut tensor = TensorInfo::new(name, DType::UNKNOWN, Vec::new(), Layout::RowMajor);
            tensor.defect = Some(error.in_tensor(name).in_format(SPEC.id));
            return Ok(tensor);
        }
    };
    if let Some(at) = header.native {
        let message = format!(
            "the byte order of {name:?} is that of the machine that wrote it; read as little-endian"
        );
        cx.warn("npz.byte-order", at, message)?;
    }
    // Of a deflated array, elements can share its last bytes.
    manifest.region(range.clone(), "array's header");
    let payload = if member.is_deflated {
        Payload::Encoded {
            source: SourceId::MAIN,
            range: member.data.clone(),
            codec: Codec::Deflate {
                level: 0,
                // At most 10 000 and a little.
                skip: u32::try_from(header.len).unwrap_or(0),
            },
            len: header.data_len,
        }
    } else {
        Payload::main(range.end..member.data.end)
    };
    let mut tensor = TensorInfo::dense(name, header.dtype, header.shape, payload);
    tensor.layout = header.layout;
    if let Some(other) = header.other {
        tensor.layout = Scheme::new(other.descr, order_of(&tensor.layout)).into();
        for part in &mut tensor.parts {
            part.dtype = DType::U8;
        }
    }
    for part in &mut tensor.parts {
        part.endian = header.endian;
        let value = crc_behind(member.crc32, crc32, header.data_len);
        part.checksum = Some(Box::new(crc(value, Over::Decoded)));
    }
    Ok(tensor)
}

/// How elements that are not numbers are ordered, where that is not as usual.
fn order_of(layout: &Layout) -> &'static str {
    match layout {
        Layout::ColumnMajor => "column-major",
        _ => "",
    }
}

/// The header of the array in a member.
struct ArrayHead {
    header: Header,
    crc32: Crc32,
    /// Its bytes as they are stored.
    range: Range<u64>,
}

fn read_header(cx: &Context<'_>, member: &Member) -> Result<ArrayHead> {
    let source = &Begun {
        source: cx.source(),
        member,
    };
    let (mut left, mut sum) = (member.size, Crc32::default());
    let input = Input::Source {
        id: SourceId::MAIN,
        source,
        range: member.data.clone(),
        control: None,
    };
    let mut at = 0;
    let (mut inflate, place) = if member.is_deflated {
        (
            Some(Inflate::new(input.clone())),
            Place::Within(member.data.clone()),
        )
    } else {
        (None, Place::At(member.data.start))
    };
    let short = |field: &str| {
        let rule = match field {
            numpy::MAGIC_FIELD => "npz.magic",
            _ => "npz.truncated",
        };
        let message = format!(
            "the member has {} bytes and ends within {field}: the array is incomplete",
            member.size
        );
        Error::malformed(rule, message).at(member.data.clone())
    };
    let mut take = |n: u64, field: &'static str| {
        left = left.checked_sub(n).ok_or_else(|| short(field))?;
        let bytes = match &mut inflate {
            None => input.read(at, n)?,
            Some(inflate) => {
                // Never more than a header.
                let mut bytes = vec![0; crate::transform::as_size(n)?];
                let whole = inflate
                    .fill(&mut bytes)
                    .map_err(|error| error.at(member.data.clone()))?;
                if !whole {
                    return Err(short(field));
                }
                Bytes::from(bytes)
            }
        };
        at += n;
        sum.update(&bytes);
        Ok(bytes)
    };
    let mut header = Header::parse(&mut take, &place, cx.assumed_dtype(), cx.limits().rank)?;
    if header
        .other
        .as_ref()
        .is_some_and(|other| other.item.is_none())
    {
        let elements = element_count(&header.shape).unwrap_or(0);
        if left.checked_rem(elements).unwrap_or(left) != 0 {
            let message = format!(
                "{left} bytes follow the header in the member, not a multiple of {elements} records"
            );
            return Err(Error::malformed("npz.member-size", message).at(member.data.clone()));
        }
        header.data_len = left;
    }
    if header.data_len != left {
        let message = format!(
            "{} of {:?} has {} bytes, {left} follow the header in the member",
            header.dtype, header.shape, header.data_len
        );
        return Err(Error::malformed("npz.member-size", message).at(member.data.clone()));
    }
    let used = inflate.map_or(at, |inflate| inflate.used());
    Ok(ArrayHead {
        header,
        crc32: sum,
        range: member.data.start..member.data.start + used,
    })
}

/// The CRC-32 that data of `len` bytes must have, if after a head with `head` the whole is to have `whole`.
fn crc_behind(whole: u32, head: Crc32, len: u64) -> u32 {
    whole ^ head.in_front_of(len)
}

fn crc(value: u32, over: Over) -> Checksum {
    Checksum {
        kind: DigestKind::Crc32,
        over,
        value: Bytes::copy_from_slice(&value.to_be_bytes()),
    }
}

/// A member that is not an array: its checksum is verified where that needs no unpacking. No new file has a place for it, and
/// unless it is the name of a directory, that is a loss.
fn other(manifest: &mut Manifest, member: &Member) {
    manifest.region(member.data.clone(), "other member");
    if !member.name.ends_with('/') || member.size > 0 {
        let range = member.data.clone();
        let kept = Kept::new(SPEC.id, &member.name, SourceId::MAIN, range);
        manifest.kept.push(kept);
    }
    if !member.is_deflated {
        manifest.sealed.push(SealedRange {
            source: SourceId::MAIN,
            range: member.data.clone(),
            checksum: crc(member.crc32, Over::Stored),
            what: format!("member {:?}", member.name),
        });
    }
}

/// Names that NumPy does not find: it gives the array `x` when asked for `x.npy`, if both are there.
fn shadowed(what: &Manifest) -> Vec<Loss> {
    let mut names = LookupMap::new();
    names.extend(what.tensors.iter().map(|tensor| (tensor.name.as_str(), ())));
    let is_shadowed = |tensor: &&TensorInfo| {
        let plain = tensor.name.strip_suffix(EXTENSION);
        plain.is_some_and(|plain| names.contains_key(plain))
    };
    let loss = |tensor: &TensorInfo| {
        let why = format!(
            "NumPy loads the tensor of this name without .npy instead, and this one as {:?}",
            format!("{}{EXTENSION}", tensor.name)
        );
        Loss::new(Some(tensor.name.clone()), Lost::Name, why, Effect::Changed)
    };
    what.tensors.iter().filter(is_shadowed).map(loss).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_the_data_follows_from_that_of_the_member_and_of_its_header() {
        let whole = b"a header of some length, and then the numbers";
        for split in 0..=whole.len() {
            let (head, data) = whole.split_at(split);
            let mut sum = Crc32::default();
            sum.update(head);
            let found = crc_behind(crc32fast::hash(whole), sum, data.len() as u64);
            assert_eq!(found, crc32fast::hash(data), "{split}");
        }
    }
}
