//! Numbers as quantized blocks.

use crate::archive::Archive;
use crate::error::{Error, Result};
use crate::model::{BlockSpec, Layout, TensorInfo};
use crate::ops::cast::before_cast;
use crate::transform::quant;

/// The archive with tensors as blocks: `to` says of which type, tensor by tensor, and `None` leaves one as it is.
///
/// `Q8_0` and `Q4_0` are written, rounded as ggml rounds. Nothing is computed before it is read. A tensor whose rows are
/// not whole blocks, or whose elements are no numbers, is an error that names it.
///
/// ```
/// use tenfold::format::Registry;
/// use tenfold::model::BlockSpec;
/// use tenfold::{Archive, io::MemoryOutput, ops};
/// let mut b = Archive::builder();
/// b.tensor("w", [2, 32], vec![127f32; 64])?;
/// b.tensor("bias", [3], [1f32, 2.0, 3.0])?;
/// let blocks = BlockSpec::from_name("Q8_0");
/// let quantized = ops::quantize(&b.finish(), |tensor| blocks.filter(|_| tensor.shape.len() == 2))?;
/// assert_eq!(quantized.tensor("w")?.info().dtype.to_string(), "gguf:Q8_0");
///
/// let mut files = MemoryOutput::new();
/// let registry = Registry::standard();
/// ops::Conversion::prepare(&quantized, registry.get("gguf")?, &Default::default())?.write_to("w.gguf", &mut files)?;
/// let file = Archive::from_bytes(files.into_files().remove("w.gguf").unwrap())?;
/// assert_eq!(file.tensor("w")?.to::<f32>()?[0], 127.0);
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn quantize(
    archive: &Archive,
    to: impl Fn(&TensorInfo) -> Option<&'static BlockSpec>,
) -> Result<Archive> {
    archive.try_change(|tensor| {
        let Some(spec) = to(tensor) else {
            return Ok(None);
        };
        let quantizer = tensor
            .readable()
            .and_then(|tensor| cast_first(tensor).map(|()| tensor))
            .and_then(|tensor| quant::quantizer(tensor, spec))
            .map_err(|error| error.in_tensor(&tensor.name))?;
        let mut quantized = tensor.clone();
        quantized.dtype = quantizer.dtype();
        quantized.layout = Layout::Decoded;
        quantized.decoder = Some(quantizer);
        Ok(Some(quantized))
    })
}

/// A cast that was asked for before would be passed over.
fn cast_first(tensor: &TensorInfo) -> Result<()> {
    match before_cast(tensor) {
        Some(_) => Err(Error::unsupported(
            "quantize",
            "it is cast too; a tensor is either cast or quantized",
        )),
        None => Ok(()),
    }
}
