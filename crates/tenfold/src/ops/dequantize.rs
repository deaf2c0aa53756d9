//! Quantized tensors as plain numbers.

use crate::archive::Archive;
use crate::error::{Error, Hint, Result};
use crate::model::{DType, Layout, Scheme, TensorInfo};
use crate::prelude::*;
use crate::schemes::{self, ConfigFile, Recognized};

/// The archive with every quantized tensor as the numbers that it stands for. Nothing is decoded until it is read.
///
/// Tensors that are quantized together, as GPTQ's `qweight`, `scales` and `qzeros`, become one of the plain name (`weight`):
/// see [`quantized`], which says what is taken for what.
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
    let quantized = quantized(archive)?;
    match quantized.problems.into_iter().next() {
        Some(problem) => Err(problem),
        None => decoded(&quantized.archive),
    }
}

/// The same for tensors that are quantized by themselves: nothing is put together, and no configuration is looked for.
pub fn decoded(archive: &Archive) -> Result<Archive> {
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
            let message = "it is already being quantized; write that first";
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

/// An archive in which tensors that are quantized together are one each.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuantizedGroups {
    /// Its quantized tensors have a layout that is named after the scheme, the tensors of the file as parts, and a decoder.
    pub archive: Archive,
    /// Which tensors were recognized as what.
    pub groups: Vec<QuantizedGroup>,
    /// The file beside it that says how, if one does.
    pub config: Option<&'static str>,
    /// Tensors that mean nothing without quantization and belong to no single tensor, such as scales of a cache: they are
    /// not in the archive.
    pub left_out: Vec<String>,
    /// Why tensors that look quantized are not taken together.
    pub problems: Vec<Error>,
}

/// Tensors of a file that are one quantized tensor.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuantizedGroup {
    /// The name of the numbers.
    pub name: String,
    /// The scheme, and what must be known beside it.
    pub scheme: Scheme,
    /// The tensors of the file that it consists of, the codes first.
    pub tensors: Vec<String>,
}

/// Which tensors are quantized together, by the configuration beside the file and by names, types and shapes: GPTQ, AWQ,
/// bitsandbytes, compressed-tensors, FP8, MLX and others. Reads headers, and small tensors that say how others are meant.
///
/// ```no_run
/// use tenfold::{Archive, ops};
/// let quantized = ops::quantized(&Archive::open("model-AWQ")?)?;
/// for group in &quantized.groups {
///     println!("{}: {} ({})", group.name, group.scheme.name, group.scheme.parameters);
/// }
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn quantized(archive: &Archive) -> Result<QuantizedGroups> {
    let manifest = archive.manifest();
    if !schemes::is_suspect(manifest) {
        return Ok(QuantizedGroups {
            archive: archive.clone(),
            groups: Vec::new(),
            config: None,
            left_out: Vec::new(),
            problems: Vec::new(),
        });
    }
    let Recognized {
        manifest,
        config,
        groups,
        left_out,
        problems,
    } = schemes::recognize(manifest, archive.data(), &configurations(archive)?)?;
    let groups: Vec<_> = (groups.into_iter())
        .map(|group| QuantizedGroup {
            name: group.name,
            scheme: group.scheme,
            tensors: group.tensors,
        })
        .collect();
    let archive = if groups.is_empty() {
        archive.clone()
    } else {
        archive.with_manifest(manifest)
    };
    Ok(QuantizedGroups {
        archive,
        groups,
        config,
        left_out,
        problems,
    })
}

/// The files beside it that say how it is quantized.
fn configurations(archive: &Archive) -> Result<Vec<ConfigFile>> {
    #[cfg(feature = "std")]
    let files = archive.files_beside(&schemes::FILES, schemes::LONGEST)?;
    #[cfg(not(feature = "std"))]
    let files = {
        let _ = (archive, schemes::FILES, schemes::LONGEST);
        Vec::<(&str, bytes::Bytes)>::new()
    };
    let files = files.into_iter();
    Ok(files
        .map(|(name, bytes)| ConfigFile { name, bytes })
        .collect())
}
