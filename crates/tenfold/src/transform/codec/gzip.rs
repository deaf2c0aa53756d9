//! The heads of gzip's members.

use crate::error::{Error, Result};
use crate::io::Reader;
use crate::prelude::*;

/// How every member begins: the signature, and the one method that there is.
pub(crate) const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];
/// The checksum and the length behind the deflated data of a member.
pub(crate) const TAIL: u64 = 8;

/// Flags of a member: what its head has beside ten bytes.
const CHECKSUM: u8 = 0x02;
const EXTRA: u8 = 0x04;
pub(crate) const NAME: u8 = 0x08;
const COMMENT: u8 = 0x10;

/// Passes over the head of a member, to where its deflated data begins.
pub(crate) fn head(r: &mut Reader<'_>) -> Result<()> {
    let [a, b, method, flags] = r.array("a gzip member")?;
    if [a, b, method] != MAGIC {
        return Err(broken("there is no gzip member where one should begin"));
    }
    r.skip(6, "time and system")?;
    if flags & EXTRA != 0 {
        let len = r.u16("extra fields")?;
        r.skip(len.into(), "extra fields")?;
    }
    for flag in [NAME, COMMENT] {
        if flags & flag != 0 {
            while r.u8("a text")? != 0 {}
        }
    }
    if flags & CHECKSUM != 0 {
        r.skip(2, "checksum of the header")?;
    }
    Ok(())
}

pub(crate) fn broken(what: impl core::fmt::Display) -> Error {
    Error::malformed("gzip", format!("the gzip data is damaged: {what}"))
}
