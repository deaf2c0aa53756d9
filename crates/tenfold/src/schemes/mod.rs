//! Quantized tensors that a file has as several: codes, scales and what else belongs to them, each a tensor of its own.
//!
//! Packages that quantize models write the pieces of a weight side by side (`X.qweight`, `X.scales`, `X.qzeros`) and say in a
//! configuration beside the file what they mean. [`recognize`] is a step from a description to a description: it turns
//! every such set into one tensor with a decoder, and everything else works on that as on any other quantized tensor.
//!
//! A scheme is a [`Method`]: the endings of names by which it is recognized, and a function that looks at types and shapes
//! and says how the numbers are made, in terms of [`decoder::Quant`]. A new scheme is a file here and a line in [`METHODS`].

// The inner loops work on buffers that were sized here, and on ranges that were compared with the parts.
#![allow(clippy::indexing_slicing)]

mod awq;
mod bitnet;
mod bits;
mod bitsandbytes;
mod compressed;
mod config;
mod decoder;
mod fp8;
mod gpt_oss;
mod gptq;
mod hqq;
mod mlx;
mod modelopt;
mod plane;
mod quanto;
mod refused;
mod set;
mod torchao;

pub(crate) use config::{ConfigFile, FILES, LONGEST};

use config::Config;
use decoder::{Decoder, Quant};
use set::{Model, Set};

use crate::error::{Error, Result};
use crate::model::{DType, Lanes, Layout, Manifest, Quoted, Scalar, Scheme, TensorInfo};
use crate::prelude::*;
use crate::transform::Data;

/// A scheme that is read.
pub(crate) struct Method {
    /// In listings and JSON.
    pub(crate) id: &'static str,
    /// What people call it.
    pub(crate) title: &'static str,
    /// The names that configurations have for it.
    methods: &'static [&'static str],
    /// How the names of tensors end that show it. One that means something else too is looked at by its types.
    anchors: &'static [&'static str],
    /// How names end that nothing else has, and that say nothing without one of the anchors.
    companions: &'static [&'static str],
    /// How the names end of what they say nothing without, and of the scales that a weight of codes has.
    main: &'static str,
    scale: &'static str,
    /// How the names of small tensors end that say how others are to be read.
    reads: &'static [&'static str],
    /// What the tensors are taken for that begin like the one that ended so; `None` where they are something else.
    build: fn(&mut Set<'_, '_>) -> Result<Option<Built>>,
}

/// Every scheme that is read.
const METHODS: &[&Method] = &[
    &fp8::METHOD,
    &compressed::METHOD,
    &modelopt::METHOD,
    &gpt_oss::METHOD,
    &bitsandbytes::METHOD,
    &gptq::METHOD,
    &awq::METHOD,
    &hqq::METHOD,
    &mlx::METHOD,
    &torchao::METHOD,
    &quanto::METHOD,
    &bitnet::METHOD,
];

/// Endings of what is about activations and caches, or marks a file as quantized, and means nothing once weights are numbers.
const ACTIVATIONS: &[&str] = &[
    ".activation_scale",
    ".act_scale",
    ".qscale_act",
    ".input_scale",
    ".input_scale_ub",
    ".scale_input",
    ".input_global_scale",
    ".input_zero_point",
    ".output_scale",
    ".output_zero_point",
    ".q_scale",
    ".k_scale",
    ".k_zero_point",
    ".v_scale",
    ".v_zero_point",
    ".kv_scale",
    "scaled_fp8",
];

/// Endings of what scales codes whose name, or whose module, they begin with.
const SCALES: &[&str] = &[
    "_scale",
    "_scale_inv",
    "_scales",
    ".scale",
    ".scale_inv",
    ".scales",
    ".weight_scale",
    ".weight_scale_inv",
    ".weight_scales",
];

/// What a set of tensors was taken for.
struct Built {
    name: String,
    shape: Vec<u64>,
    quant: Quant,
    /// What must be known beside the name of the scheme, for people.
    says: String,
}

/// A description in which quantized tensors are one each.
#[derive(Debug)]
pub(crate) struct Recognized {
    pub(crate) manifest: Manifest,
    /// The configuration that was followed.
    pub(crate) config: Option<&'static str>,
    pub(crate) groups: Vec<Group>,
    /// Tensors that mean nothing without quantization and belong to no single one.
    pub(crate) left_out: Vec<String>,
    /// Why some are not turned into numbers.
    pub(crate) problems: Vec<Error>,
}

/// Tensors that are one quantized tensor.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) scheme: Scheme,
    /// The tensors of the file that it consists of, the codes first.
    pub(crate) tensors: Vec<String>,
}

/// Whether there is anything that could be a part of a quantized tensor. Cheap, and reads nothing.
pub(crate) fn is_suspect(manifest: &Manifest) -> bool {
    let named = |tensor: &TensorInfo| {
        let endings = METHODS.iter();
        let mut endings = endings.flat_map(|method| method.companions.iter().chain(method.anchors));
        endings.any(|ending| tensor.name.ends_with(ending))
    };
    let mut tensors = manifest.tensors.iter();
    tensors.any(|tensor| (tensor.shape.len() > 1 && holds_codes(tensor)) || named(tensor))
}

/// Whether its type is one that codes have and weights do not.
fn holds_codes(tensor: &TensorInfo) -> bool {
    use Scalar::{F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, I8, I16, I32, U8, U16, U32};
    let DType::Number(scalar, Lanes::Real) = tensor.dtype else {
        return false;
    };
    [
        F8E4M3, F8E4M3Fnuz, F8E5M2, F8E5M2Fnuz, I8, I16, I32, U8, U16, U32,
    ]
    .contains(&scalar)
}

/// Turns sets of tensors into quantized tensors, by what the files beside them say and by their names, types and shapes.
pub(crate) fn recognize(
    manifest: &Manifest,
    data: Data<'_>,
    files: &[ConfigFile],
) -> Result<Recognized> {
    let mut recognized = Recognized {
        manifest: Manifest::default(),
        config: None,
        groups: Vec::new(),
        left_out: Vec::new(),
        problems: Vec::new(),
    };
    let config = if is_suspect(manifest) {
        Config::find(files)
    } else {
        Ok(None)
    };
    let methods = config.and_then(|config| {
        let methods = methods_for(config.as_ref())?;
        Ok((config, methods))
    });
    match methods {
        Ok((config, methods)) if is_suspect(manifest) => {
            recognized.config = config.as_ref().map(|config| config.file);
            let mut model = Model::new(manifest, config.as_ref(), data);
            let reads: Vec<&str> = methods
                .iter()
                .flat_map(|method| method.reads)
                .copied()
                .collect();
            model.read_ahead(&reads)?;
            Search::new(&model, &methods).run(&mut recognized)?;
        }
        Ok(_) => recognized.manifest = manifest.clone(),
        Err(problem) => {
            recognized.problems.push(problem);
            recognized.manifest = manifest.clone();
        }
    }
    Ok(recognized)
}

/// The schemes that may be meant.
fn methods_for(config: Option<&Config>) -> Result<Vec<&'static Method>> {
    let Some(config) = config else {
        return Ok(METHODS.to_vec());
    };
    let of_it = |method: &&&Method| method.methods.contains(&config.method.as_str());
    let methods: Vec<_> = METHODS.iter().filter(of_it).copied().collect();
    if methods.is_empty() {
        return Err(refused::by_config(config).unwrap_or_else(|| config::unknown(config)));
    }
    Ok(methods)
}

/// Looks for sets of tensors.
struct Search<'s, 'm> {
    model: &'s Model<'m>,
    methods: &'s [&'static Method],
    /// Which tensors belong to a set, and whether they are the first of it.
    taken: Vec<Option<Taken>>,
    names: LookupMap<String, ()>,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Taken {
    First(usize),
    Other,
}

/// A set of tensors, what it was taken for and by which scheme.
struct Found {
    built: Built,
    method: &'static Method,
    parts: Vec<crate::model::Part>,
    places: Vec<usize>,
}

impl<'s, 'm> Search<'s, 'm> {
    fn new(model: &'s Model<'m>, methods: &'s [&'static Method]) -> Self {
        Self {
            model,
            methods,
            taken: vec![None; model.manifest.tensors.len()],
            names: LookupMap::default(),
        }
    }

    fn run(mut self, recognized: &mut Recognized) -> Result<()> {
        let mut tensors = Vec::new();
        for (place, tensor) in self.model.manifest.tensors.iter().enumerate() {
            if self.taken.get(place).copied().flatten().is_some() {
                continue;
            }
            let found = self.look(tensor).and_then(|found| match found {
                Some(found) => self.take(found, tensors.len()).map(Some),
                None => Ok(None),
            });
            match found {
                Ok(Some((tensor, group))) => {
                    tensors.push(tensor);
                    recognized.groups.push(group);
                }
                Ok(None) => {}
                // Who stops the work, and files that cannot be read, are no matter of recognition.
                Err(error) if is_fatal(&error) => return Err(error),
                Err(error) => recognized.problems.push(error),
            }
        }
        recognized.problems.extend(self.incomplete());
        self.assemble(recognized, tensors);
        Ok(())
    }

    /// What a tensor is taken for with those that belong to it.
    fn look(&self, tensor: &'m TensorInfo) -> Result<Option<Found>> {
        let mut found: Option<Found> = None;
        let mut refusal = None;
        for method in self.methods {
            for ending in method.anchors {
                let Some(base) = tensor.name.strip_suffix(ending) else {
                    continue;
                };
                let mut set = Set {
                    model: self.model,
                    base,
                    ending,
                    parts: Vec::new(),
                    places: Vec::new(),
                };
                let built = (method.build)(&mut set).and_then(|built| {
                    if let Some(built) = &built {
                        set.check(&built.quant)?;
                    }
                    Ok(built)
                });
                match built {
                    Ok(Some(built)) => {
                        if let Some(other) =
                            found.as_ref().filter(|other| other.method.id != method.id)
                        {
                            let message = format!(
                                "it could be {} and {}; only a configuration can say which",
                                other.method.title, method.title
                            );
                            return Err(set.ambiguous(message));
                        }
                        found = Some(Found {
                            built,
                            method,
                            parts: set.parts,
                            places: set.places,
                        });
                    }
                    Ok(None) => {}
                    Err(error) => {
                        refusal.get_or_insert(error);
                    }
                }
            }
        }
        match (found, refusal) {
            (None, Some(error)) => Err(error),
            (found, _) => Ok(found),
        }
    }

    /// Makes one tensor of a set.
    fn take(&mut self, found: Found, group: usize) -> Result<(TensorInfo, Group)> {
        let Found {
            built,
            method,
            parts,
            places,
        } = found;
        let tensors = &self.model.manifest.tensors;
        let is_other = self
            .model
            .get(&built.name)
            .is_some_and(|(place, _)| !places.contains(&place));
        if is_other || self.names.insert(built.name.clone(), ()).is_some() {
            let message = "it is there as it is and in quantized parts, too";
            return Err(Error::unsupported("quantized.ambiguous", message).in_tensor(&built.name));
        }
        let scheme = Scheme::new(method.id, built.says);
        let names = places.iter().filter_map(|place| tensors.get(*place));
        let names = names.map(|tensor| tensor.name.clone()).collect();
        for (number, place) in places.iter().enumerate() {
            let taken = if number == 0 {
                Taken::First(group)
            } else {
                Taken::Other
            };
            if let Some(known) = self.taken.get_mut(*place) {
                if known.is_some() {
                    let message = format!(
                        "it belongs to {} and to another quantized tensor",
                        Quoted(&built.name)
                    );
                    let name = tensors.get(*place).map_or("", |tensor| &tensor.name);
                    return Err(Error::malformed("quantized.ambiguous", message).in_tensor(name));
                }
                *known = Some(taken);
            }
        }
        let mut tensor = TensorInfo::new(
            built.name.clone(),
            DType::PARTS,
            built.shape,
            Layout::from(scheme.clone()),
        );
        tensor.parts = parts.into();
        tensor.decoder = Some(Arc::new(Decoder {
            quant: built.quant,
            scheme: scheme.clone(),
        }));
        let name = built.name;
        let tensors = names;
        Ok((
            tensor,
            Group {
                name,
                scheme,
                tensors,
            },
        ))
    }

    fn is_taken(&self, place: usize) -> bool {
        self.taken.get(place).copied().flatten().is_some()
    }

    /// Tensors that are left over and mean nothing by themselves.
    fn incomplete(&self) -> Option<Error> {
        let free = || {
            let tensors = self.model.manifest.tensors.iter().enumerate();
            tensors
                .filter(|(place, _)| !self.is_taken(*place))
                .map(|(_, tensor)| tensor)
        };
        if let Some(error) = refused::by_names(self.model, free()) {
            return Some(error);
        }
        for tensor in free() {
            for method in self.methods {
                if let Some(name) = self.absent(method, &tensor.name) {
                    return Some(missing(tensor, &name));
                }
            }
        }
        let mut codes = free().filter(|tensor| tensor.shape.len() > 1 && holds_codes(tensor));
        codes.find_map(|tensor| self.raw(tensor))
    }

    /// That a tensor has codes which nothing turned into numbers. What integers are that have no scales beside them, only a
    /// name can say.
    fn raw(&self, tensor: &TensorInfo) -> Option<Error> {
        let name = tensor.name.as_str();
        let module = name.strip_suffix(".weight");
        let config = self.model.config;
        if config.is_some_and(|config| config.leaves_out(module.unwrap_or(name))) {
            return None;
        }
        let is_free = |name: &String| match self.model.get(name) {
            Some((place, _)) => !self.is_taken(place),
            None => false,
        };
        let beside = |start: &str| {
            let mut names = SCALES.iter().map(|ending| format!("{start}{ending}"));
            names.find(is_free)
        };
        let in_module = || beside(name.rsplit_once('.')?.0).filter(|_| config.is_some());
        if let Some(scale) = beside(name).or_else(in_module) {
            let message = format!(
                "it has codes of type {} and {} beside it, which tenfold cannot put together",
                tensor.dtype,
                Quoted(&scale)
            );
            return Some(Error::unsupported("quantized.scheme", message).in_tensor(name));
        }
        let (Some(_), [method, ..]) = (config, self.methods) else {
            return None;
        };
        let is_float = matches!(tensor.dtype, DType::Number(scalar, _) if scalar.is_float());
        match module {
            Some(module) => Some(missing(tensor, &format!("{module}{}", method.scale))),
            None if is_float => {
                let message = format!(
                    "{} has the type {} of codes, and nothing beside it says what they stand for",
                    Quoted(name),
                    tensor.dtype
                );
                Some(set::wrong(tensor, "quantized.incomplete", message))
            }
            None => None,
        }
    }

    /// What is not there of a set that a tensor can only be a part of.
    fn absent(&self, method: &Method, name: &str) -> Option<String> {
        let is_there = |name: &str| self.model.get(name).is_some();
        let mut endings = method.companions.iter();
        if let Some(base) = endings.find_map(|ending| name.strip_suffix(ending)) {
            let names = [method.main, method.scale].map(|ending| format!("{base}{ending}"));
            let absent = names.iter().find(|name| !is_there(name));
            return absent.or(names.first()).cloned();
        }
        // Scales of what is not there, where a configuration says that they are some.
        let base = name
            .strip_suffix(method.scale)
            .filter(|_| self.model.config.is_some())?;
        let main = format!("{base}{}", method.main);
        (!is_there(&main) && !is_there(&format!("{base}.weight"))).then_some(main)
    }

    /// The tensors that are not part of a set, and those that sets became, where the codes were.
    fn assemble(self, recognized: &mut Recognized, tensors: Vec<TensorInfo>) {
        let manifest = self.model.manifest;
        let mut made: Vec<Option<TensorInfo>> = tensors.into_iter().map(Some).collect();
        let is_quantized = !made.is_empty();
        let mut all = Vec::new();
        for (tensor, taken) in manifest.tensors.iter().zip(&self.taken) {
            match taken {
                Some(Taken::First(group)) => {
                    all.extend(made.get_mut(*group).and_then(Option::take))
                }
                Some(Taken::Other) => {}
                None if is_quantized && is_of_activations(tensor) => {
                    recognized.left_out.push(tensor.name.clone());
                }
                None => all.push(tensor.clone()),
            }
        }
        recognized.manifest = Manifest {
            tensors: all.into_iter().collect(),
            version: manifest.version.clone(),
            metadata: torchao::without(&manifest.metadata, &recognized.groups),
            regions: manifest.regions.clone(),
            sealed: manifest.sealed.clone(),
            kept: manifest.kept.clone(),
            strict_content: manifest.strict_content,
            knows_types: manifest.knows_types,
        };
    }
}

/// Whether it is a scale of activations or of a cache.
fn is_of_activations(tensor: &TensorInfo) -> bool {
    ACTIVATIONS
        .iter()
        .any(|ending| tensor.name.ends_with(ending))
        && tensor.shape.len() < 3
}

fn is_fatal(error: &Error) -> bool {
    use crate::error::ErrorKind::{Canceled, Io};
    matches!(error.kind(), Canceled | Io)
}

/// A part of a set whose others are not there.
fn missing(tensor: &TensorInfo, name: &str) -> Error {
    let message = format!(
        "{} is there, but {} is missing",
        Quoted(&tensor.name),
        Quoted(name)
    );
    set::wrong(tensor, "quantized.incomplete", message)
}
