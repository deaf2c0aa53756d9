//! From the model to a file.

use super::meta::{self, Claim};
use super::raw::{
    Chunk, DENSDATA, Dimension, Header, IX, PK, SP, SymmetryBody, VERSION_09, VERSION_10,
};
use super::{SPEC, V09};
use crate::error::{Error, Result};
use crate::format::{FilePlan, Form, PackSearch, Plan, PlanOptions, Segment, Survey, Want};
use crate::model::{
    DType, Endian, Lanes, Layout, Manifest, Operation, Order, Symmetry, TensorInfo,
};
use crate::prelude::*;
use crate::transform::Triangle;

/// Pairs are written in ascending order, and packing needs a look at the elements.
pub(super) fn survey(options: &PlanOptions) -> Result<Survey> {
    let little: fn(DType) -> Endian = |_| Endian::Little;
    let pairs = if is_big(options)? {
        big_integers
    } else {
        little
    };
    let pack = match options.option("pack") {
        None => None,
        Some(_) if options.version == V09 => {
            return Err(Error::argument("version 0.9 packs nothing; write 1.0"));
        }
        Some("auto") => Some(PackSearch {
            candidates: Arc::new(|tensor| Ok(every_exchange(tensor))),
            required: false,
        }),
        Some(text) => {
            let text = text.to_owned();
            Some(PackSearch {
                candidates: Arc::new(move |tensor| named_exchange(tensor, &text)),
                required: true,
            })
        }
    };
    Ok(Survey {
        // Version 0.9 has no pairs.
        pairs: (options.version != V09).then_some(pairs),
        pack,
        ..Survey::default()
    })
}

fn is_big(options: &PlanOptions) -> Result<bool> {
    match options.option("endian") {
        None | Some("little") => Ok(false),
        Some("big") => Ok(true),
        Some(_) => Err(options.wrong("endian", "expected big or little")),
    }
}

/// The byte order of numbers when integers are to be big-endian: those of IEEE never are.
fn big_integers(dtype: DType) -> Endian {
    match dtype {
        DType::Number(scalar, _) if !super::FLOATS.contains(&scalar) => Endian::Big,
        _ => Endian::Little,
    }
}

/// Every exchange of two dimensions of equal length, under every operation that the elements have.
fn every_exchange(tensor: &TensorInfo) -> Vec<Symmetry> {
    let rank = tensor.shape.len();
    let is_real = matches!(tensor.dtype, DType::Number(_, Lanes::Real));
    let operations = Operation::ALL.into_iter().filter(|operation| {
        meta::can_apply(*operation, tensor.dtype)
            && (!is_real || matches!(operation, Operation::Same | Operation::Negate))
    });
    let operations: Vec<_> = operations.collect();
    let mut found = Vec::new();
    if !tensor.layout.is_dense() || !unique(&meta::names(tensor)) {
        return found;
    }
    for p in 0..rank {
        for q in p + 1..rank {
            let length = tensor.shape.get(p);
            if length != tensor.shape.get(q) || length.is_none_or(|&length| length < 2) {
                continue;
            }
            let mut permutation: Vec<_> = (0..rank).collect();
            permutation.swap(p, q);
            let of = |&operation| Symmetry::new(operation, permutation.clone());
            found.extend(operations.iter().map(of));
        }
    }
    found
}

/// The exchange that `-x:ba` and its like name.
fn named_exchange(tensor: &TensorInfo, text: &str) -> Result<Vec<Symmetry>> {
    let refuse = |why: String| Err(Error::argument(format!("option pack={text}: {why}")));
    if matches!(tensor.layout, Layout::Pairs { .. }) {
        return refuse("indices and values are not packed by it".into());
    }
    let (code, map) = match text.rsplit_once(':') {
        Some((code, map)) => (code.as_bytes().to_vec(), meta::from_text(map)),
        None => {
            return refuse("expected auto, or an operation and a map such as -x:ba".into());
        }
    };
    let claim = Claim {
        code,
        map: map.unwrap_or_default(),
        packed: true,
    };
    let symmetry = match claim.symmetry(&meta::names(tensor), &tensor.shape) {
        Ok(Some(symmetry)) => symmetry,
        Ok(None) => return refuse("the operations are x, -x, conj(x) and -conj(x)".into()),
        Err(why) => return refuse(why),
    };
    if symmetry.transposition().is_none() {
        return refuse("the map must exchange two indices".into());
    }
    if !meta::can_apply(symmetry.operation, tensor.dtype) {
        return refuse(format!("{} has no negative numbers", tensor.dtype));
    }
    Ok(vec![symmetry])
}

fn unique(names: &[u8]) -> bool {
    let mut sorted = names.to_vec();
    sorted.sort_unstable();
    sorted.windows(2).all(|pair| pair.first() != pair.last())
}

pub(super) fn plan(what: &Manifest, options: &PlanOptions) -> Result<Plan> {
    let [tensor] = what.tensors.as_slice() else {
        return Err(Error::argument("a TENS file holds exactly one tensor"));
    };
    let endian = if is_big(options)? {
        big_integers(tensor.dtype)
    } else {
        Endian::Little
    };
    let segments = match options.version {
        V09 => plan_09(tensor),
        _ => plan_10(what, tensor, endian),
    };
    let segments = segments.map_err(|error| error.in_tensor(&tensor.name))?;
    let name = options.file_name.clone();
    Ok(Plan {
        files: vec![FilePlan::new(name, segments)],
    })
}

fn plan_09(tensor: &TensorInfo) -> Result<Vec<Segment>> {
    // Single bytes from `a` on, as cc4s names them.
    let names = (b'a'..).take(tensor.shape.len()).collect::<Vec<_>>();
    let head = head(tensor, VERSION_09, 0, Endian::Little, &names)?;
    Ok(vec![
        Segment::Bytes(head),
        data(Want::Dense(form(tensor.dtype, Endian::Little))),
    ])
}

fn plan_10(what: &Manifest, tensor: &TensorInfo, endian: Endian) -> Result<Vec<Segment>> {
    let names = meta::names(tensor);
    let is_table = matches!(tensor.layout, Layout::Pairs { .. });
    let flags = if is_table { IX } else { 0 };
    let mut head = head(tensor, VERSION_10, flags, endian, &names)?;
    for claim in claims(tensor, &names)? {
        let body = SymmetryBody {
            flags: if claim.packed { PK } else { 0 },
            code: claim.code,
            map: claim.map,
        };
        body.encode(&mut head);
    }
    let mut segments = vec![Segment::Bytes(head)];
    for kept in what.kept.iter().filter(|kept| kept.format == SPEC.id) {
        segments.push(Segment::Copy {
            source: kept.source,
            range: kept.range.clone(),
        });
    }
    let (stored, want) = match (&tensor.layout, tensor.pack()) {
        (Layout::Pairs(pairs), _) => {
            segments.push(Segment::Bytes(pairs.nnz.to_le_bytes().to_vec()));
            segments.push(data(Want::Stored));
            return Ok(segments);
        }
        (_, Some(symmetry)) => packed(tensor, symmetry, endian)?,
        (Layout::Packed(symmetry), None) => packed(tensor, symmetry, endian)?,
        _ => {
            let elements = tensor.elements().ok_or_else(too_large)?;
            (elements, Want::Dense(form(tensor.dtype, endian)))
        }
    };
    let len = tensor.dtype.bytes_for(stored).ok_or_else(too_large)?;
    let total = len
        .checked_add(Chunk::LEN)
        .and_then(|len| len.checked_next_multiple_of(8));
    let mut chunk = Vec::new();
    Chunk::encode(DENSDATA, total.ok_or_else(too_large)?, &mut chunk);
    segments.push(Segment::Bytes(chunk));
    segments.push(data(want));
    segments.push(Segment::Align { to: 8, fill: 0 });
    Ok(segments)
}

/// Header and dimensions.
fn head(
    tensor: &TensorInfo,
    version: u32,
    flags: u32,
    endian: Endian,
    names: &[u8],
) -> Result<Vec<u8>> {
    let header = Header {
        version,
        dtype: tensor.dtype,
        endian,
        order: u32::try_from(tensor.shape.len()).map_err(|_| too_large())?,
        flags,
        zero: 0,
    };
    let mut head = Vec::new();
    header.encode(&mut head).ok_or_else(|| {
        Error::unsupported(
            "tens.number-type",
            format!("no number type for {}", tensor.dtype),
        )
    })?;
    let sparse = match version {
        VERSION_10 => meta::sparse_dimensions(tensor),
        _ => Vec::new(),
    };
    for (place, (&length, &index_name)) in (0..).zip(tensor.shape.iter().zip(names)) {
        let dimension = Dimension {
            length: u32::try_from(length).map_err(|_| too_large())?,
            index_name,
            flags: if sparse.contains(&place) { SP } else { 0 },
            zero: 0,
        };
        dimension.encode(&mut head);
    }
    Ok(head)
}

/// What the file will say of symmetries: those that it is packed by, and those that the tensor brings.
fn claims(tensor: &TensorInfo, names: &[u8]) -> Result<Vec<Claim>> {
    let packing = match (&tensor.layout, tensor.pack()) {
        (Layout::Pairs(pairs), _) => pairs.orbits.clone(),
        (_, Some(symmetry)) => vec![symmetry.clone()],
        (Layout::Packed(symmetry), None) => vec![(**symmetry).clone()],
        _ => Vec::new(),
    };
    let mut claims = meta::claims(tensor);
    for claim in &mut claims {
        claim.packed = false;
    }
    for symmetry in packing {
        let is_it = |claim: &Claim| {
            claim.symmetry(names, &tensor.shape).ok().flatten().as_ref() == Some(&symmetry)
        };
        match claims
            .iter_mut()
            .find(|claim| !claim.packed && is_it(claim))
        {
            Some(claim) => claim.packed = true,
            None => claims.push(Claim::new(&symmetry, names)),
        }
    }
    if !claims.is_empty() && !unique(names) {
        let message = "two indices have the same name, so no symmetry of them can be written";
        return Err(Error::argument(message));
    }
    Ok(claims)
}

fn packed(tensor: &TensorInfo, symmetry: &Symmetry, endian: Endian) -> Result<(u64, Want)> {
    let want = Want::Packed {
        symmetry: symmetry.clone(),
        endian,
    };
    Ok((Triangle::new(&tensor.shape, symmetry)?.stored(), want))
}

fn form(dtype: DType, endian: Endian) -> Form {
    Form {
        dtype,
        order: Order::ColumnMajor,
        endian,
    }
}

fn data(want: Want) -> Segment {
    Segment::Tensor {
        index: 0,
        part: 0,
        want,
        codec: None,
        digest: None,
    }
}

fn too_large() -> Error {
    Error::unsupported(
        "tens.overflow",
        "the tensor is larger than the format can say",
    )
}
