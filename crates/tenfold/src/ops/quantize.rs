//! Numbers as quantized blocks.

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::model::{BlockSpec, Layout, TensorInfo};
use crate::transform::quant;

/// The archive with tensors as blocks: `to` says of which type, tensor by tensor, and `None` leaves one as it is.
///
/// `Q8_0` and `Q4_0` are written, rounded as ggml rounds. Nothing is computed before it is read. A tensor whose rows are
/// not whole blocks, or whose elements are no numbers, is an error that names it.
pub fn quantize(
    archive: &Archive,
    to: impl Fn(&TensorInfo) -> Option<&'static BlockSpec>,
) -> Result<Archive> {
    let mut manifest = archive.manifest().clone();
    for tensor in &mut manifest.tensors {
        let Some(spec) = to(tensor) else { continue };
        let quantizer = tensor
            .readable()
            .and_then(|tensor| cast_first(tensor).map(|()| tensor))
            .and_then(|tensor| quant::quantizer(tensor, spec))
            .map_err(|error| error.in_tensor(&tensor.name))?;
        tensor.dtype = quantizer.dtype();
        tensor.layout = Layout::Decoded;
        tensor.decoder = Some(quantizer);
    }
    Ok(archive.with_manifest(manifest))
}

/// A cast that was asked for before would be passed over.
fn cast_first(tensor: &TensorInfo) -> Result<()> {
    let part = tensor.parts.first().map(|part| part.dtype);
    match tensor.layout.is_dense() && part.is_some_and(|part| part != tensor.dtype) {
        true => Err(Error::unsupported(
            "quantize",
            "it is cast too; a tensor is either cast or quantized",
        )),
        false => Ok(()),
    }
}
