//! Laying out a file: all headers, then the data.

mod encode;

use alloc::collections::BTreeMap;

use self::encode::{Messages, UNDEFINED, superblock};
use crate::error::{Error, Result};
use crate::format::{
    Arranged, Effect, FilePlan, Form, Loss, Lost, Plan, PlanOptions, Segment, Want,
};
use crate::model::{Manifest, Metadata, TensorInfo, Value};
use crate::prelude::*;

/// Data begins at a multiple of this.
const ALIGN: u64 = 64;
/// Headers begin at a multiple of this.
const HEADER_ALIGN: u64 = 8;
/// Bytes of the superblock.
const SUPERBLOCK: u64 = 48;

/// Puts the tensors into the order of the file, and says which have a name that a group has too.
pub(super) fn arrange(what: &Manifest) -> Arranged {
    let mut manifest = what.clone();
    let is_sorted = manifest.tensors.is_sorted_by(|a, b| parts(a).le(parts(b)));
    if !is_sorted {
        manifest.tensors.sort_by(|a, b| parts(a).cmp(parts(b)));
    }
    // What is inside of a group follows it.
    let mut neighbours = manifest.tensors.iter().zip(manifest.tensors.iter().skip(1));
    let is_inside = |a: &str, b: &str| b.strip_prefix(a).is_some_and(|rest| rest.starts_with('/'));
    let losses = neighbours
        .by_ref()
        .filter(|(a, b)| is_inside(&a.name, &b.name))
        .map(|(a, b)| {
            let why = format!("a dataset cannot be a group too, and {:?} is in it", b.name);
            Loss::new(Some(a.name.clone()), Lost::Name, why, Effect::Impossible)
        })
        .collect();
    Arranged::new(manifest, losses)
}

fn parts(tensor: &TensorInfo) -> core::str::Split<'_, char> {
    tensor.name.split('/')
}

/// A group, and what is in it.
#[derive(Default)]
struct Group<'m> {
    entries: BTreeMap<&'m str, Node<'m>>,
    attributes: Vec<(&'m str, Value)>,
}

enum Node<'m> {
    Group(Group<'m>),
    /// The place among the tensors.
    Dataset(usize),
}

impl<'m> Group<'m> {
    /// The group with a path, made where it is not there.
    fn inner(&mut self, path: &'m str) -> Result<&mut Self> {
        path.split('/').try_fold(self, |group, part| {
            let new = || Node::Group(Group::default());
            match group.entries.entry(part).or_insert_with(new) {
                Node::Group(group) => Ok(group),
                Node::Dataset(_) => {
                    let message = format!("{path:?} is a dataset and a group too");
                    Err(Error::unsupported("hdf5.write", message))
                }
            }
        })
    }
}

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let mut root = Group::default();
    for (place, tensor) in what.tensors.iter().enumerate() {
        let (group, name) = match tensor.name.rsplit_once('/') {
            Some((path, name)) => (root.inner(path)?, name),
            None => (&mut root, tensor.name.as_str()),
        };
        if group.entries.insert(name, Node::Dataset(place)).is_some() {
            let message = "a dataset and a group have this name, or two datasets";
            return Err(Error::unsupported("hdf5.write", message).in_tensor(&tensor.name));
        }
    }
    for (key, value) in what.metadata.iter() {
        match (key.strip_prefix('/'), value) {
            (Some(path), Value::Map(map)) => {
                let group = root.inner(path)?;
                group.attributes.extend(map.iter());
            }
            _ => root.attributes.push((key, value.clone())),
        }
    }
    let mut layout = Layout {
        what,
        lens: Vec::new(),
        headers: 0,
        data: Vec::new(),
    };
    // Headers first: how long they are depends on no address.
    layout.measure(&root);
    let mut at = SUPERBLOCK + layout.headers;
    for tensor in &what.tensors {
        let too_large = || Error::unsupported("hdf5.write", "it is too large").in_tensor(&tensor.name);
        let len = tensor.dense_len().ok_or_else(too_large)?;
        let start = at.checked_next_multiple_of(ALIGN).ok_or_else(too_large)?;
        layout.data.push((if len == 0 { UNDEFINED } else { start }, len));
        if len > 0 {
            at = start.checked_add(len).ok_or_else(too_large)?;
        }
    }
    let mut headers = superblock(SUPERBLOCK, at);
    let mut lens = core::mem::take(&mut layout.lens).into_iter();
    let mut next = SUPERBLOCK;
    layout.encode(&root, &mut lens, &mut next, &mut headers);
    let mut segments = vec![Segment::Bytes(headers)];
    for (index, (tensor, (_, len))) in what.tensors.iter().zip(&layout.data).enumerate() {
        if *len == 0 {
            continue;
        }
        segments.push(Segment::Align { to: ALIGN, fill: 0 });
        segments.push(Segment::Tensor {
            index,
            part: 0,
            want: Want::Dense(Form::canonical(tensor.dtype)),
            codec: None,
            digest: None,
        });
    }
    Ok(Plan {
        files: vec![FilePlan {
            name: options.file_name.clone(),
            segments,
        }],
    })
}

/// Where everything goes.
struct Layout<'m> {
    what: &'m Manifest,
    /// Bytes of the headers, group by group, each before what is in it.
    lens: Vec<u64>,
    /// Bytes of all of them.
    headers: u64,
    /// Address and bytes of the data of each tensor.
    data: Vec<(u64, u64)>,
}

impl<'m> Layout<'m> {
    /// Notes how long the headers of a group and of everything in it are.
    fn measure(&mut self, group: &Group<'m>) {
        let mut messages = self.group(group);
        group.entries.keys().for_each(|name| messages.link(name, 0));
        self.count(messages.header_len());
        for node in group.entries.values() {
            match node {
                Node::Group(group) => self.measure(group),
                Node::Dataset(place) => {
                    let len = self.dataset(*place).header_len();
                    self.count(len);
                }
            }
        }
    }

    fn count(&mut self, len: u64) {
        let len = len.next_multiple_of(HEADER_ALIGN);
        self.lens.push(len);
        self.headers += len;
    }

    /// Writes the header of a group that is at `next`, and everything in it behind it.
    fn encode(
        &self,
        group: &Group<'m>,
        lens: &mut dyn Iterator<Item = u64>,
        next: &mut u64,
        out: &mut Vec<u8>,
    ) {
        let own = lens.next().unwrap_or_default();
        *next += own;
        let mut messages = self.group(group);
        let mut inner = Vec::new();
        for (name, node) in &group.entries {
            messages.link(name, *next);
            match node {
                Node::Group(group) => self.encode(group, lens, next, &mut inner),
                Node::Dataset(place) => {
                    let len = lens.next().unwrap_or_default();
                    *next += len;
                    put(self.dataset(*place).header(), len, &mut inner);
                }
            }
        }
        put(messages.header(), own, out);
        out.extend_from_slice(&inner);
    }

    /// The messages of a group, without its entries.
    fn group(&self, group: &Group<'m>) -> Messages {
        let mut messages = Messages::group();
        for (key, value) in &group.attributes {
            messages.attribute(key, value);
        }
        messages
    }

    fn dataset(&self, place: usize) -> Messages {
        static NOTHING: Metadata = Metadata::new();
        let tensor = self.what.tensors.get(place);
        let (address, len) = self.data.get(place).copied().unwrap_or_default();
        let mut messages = match tensor {
            Some(tensor) => Messages::dataset(tensor.dtype, &tensor.shape, address, len),
            None => Messages::default(),
        };
        let metadata = tensor.map_or(&NOTHING, |tensor| &tensor.metadata);
        for (key, value, is_fact) in metadata.entries() {
            if !is_fact {
                messages.attribute(key, value);
            }
        }
        messages
    }
}

/// Adds a header and what pads it.
fn put(header: Vec<u8>, len: u64, out: &mut Vec<u8>) {
    let padding = len.saturating_sub(header.len() as u64);
    out.extend_from_slice(&header);
    out.extend((0..padding).map(|_| 0));
}
