//! Models in memory that can be changed a little.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};
use tenfold::io::{Siblings, Source};
use tenfold::{Archive, Bytes, Error, ErrorKind, OpenOptions, Result, ops};

/// A tensor of a safetensors file.
#[derive(Clone, Debug)]
pub struct Stored {
    pub dtype: String,
    pub shape: Vec<u64>,
    pub bytes: Vec<u8>,
}

/// A safetensors file in memory, with the files beside it.
#[derive(Clone, Debug)]
pub struct Model {
    pub tensors: BTreeMap<String, Stored>,
    pub metadata: Option<Json>,
    pub beside: BTreeMap<String, Vec<u8>>,
}

/// A golden model.
pub struct Case {
    pub name: String,
    pub directory: PathBuf,
    pub expected: Json,
}

/// All of them, those of the schemes that are read.
pub fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/quantized");
    let mut cases = Vec::new();
    let mut schemes: Vec<_> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    schemes.sort();
    for scheme in schemes {
        let mut files: Vec<_> = fs::read_dir(&scheme)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        for file in files
            .iter()
            .filter(|file| file.extension().is_some_and(|e| e == "json"))
        {
            let expected: Json = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
            if expected["expect"] == "dequantized" {
                let stem = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
                let name = format!("{}/{}", stem(&scheme), stem(file));
                let directory = scheme.join(expected["file"].as_str().unwrap());
                cases.push(Case {
                    name,
                    directory,
                    expected,
                });
            }
        }
    }
    assert!(cases.len() > 50, "{} cases", cases.len());
    cases
}

pub fn case(name: &str) -> Case {
    cases().into_iter().find(|case| case.name == name).unwrap()
}

impl Stored {
    pub fn new(dtype: &str, shape: &[u64], bytes: Vec<u8>) -> Self {
        Self {
            dtype: dtype.into(),
            shape: shape.into(),
            bytes,
        }
    }

    pub fn floats(shape: &[u64], numbers: &[f32]) -> Self {
        let bytes = numbers.iter().flat_map(|number| number.to_le_bytes());
        Self::new("F32", shape, bytes.collect())
    }

    pub fn words(shape: &[u64], words: &[u32]) -> Self {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        Self::new("I32", shape, bytes.collect())
    }
}

impl Model {
    /// Tensors with a configuration beside them.
    pub fn new(tensors: impl IntoIterator<Item = (&'static str, Stored)>, config: Json) -> Self {
        let tensors = tensors.into_iter();
        let model = Self {
            tensors: tensors
                .map(|(name, stored)| (name.to_owned(), stored))
                .collect(),
            metadata: None,
            beside: BTreeMap::new(),
        };
        model.config(config)
    }

    /// The numbers of a tensor once it is dequantized.
    pub fn numbers(&self, name: &str) -> Result<Vec<f32>> {
        let numbers = ops::dequantize(&self.open()?)?;
        Ok(numbers.tensor(name)?.to::<f32>()?.to_vec())
    }

    pub fn of(name: &str) -> Self {
        Self::load(&case(name).directory)
    }

    pub fn load(directory: &Path) -> Self {
        let mut beside = BTreeMap::new();
        let mut file = Vec::new();
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let bytes = fs::read(&path).unwrap();
            if name == "model.safetensors" {
                file = bytes;
            } else {
                beside.insert(name, bytes);
            }
        }
        let len = u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
        let header: Map<String, Json> = serde_json::from_slice(&file[8..8 + len]).unwrap();
        let data = &file[8 + len..];
        let mut model = Self {
            tensors: BTreeMap::new(),
            metadata: None,
            beside,
        };
        for (name, entry) in header {
            if name == "__metadata__" {
                model.metadata = Some(entry);
                continue;
            }
            let at = |n: usize| entry["data_offsets"][n].as_u64().unwrap() as usize;
            let stored = Stored {
                dtype: entry["dtype"].as_str().unwrap().to_owned(),
                shape: entry["shape"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|dim| dim.as_u64().unwrap())
                    .collect(),
                bytes: data[at(0)..at(1)].to_vec(),
            };
            model.tensors.insert(name, stored);
        }
        model
    }

    pub fn bytes(&self) -> Bytes {
        let mut header = Map::new();
        if let Some(metadata) = &self.metadata {
            header.insert("__metadata__".into(), metadata.clone());
        }
        let mut data = Vec::new();
        for (
            name,
            Stored {
                dtype,
                shape,
                bytes,
            },
        ) in &self.tensors
        {
            let at = data.len();
            data.extend_from_slice(bytes);
            let entry = json!({"dtype": dtype, "shape": shape, "data_offsets": [at, data.len()]});
            header.insert(name.clone(), entry);
        }
        let header = serde_json::to_vec(&header).unwrap();
        let mut file = (header.len() as u64).to_le_bytes().to_vec();
        file.extend(header);
        file.extend(data);
        file.into()
    }

    pub fn open(&self) -> Result<Archive> {
        self.open_as(Arc::new(self.bytes()))
    }

    pub fn open_as(&self, source: Arc<dyn Source>) -> Result<Archive> {
        let files = self
            .beside
            .iter()
            .map(|(name, bytes)| (name.clone(), bytes.clone().into()));
        let files = Files(Arc::new(files.collect()));
        OpenOptions::new().read_beside(source, Some("model.safetensors"), &files)
    }

    /// The same with another configuration.
    pub fn config(mut self, config: Json) -> Self {
        self.beside.clear();
        self.beside
            .insert("config.json".into(), config.to_string().into_bytes());
        self
    }

    /// What its configuration says.
    pub fn said(&self) -> Json {
        serde_json::from_slice(&self.beside["config.json"]).unwrap()
    }

    pub fn without(mut self, ending: &str) -> Self {
        let before = self.tensors.len();
        self.tensors.retain(|name, _| !name.ends_with(ending));
        assert!(self.tensors.len() < before, "no tensor ends in {ending}");
        self
    }

    /// A tensor by the ending of its name.
    pub fn tensor(&mut self, ending: &str) -> &mut Stored {
        let mut found = self
            .tensors
            .iter_mut()
            .filter(|(name, _)| name.ends_with(ending));
        found.next().unwrap().1
    }
}

/// Files that lie together in memory.
#[derive(Clone)]
pub struct Files(Arc<BTreeMap<String, Bytes>>);

impl Siblings for Files {
    fn names(&self) -> Result<Option<Vec<String>>> {
        Ok(Some(self.0.keys().cloned().collect()))
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Source>> {
        match self.0.get(name) {
            Some(bytes) => Ok(Arc::new(bytes.clone())),
            None => Err(Error::new(
                ErrorKind::NotFound,
                "io",
                format!("there is no {name}"),
            )),
        }
    }

    fn shared(&self) -> Option<Arc<dyn Siblings>> {
        Some(Arc::new(self.clone()))
    }
}
