//! Quantized tensors as plain numbers.

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::model::{DType, Layout, TensorInfo};
use crate::prelude::*;

/// The archive with every quantized tensor as the numbers that it stands for. Nothing is decoded before it is read.
///
/// A quantized tensor that cannot be decoded here is an error that names it.
pub fn dequantize(archive: &Archive) -> Result<Archive> {
    let mut manifest = archive.manifest().clone();
    for tensor in manifest
        .tensors
        .iter_mut()
        .filter(|tensor| is_quantized(tensor))
    {
        let Some(decoder) = tensor.decoder.clone() else {
            let kind = match tensor.dtype {
                block @ DType::Block(_) => block.to_string(),
                _ => tensor.layout.name().to_owned(),
            };
            let message = format!(
                "it is {kind}, and how to turn that into numbers is not known here; leave it out with --exclude"
            );
            let error = Error::unsupported("dequantize", message).in_tensor(&tensor.name);
            return Err(match archive.format() {
                Some(spec) => error.in_format(spec.id),
                None => error,
            });
        };
        tensor.dtype = decoder.dtype();
        tensor.layout = Layout::Decoded;
        let stale = decoder.describes();
        tensor.metadata = tensor
            .metadata
            .filter_map(|key, value| (!stale.contains(&key)).then(|| value.clone()));
    }
    Ok(archive.with_manifest(manifest))
}

fn is_quantized(tensor: &TensorInfo) -> bool {
    tensor.defect.is_none()
        && (tensor.decoder.is_some()
            || matches!(tensor.layout, Layout::Opaque { .. })
            || matches!(tensor.dtype, DType::Block(_)))
}
