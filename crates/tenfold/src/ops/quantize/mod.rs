//! Numbers as quantized blocks.

mod imatrix;
mod mixtures;
mod names;
mod plan;
mod quality;

pub use imatrix::ImportanceMatrix;
pub use mixtures::Mixture;
pub use plan::{Choice, Quantized};
pub use quality::{Quality, TensorQuality, quality};

use crate::archive::Archive;
use crate::error::Result;
use crate::model::{BlockSpec, TensorInfo};
use crate::prelude::*;
use crate::transform::quant;

/// What is quantized, and to what.
#[derive(Clone, Default)]
pub struct QuantizeOptions {
    base: Base,
    rule: Option<ChooseBlock>,
    among_matrices: Option<ChooseBlock>,
    except: Option<Chosen>,
    pure: bool,
    importance: Option<Arc<ImportanceMatrix>>,
}

type ChooseBlock = Arc<dyn Fn(&TensorInfo) -> Option<&'static BlockSpec> + Send + Sync>;
type Chosen = Arc<dyn Fn(&TensorInfo) -> bool + Send + Sync>;

/// What becomes of tensors that no rule is about.
#[derive(Clone, Copy, Default)]
enum Base {
    #[default]
    AsIs,
    Type(&'static BlockSpec),
    Mixture(&'static Mixture),
}

impl QuantizeOptions {
    /// Everything stays as it is.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every matrix of floating-point numbers becomes blocks of this type, but those that llama.cpp leaves as they are.
    #[must_use]
    pub fn every_matrix(mut self, to: Option<&'static BlockSpec>) -> Self {
        self.base = to.map_or(Base::AsIs, Base::Type);
        self
    }

    /// The same with the types that a mixture has for the tensors of a language model, which goes by their names.
    #[must_use]
    pub fn mixture(mut self, mixture: Option<&'static Mixture>) -> Self {
        self.base = mixture.map_or(Base::AsIs, Base::Mixture);
        self
    }

    /// Tensors for which `to` gives a type become blocks of that, whatever a mixture says.
    #[must_use]
    pub fn rule(
        mut self,
        to: impl Fn(&TensorInfo) -> Option<&'static BlockSpec> + Send + Sync + 'static,
    ) -> Self {
        self.rule = Some(Arc::new(to));
        self
    }

    /// The same for those tensors only that are quantized without a rule: matrices that llama.cpp does not leave as they are.
    #[must_use]
    pub fn rule_among_matrices(
        mut self,
        to: impl Fn(&TensorInfo) -> Option<&'static BlockSpec> + Send + Sync + 'static,
    ) -> Self {
        self.among_matrices = Some(Arc::new(to));
        self
    }

    /// Tensors that stay as they are, unless a rule gives them a type.
    #[must_use]
    pub fn except(mut self, keep: impl Fn(&TensorInfo) -> bool + Send + Sync + 'static) -> Self {
        self.except = Some(Arc::new(keep));
        self
    }

    /// A mixture gives every tensor its base type.
    #[must_use]
    pub fn pure(mut self, pure: bool) -> Self {
        self.pure = pure;
        self
    }

    /// How much columns count, for the types that use it.
    #[must_use]
    pub fn importance(mut self, importance: ImportanceMatrix) -> Self {
        self.importance = Some(Arc::new(importance));
        self
    }
}

impl core::fmt::Debug for QuantizeOptions {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("QuantizeOptions").finish_non_exhaustive()
    }
}

/// What a name stands for where numbers are to be quantized.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum QuantizeTo {
    /// Nothing: `keep`.
    Keep,
    /// Blocks of a type.
    Type(&'static BlockSpec),
    /// What a mixture says: `Q4_K_M`. Some types are the names of mixtures too, which are what is meant unless tensors are
    /// named.
    Mixture(&'static Mixture),
}

impl QuantizeTo {
    /// What a name stands for, where it is to be done to all tensors, or to some.
    ///
    /// ```
    /// use tenfold::ops::QuantizeTo;
    /// assert!(matches!(QuantizeTo::from_name("Q4_K_M", true), Some(QuantizeTo::Mixture(_))));
    /// assert!(matches!(QuantizeTo::from_name("Q6_K", true), Some(QuantizeTo::Mixture(_))));
    /// assert!(matches!(QuantizeTo::from_name("Q6_K", false), Some(QuantizeTo::Type(_))));
    /// ```
    pub fn from_name(name: &str, all: bool) -> Option<Self> {
        if name.eq_ignore_ascii_case("keep") {
            return (!all).then_some(Self::Keep);
        }
        if let Some(mixture) = Mixture::from_name(name).filter(|_| all) {
            return Some(Self::Mixture(mixture));
        }
        BlockSpec::from_name(name).map(Self::Type)
    }

    /// The names that stand for something, without blocks that numbers cannot be quantized to.
    pub fn names(all: bool) -> impl Iterator<Item = &'static str> {
        let types = quantized_types().map(|spec| spec.name);
        let others = Mixture::all().iter().map(|mixture| mixture.name);
        let others = others.filter(move |name| all && BlockSpec::from_name(name).is_none());
        types.chain(others).chain((!all).then_some("keep"))
    }
}

/// The types that numbers can be quantized to.
pub fn quantized_types() -> impl Iterator<Item = &'static BlockSpec> {
    quant::types()
}

/// The archive with tensors as blocks, and what was chosen for each of them.
///
/// Blocks are those of ggml, to the last bit. Nothing is computed before it is read; NaN and infinities, which blocks have
/// no place for, are an error then. A tensor whose rows are not whole blocks of its type gets the type that llama.cpp falls
/// back to, and what cannot be quantized by a rule that names it is an error.
///
/// ```
/// use tenfold::format::Registry;
/// use tenfold::model::BlockSpec;
/// use tenfold::{Archive, io::MemoryOutput, ops};
/// let mut b = Archive::builder();
/// b.tensor("w", [2, 32], vec![127f32; 64])?;
/// b.tensor("bias", [3], [1f32, 2.0, 3.0])?;
/// let options = ops::QuantizeOptions::new().every_matrix(BlockSpec::from_name("Q8_0"));
/// let quantized = ops::quantize(&b.finish(), &options)?.archive;
/// assert_eq!(quantized.tensor("w")?.info().dtype.to_string(), "gguf:Q8_0");
///
/// let mut files = MemoryOutput::new();
/// let registry = Registry::standard();
/// ops::Conversion::prepare(&quantized, registry.get("gguf")?, &Default::default())?.write_to("w.gguf", &mut files)?;
/// let file = Archive::from_bytes(files.into_files().remove("w.gguf").unwrap())?;
/// assert_eq!(file.tensor("w")?.to::<f32>()?[0], 127.0);
/// # Ok::<(), tenfold::Error>(())
/// ```
pub fn quantize(archive: &Archive, options: &QuantizeOptions) -> Result<Quantized> {
    plan::quantize(archive, options)
}
