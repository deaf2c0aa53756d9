//! The classes and functions that a checkpoint may name, and what each of them is.

use super::dtypes;
use crate::error::{Error, Hint, Result};
use crate::model::DType;
use crate::prelude::*;
use crate::wire::pickle::{Import, Policy, Value};

/// What a class or function of the list makes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::formats) enum Global {
    /// Elements of a type; without one, bytes.
    Storage(Option<DType>),
    /// A type, which is no call.
    Type(DType),
    Rebuild(Rebuild),
    /// A dict of some kind.
    Dict,
    /// The same from what stands behind a function that makes missing values.
    DefaultDict,
    List,
    Set,
    Bytes,
    Complex,
    /// `int`, `float`, `bool`, `str`: what they are given.
    Scalar,
    /// Written as Python prints it.
    Shown,
    /// `_codecs.encode`.
    Encode,
    Device,
    NumpyScalar,
    NumpyArray,
    NumpyType,
    /// The attributes that it is built with.
    Namespace,
    Path {
        separator: char,
    },
    /// A module of TorchScript: its attributes.
    Script,
    /// Gives its first argument back.
    First,
    /// Named and never called: `torch.Tensor`.
    Class,
}

/// A function that makes a tensor.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::formats) enum Rebuild {
    /// Storage, offset, size, stride.
    Tensor,
    /// Further whether it requires a gradient, and hooks.
    TensorV2,
    /// Further the type.
    TensorV3,
    /// A tensor, and whether it requires a gradient.
    Parameter,
    /// A function of these, a class, the arguments and a state.
    FromType,
}

/// Rows of modules and the names in them.
const GLOBALS: &[(&str, &[(&str, Global)])] = &[
    (
        "torch._utils",
        &[
            ("_rebuild_tensor", Global::Rebuild(Rebuild::Tensor)),
            ("_rebuild_tensor_v2", Global::Rebuild(Rebuild::TensorV2)),
            ("_rebuild_tensor_v3", Global::Rebuild(Rebuild::TensorV3)),
            ("_rebuild_parameter", Global::Rebuild(Rebuild::Parameter)),
            (
                "_rebuild_parameter_with_state",
                Global::Rebuild(Rebuild::Parameter),
            ),
        ],
    ),
    (
        "torch._tensor",
        &[("_rebuild_from_type_v2", Global::Rebuild(Rebuild::FromType))],
    ),
    (
        "collections",
        &[
            ("OrderedDict", Global::Dict),
            ("Counter", Global::Dict),
            ("defaultdict", Global::DefaultDict),
        ],
    ),
    ("builtins", BUILTINS),
    ("__builtin__", BUILTINS),
    ("_codecs", &[("encode", Global::Encode)]),
    (
        "torch",
        &[
            ("Size", Global::List),
            ("device", Global::Device),
            ("Tensor", Global::Class),
        ],
    ),
    ("torch.nn.parameter", &[("Parameter", Global::Class)]),
    (
        "torch.storage",
        &[("UntypedStorage", Global::Storage(None))],
    ),
    ("torch.serialization", &[("_get_layout", Global::First)]),
    ("numpy.core.multiarray", NUMPY),
    ("numpy._core.multiarray", NUMPY),
    (
        "numpy",
        &[("dtype", Global::NumpyType), ("ndarray", Global::Class)],
    ),
    ("argparse", &[("Namespace", Global::Namespace)]),
    ("types", &[("SimpleNamespace", Global::Namespace)]),
    (
        "pathlib",
        &[
            ("PosixPath", Global::Path { separator: '/' }),
            ("PurePosixPath", Global::Path { separator: '/' }),
            ("WindowsPath", Global::Path { separator: '\\' }),
        ],
    ),
];

const BUILTINS: &[(&str, Global)] = &[
    ("dict", Global::Dict),
    ("list", Global::List),
    ("tuple", Global::List),
    ("set", Global::Set),
    ("frozenset", Global::Set),
    ("bytearray", Global::Bytes),
    ("bytes", Global::Bytes),
    ("complex", Global::Complex),
    ("int", Global::Scalar),
    ("float", Global::Scalar),
    ("bool", Global::Scalar),
    ("str", Global::Scalar),
    ("slice", Global::Shown),
    ("range", Global::Shown),
];

const NUMPY: &[(&str, Global)] = &[
    ("scalar", Global::NumpyScalar),
    ("_reconstruct", Global::NumpyArray),
];

/// Only in TorchScript archives.
const SCRIPT: &[(&str, Global)] = &[
    ("build_intlist", Global::First),
    ("build_floatlist", Global::First),
    ("build_boollist", Global::First),
    ("build_tensorlist", Global::First),
    ("restore_type_tag", Global::First),
];

/// What a checkpoint may load.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::formats) struct Allowed {
    /// It is a TorchScript archive.
    pub(in crate::formats) script: bool,
    /// What is not on the list becomes a record.
    pub(in crate::formats) opaque: bool,
}

impl Allowed {
    /// What a class or function is, if it is on the list.
    pub(in crate::formats) fn find(self, module: &str, name: &str) -> Option<Global> {
        if self.script {
            if module == "__torch__" || module.starts_with("__torch__.") {
                return Some(Global::Script);
            }
            if module == "torch.jit._pickle" {
                return find_in(SCRIPT, name);
            }
        }
        let rows = GLOBALS.iter().find(|(known, _)| *known == module);
        let listed = rows.and_then(|(_, rows)| find_in(rows, name));
        listed.or_else(|| match module {
            "torch" => dtypes::of_storage(name)
                .map(|dtype| Global::Storage(Some(dtype)))
                .or_else(|| dtypes::of_name(name).map(Global::Type)),
            // Of files that were saved from a graphics card by old releases.
            "torch.cuda" => dtypes::of_storage(name).map(|dtype| Global::Storage(Some(dtype))),
            _ => None,
        })
    }

    /// What a value is, if it is a class or function of the list.
    pub(in crate::formats) fn meaning(self, value: &Value<'_>) -> Option<Global> {
        match value {
            Value::Global { module, name } => self.find(module, name),
            _ => None,
        }
    }
}

impl Policy for Allowed {
    fn import(&mut self, import: Import<'_>) -> Result<()> {
        let Import { module, name, .. } = import;
        if self.opaque || self.find(module, name).is_some() {
            return Ok(());
        }
        let what = match (module, name) {
            ("torch", name) if name.ends_with("Storage") => "an unknown class of storages",
            ("torch._utils", name) if name.starts_with("_rebuild_") => {
                "a kind of tensor that only torch reads; save it as a dense tensor"
            }
            (module, _) if module == "torch.nn" || module.starts_with("torch.nn.") => {
                "a whole module; its class is code, which is never run here: save its state_dict() instead"
            }
            _ => {
                "not among the classes and functions that are read as data, and could run anything"
            }
        };
        let message = format!("{module}.{name} is {what}");
        Err(Error::unsupported("pickle-global", message).hinting(Hint::Opaque))
    }

    fn may_build(&self, module: &str, name: &str) -> bool {
        let builds = [
            Global::Dict,
            Global::DefaultDict,
            Global::Namespace,
            Global::NumpyArray,
            Global::NumpyType,
            Global::Script,
        ];
        let known = self.find(module, name);
        known.is_some_and(|known| builds.contains(&known))
    }

    fn is_lenient(&self) -> bool {
        self.opaque
    }
}

fn find_in(rows: &[(&str, Global)], name: &str) -> Option<Global> {
    let mut rows = rows.iter();
    rows.find(|(known, _)| *known == name).map(|row| row.1)
}
