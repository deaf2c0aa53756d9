//! The archive that `torch.save` writes: its members, below one folder.

use bytes::Bytes;

use super::tensors::{Storage, Storages};
use crate::error::{Error, Result};
use crate::io::Source;
use crate::model::{Codec, Endian, Payload, SourceId};
use crate::prelude::*;
use crate::transform::{Inflate, Input};
use crate::wire::zip::{self, Member, TORCH_PICKLE as PICKLE, Zip};

/// The folder of the storages.
const DATA: &str = "data/";

pub(in crate::formats) fn no_pickle() -> Error {
    let message = format!("there is no member {PICKLE}: not written by torch.save");
    Error::malformed("root", message)
}

/// The members of an archive below its one folder.
#[derive(Clone, Copy)]
pub(in crate::formats) struct Archive<'z> {
    pub(in crate::formats) zip: &'z Zip,
    pub(in crate::formats) id: SourceId,
    root: &'z str,
}

impl<'z> Archive<'z> {
    pub(in crate::formats) fn new(zip: &'z Zip, id: SourceId) -> Result<Self> {
        let names = || zip.members.iter().map(|member| member.name.as_str());
        let mut roots = names().filter_map(zip::torch_root);
        let root = roots.next().ok_or_else(no_pickle)?;
        let is_elsewhere = |member: &&Member| {
            let inside = member.name.strip_prefix(root);
            !inside.is_some_and(|inside| inside.starts_with('/'))
        };
        match zip.members.iter().find(is_elsewhere) {
            None => Ok(Self { zip, id, root }),
            Some(member) => {
                let message = format!(
                    "member {:?} lies outside of the folder {root:?}, which has the pickle: readers disagree about what counts",
                    member.name
                );
                let error = Error::malformed("root", message);
                Err(error.at(member.header.clone()))
            }
        }
    }

    /// The name of a member below the root.
    fn name<'m>(&self, member: &'m Member) -> &'m str {
        let inside = member.name.strip_prefix(self.root);
        let inside = inside.and_then(|name| name.strip_prefix('/'));
        inside.unwrap_or_default()
    }

    pub(in crate::formats) fn member(&self, name: &str) -> Option<&'z Member> {
        let mut members = self.zip.members.iter();
        members.find(|member| self.name(member) == name)
    }

    /// The key of the storage that a member is.
    pub(in crate::formats) fn key<'m>(&self, member: &'m Member) -> Option<&'m str> {
        let key = self.name(member).strip_prefix(DATA)?;
        (!key.is_empty() && !key.contains('/')).then_some(key)
    }

    /// A short text of the archive, without blanks around it.
    pub(in crate::formats) fn text(
        &self,
        source: &dyn Source,
        name: &str,
    ) -> Result<Option<(String, Range<u64>)>> {
        const MOST: u64 = 64;
        let Some(member) = self.member(name) else {
            return Ok(None);
        };
        let bytes = match member.size {
            0..=MOST => unpack(source, member)?,
            _ => Bytes::new(),
        };
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        Ok(Some((text, member.data.clone())))
    }

    fn endian(&self, source: &dyn Source) -> Result<Endian> {
        match self.text(source, "byteorder")? {
            None => Ok(Endian::Little),
            Some((text, _)) if text == "little" => Ok(Endian::Little),
            Some((text, _)) if text == "big" => Ok(Endian::Big),
            Some((text, at)) => {
                let message = format!("the byte order is {text:?}; expected little or big");
                Err(Error::malformed("byte-order", message).at(at))
            }
        }
    }

    pub(in crate::formats) fn storages(&self, source: &dyn Source) -> Result<Storages> {
        let mut storages = Storages::default();
        storages.endian = self.endian(source)?;
        for member in &self.zip.members {
            let Some(key) = self.key(member) else {
                continue;
            };
            let range = member.data.clone();
            let payload = if member.is_deflated {
                Payload::Encoded {
                    source: self.id,
                    range,
                    codec: Codec::Deflate { level: 0, skip: 0 },
                    len: member.size,
                }
            } else {
                Payload::Raw {
                    source: self.id,
                    range,
                }
            };
            storages.add(Storage {
                key: key.to_owned(),
                payload,
                crc32: crc32(member),
            });
        }
        Ok(storages)
    }
}

/// The checksum of a member. Torch can leave it out, which is a 0.
pub(in crate::formats) fn crc32(member: &Member) -> Option<u32> {
    (member.crc32 != 0).then_some(member.crc32)
}

/// All bytes of a member that is known to be small enough.
pub(in crate::formats) fn unpack(source: &dyn Source, member: &Member) -> Result<Bytes> {
    if !member.is_deflated {
        return source.read(member.data.clone());
    }
    let mut inflate = Inflate::new(Input::Source {
        id: SourceId::MAIN,
        source,
        range: member.data.clone(),
        control: None,
    });
    let mut bytes = vec![0; crate::transform::as_size(member.size)?];
    let is_whole = inflate
        .fill(&mut bytes)
        .map_err(|error| error.at(member.data.clone()))?;
    if !is_whole {
        let message = format!(
            "member {:?} ends before its {} bytes",
            member.name, member.size
        );
        return Err(Error::malformed("truncated", message).at(member.data.clone()));
    }
    Ok(bytes.into())
}
