//! Laying out a file: all headers, texts that are too long for them, and B-trees, then the data.

mod chunks;
mod encode;

use alloc::collections::BTreeMap;

use self::chunks::{Chunking, Cut};
use self::encode::{Heap, Messages, UNDEFINED, superblock};
use crate::error::{Error, Result};
use crate::format::{
    Arranged, Effect, FilePlan, Form, Loss, Lost, Plan, PlanOptions, Segment, Want, Written,
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
    attributes: Vec<(String, Value)>,
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

/// Where the data of a tensor is.
pub(super) struct Place {
    address: u64,
    len: u64,
    /// How it is cut into chunks, and the address of their B-tree.
    chunks: Option<(Cut, u64)>,
}

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let chunking = Chunking::new(options)?;
    let mut places = Vec::new();
    for tensor in &what.tensors {
        let too_large =
            || Error::unsupported("hdf5.write", "it is too large").in_tensor(&tensor.name);
        let cut = chunking.of(tensor)?;
        places.push(Place {
            address: UNDEFINED,
            len: tensor.dense_len().ok_or_else(too_large)?,
            chunks: cut.map(|cut| (cut, 0)),
        });
    }
    // How long headers are depends on no address.
    let layout = Layout::of(what, &places)?;
    let mut at = SUPERBLOCK + layout.headers + layout.heap;
    let mut segments = Vec::new();
    for (cut, tree) in places.iter_mut().filter_map(|place| place.chunks.as_mut()) {
        *tree = at;
        at += cut.tree_len();
    }
    let front = at;
    let has_chunks = places.iter().any(|place| place.chunks.is_some());
    for (index, (tensor, place)) in what.tensors.iter().zip(&mut places).enumerate() {
        if place.len == 0 {
            continue;
        }
        segments.push(Segment::Align { to: ALIGN, fill: 0 });
        segments.push(match &place.chunks {
            Some((cut, _)) => Segment::Chunks {
                index,
                dtype: tensor.dtype,
                sides: cut.sides.clone(),
                filters: cut.filters.clone(),
                numbers: None,
                digest: None,
            },
            None => Segment::Tensor {
                index,
                part: 0,
                want: Want::Dense(Form::canonical(tensor.dtype)),
                codec: None,
                digest: None,
            },
        });
        let end = at.checked_next_multiple_of(ALIGN).and_then(|start| {
            place.address = start;
            start.checked_add(place.len)
        });
        let message = "the file would be too large";
        at =
            end.ok_or_else(|| Error::unsupported("hdf5.write", message).in_tensor(&tensor.name))?;
    }
    segments.insert(
        0,
        if has_chunks {
            let what = what.clone();
            Segment::Late {
                len: front,
                make: Box::new(move |written, _| late(&what, places, written)),
            }
        } else {
            Segment::Bytes(Layout::of(what, &places)?.render(at))
        },
    );
    Ok(Plan {
        files: vec![FilePlan::new(options.file_name.clone(), segments)],
    })
}

/// Everything in front of the data, where its length shows when it is written.
fn late(what: &Manifest, mut places: Vec<Place>, written: &[Written]) -> Result<Vec<u8>> {
    let missing = || Error::argument("a tensor that was not written");
    let mut trees = Vec::new();
    let mut end = 0;
    for done in written {
        let place = places.get_mut(done.index).ok_or_else(missing)?;
        place.address = done.range.start;
        end = end.max(done.range.end);
        if let Some((cut, at)) = &place.chunks {
            trees.push((*at, cut.tree(*at, done)?));
        }
    }
    let mut front = Layout::of(what, &places)?.render(end);
    trees.sort_unstable_by_key(|(at, _)| *at);
    for (at, tree) in trees {
        if at != front.len() as u64 {
            return Err(missing());
        }
        front.extend_from_slice(&tree);
    }
    Ok(front)
}

/// The groups of a file.
fn groups(what: &Manifest) -> Result<Group<'_>> {
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
                group
                    .attributes
                    .extend(map.iter().map(|(key, value)| (key.to_owned(), value)));
            }
            _ => root.attributes.push((key.to_owned(), value.clone())),
        }
    }
    Ok(root)
}

/// Where everything goes.
struct Layout<'m> {
    what: &'m Manifest,
    root: Group<'m>,
    /// Bytes of the headers, group by group, each before what is in it.
    lens: Vec<u64>,
    /// Bytes of all of them.
    headers: u64,
    /// Bytes of the texts behind them that fit no header.
    heap: u64,
    places: &'m [Place],
}

impl<'m> Layout<'m> {
    fn of(what: &'m Manifest, places: &'m [Place]) -> Result<Self> {
        let mut layout = Self {
            what,
            root: Group::default(),
            lens: Vec::new(),
            headers: 0,
            heap: 0,
            places,
        };
        let root = groups(what)?;
        let mut heap = Heap::new(0);
        layout.measure(&root, &mut heap);
        layout.heap = heap.into_bytes().len() as u64;
        layout.root = root;
        Ok(layout)
    }

    /// The superblock, all headers and the heap of a file that ends at an address.
    fn render(&self, end: u64) -> Vec<u8> {
        let mut out = superblock(SUPERBLOCK, end);
        let mut next = SUPERBLOCK;
        let mut heap = Heap::new(SUPERBLOCK + self.headers);
        self.encode(
            &self.root,
            &mut self.lens.iter().copied(),
            &mut next,
            &mut heap,
            &mut out,
        );
        out.extend(heap.into_bytes());
        out
    }

    /// Notes how long the headers of a group and of everything in it are.
    fn measure(&mut self, group: &Group<'m>, heap: &mut Heap) {
        let mut messages = self.group(group, heap);
        group.entries.keys().for_each(|name| messages.link(name, 0));
        self.count(messages.header_len());
        for node in group.entries.values() {
            match node {
                Node::Group(group) => self.measure(group, heap),
                Node::Dataset(place) => {
                    let len = self.dataset(*place, heap).header_len();
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
        heap: &mut Heap,
        out: &mut Vec<u8>,
    ) {
        let own = lens.next().unwrap_or_default();
        *next += own;
        let mut messages = self.group(group, heap);
        let mut inner = Vec::new();
        for (name, node) in &group.entries {
            messages.link(name, *next);
            match node {
                Node::Group(group) => self.encode(group, lens, next, heap, &mut inner),
                Node::Dataset(place) => {
                    let len = lens.next().unwrap_or_default();
                    *next += len;
                    put(self.dataset(*place, heap).header(), len, &mut inner);
                }
            }
        }
        put(messages.header(), own, out);
        out.extend_from_slice(&inner);
    }

    /// The messages of a group, without its entries.
    fn group(&self, group: &Group<'m>, heap: &mut Heap) -> Messages {
        let mut messages = Messages::group();
        for (key, value) in &group.attributes {
            messages.attribute(key, value, heap);
        }
        messages
    }

    fn dataset(&self, place: usize, heap: &mut Heap) -> Messages {
        static NOTHING: Metadata = Metadata::new();
        let tensor = self.what.tensors.get(place);
        let mut messages = match (tensor, self.places.get(place)) {
            (Some(tensor), Some(place)) => Messages::dataset(tensor.dtype, &tensor.shape, place),
            _ => Messages::default(),
        };
        let metadata = tensor.map_or(&NOTHING, |tensor| &tensor.metadata);
        for (key, value, is_fact) in metadata.entries() {
            if !is_fact {
                messages.attribute(key, value, heap);
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
