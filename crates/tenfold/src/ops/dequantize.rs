//! Quantized tensors as plain numbers.

use crate::archive::Archive;
use crate::error::{Error, Hint, Result};
use crate::model::{DType, Layout, TensorInfo};
use crate::prelude::*;

/// The archive with every quantized tensor as the numbers that it stands for. Nothing is decoded before it is read.
///
/// A quantized tensor that cannot be decoded here is an error that names it.
///
/// ```no_run
/// use tenfold::{Archive, ops};
/// let archive = Archive::open("model-Q4_K.gguf")?;
/// ops::dequantize(&archive)?.save("model.safetensors")?; // f32, which can be cast: `ops::cast`
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn dequantize(archive: &Archive) -> Result<Archive> {
    archive.try_change(|tensor| {
        if !is_quantized(tensor) {
            return Ok(None);
        }
        let Some(decoder) = &tensor.decoder else {
            let kind = match tensor.dtype {
                block @ DType::Block(_) => block.to_string(),
                _ => tensor.layout.name().to_owned(),
            };
            let message = format!("tenfold cannot turn {kind} into numbers");
            let error = Error::unsupported("dequantize", message)
                .in_tensor(&tensor.name)
                .hinting(Hint::Exclude);
            return Err(match archive.format() {
                Some(spec) => error.in_format(spec.id),
                None => error,
            });
        };
        if matches!(decoder.dtype(), DType::Block(_)) {
            let message = "it is about to be quantized; write that first";
            return Err(Error::unsupported("dequantize", message).in_tensor(&tensor.name));
        }
        // Numbers already, and maybe cast to others.
        if tensor.layout == Layout::Decoded {
            return Ok(None);
        }
        let mut plain = tensor.clone();
        plain.dtype = decoder.dtype();
        plain.layout = Layout::Decoded;
        let stale = decoder.describes();
        plain.metadata = tensor
            .metadata
            .filter_map(|key, value| (!stale.contains(&key)).then(|| value.clone()));
        Ok(Some(plain))
    })
}

fn is_quantized(tensor: &TensorInfo) -> bool {
    tensor.defect.is_none()
        && (tensor.decoder.is_some()
            || matches!(tensor.layout, Layout::Opaque { .. })
            || matches!(tensor.dtype, DType::Block(_)))
}
