//! Between the views that a pickle describes, the storages that they are of, and the model.

use bytes::Bytes;

use super::MAX_RANK;
use super::globals::{Allowed, Global, Rebuild};
use super::leaves::{self, NumpyType};
use crate::error::{Error, Result};
use crate::io::Limits;
use crate::model::{
    Checksum, DType, DigestKind, Endian, Layout, Over, Part, Payload, Role, Strides, TensorInfo,
    element_count,
};
use crate::prelude::*;
use crate::wire::pickle::{Kind, Node, Value};

/// A storage of a file.
#[derive(Clone, Debug)]
pub(in crate::formats) struct Storage {
    pub(in crate::formats) key: String,
    /// All of its bytes.
    pub(in crate::formats) payload: Payload,
    /// What these should hash to, where the file says so.
    pub(in crate::formats) crc32: Option<u32>,
}

/// The storages of a file.
#[derive(Debug, Default)]
pub(in crate::formats) struct Storages {
    pub(in crate::formats) list: Vec<Storage>,
    by_key: LookupMap<String, u32>,
    pub(in crate::formats) endian: Endian,
    /// The file ends before its last storage.
    pub(in crate::formats) is_cut_off: bool,
}

impl Storages {
    pub(in crate::formats) fn add(&mut self, storage: Storage) {
        let place = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.by_key.insert(storage.key.clone(), place);
        push_tight(&mut self.list, storage);
    }

    pub(in crate::formats) fn place(&self, key: &str) -> Option<u32> {
        self.by_key.get(key).copied()
    }

    fn find(&self, key: &str) -> Result<(u32, &Storage)> {
        let place = self.place(key);
        let found = place.and_then(|place| Some((place, self.list.get(place as usize)?)));
        found.ok_or_else(|| {
            if self.is_cut_off {
                let message = format!("the file is cut off before storage {key:?}");
                return Error::malformed("truncated", message);
            }
            let message = format!("there is no storage {key:?} in the file");
            Error::malformed("storage-missing", message)
        })
    }
}

/// What stands for a storage in a pickle.
#[derive(Debug)]
pub(in crate::formats) struct StorageId {
    pub(in crate::formats) key: String,
    /// `None`: bytes.
    pub(in crate::formats) dtype: Option<DType>,
    /// Elements, or bytes where there is no type.
    pub(in crate::formats) count: u64,
}

impl StorageId {
    /// Reads `("storage", class, key, location, count)`, and `None` behind it in the stream.
    pub(in crate::formats) fn parse(allowed: Allowed, node: Node<'_>) -> Result<Self> {
        let wrong = |message: String| Error::malformed("persistent-id", message);
        let id = node.persistent()?;
        let parts = leaves::arguments(&id)?;
        let [kind, class, key, _location, count, rest @ ..] = parts.as_slice() else {
            return Err(wrong(format!(
                "a persistent id is a tuple of a storage, found {}",
                id.what()
            )));
        };
        if !matches!(kind, Value::Text(kind) if kind == "storage") {
            let message = format!("a persistent id of {}, not of a storage", kind.what());
            return Err(wrong(message));
        }
        let dtype = match allowed.meaning(class) {
            Some(Global::Storage(dtype)) => dtype,
            _ => {
                let message = format!("{} is not a known class of storages", class.what());
                return Err(Error::unsupported("storage-class", message));
            }
        };
        let key = match key {
            Value::Text(key) => key.to_string(),
            Value::Integer(_) => key.what(),
            other => return Err(wrong(format!("the key of a storage is {}", other.what()))),
        };
        if !rest.iter().all(|rest| matches!(rest, Value::None)) {
            let message =
                format!("storage {key:?} is a view of another, as only old releases wrote");
            return Err(Error::unsupported("storage-view", message));
        }
        let count = count.as_i64().and_then(|count| u64::try_from(count).ok());
        let count = count.ok_or_else(|| wrong(format!("storage {key:?} has no size")))?;
        Ok(Self { key, dtype, count })
    }

    /// Its bytes; `None` where that cannot be counted.
    pub(in crate::formats) fn len(&self) -> Option<u64> {
        match self.dtype {
            Some(dtype) => dtype.bytes_for(self.count),
            None => Some(self.count),
        }
    }
}

/// A tensor as a pickle describes it.
#[derive(Debug)]
pub(in crate::formats) struct View {
    storage: StorageId,
    dtype: DType,
    offset: u64,
    size: Vec<u64>,
    stride: Vec<u64>,
    pub(in crate::formats) requires_grad: bool,
    pub(in crate::formats) is_parameter: bool,
}

impl View {
    /// What a call of one of the functions for tensors describes.
    pub(in crate::formats) fn parse(
        allowed: Allowed,
        rebuild: Rebuild,
        arguments: &[Value<'_>],
        depth: usize,
    ) -> Result<Self> {
        let wrong = |message: &str| Error::malformed("tensor", message);
        match (rebuild, arguments) {
            (Rebuild::Parameter, [tensor, requires_grad, ..]) => {
                let (rebuild, arguments) = inner(allowed, tensor, depth)?;
                let mut view = Self::parse(allowed, rebuild, &arguments, depth + 1)?;
                view.requires_grad = matches!(requires_grad, Value::Bool(true));
                view.is_parameter = true;
                Ok(view)
            }
            (Rebuild::FromType, [function, class, arguments, _state]) => {
                let is_tensor = |value: &Value<'_>| {
                    matches!(value, Value::Global { module, name }
                        if (&**module, &**name) == ("torch", "Tensor")
                            || (&**module, &**name) == ("torch.nn.parameter", "Parameter"))
                };
                let Some(Global::Rebuild(rebuild)) = allowed.meaning(function) else {
                    let message =
                        format!("{} does not make a tensor of a known kind", function.what());
                    return Err(Error::unsupported("tensor", message));
                };
                if !is_tensor(class) && !allowed.opaque {
                    let message = format!("a tensor of the class {}", class.what());
                    return Err(Error::unsupported("tensor-class", message));
                }
                if depth > 2 {
                    return Err(wrong("a tensor of a tensor of a tensor"));
                }
                let arguments = leaves::arguments(arguments)?;
                let mut view = Self::parse(allowed, rebuild, &arguments, depth + 1)?;
                view.is_parameter |=
                    matches!(class, Value::Global { name, .. } if name == "Parameter");
                Ok(view)
            }
            (Rebuild::Tensor, [storage, offset, size, stride]) => {
                Self::of(allowed, [storage, offset, size, stride], None)
            }
            (
                Rebuild::TensorV2,
                [
                    storage,
                    offset,
                    size,
                    stride,
                    requires_grad,
                    _hooks,
                    rest @ ..,
                ],
            ) => {
                let mut view = Self::of(allowed, [storage, offset, size, stride], None)?;
                view.requires_grad = matches!(requires_grad, Value::Bool(true));
                refuse_bits(rest)?;
                Ok(view)
            }
            (
                Rebuild::TensorV3,
                [
                    storage,
                    offset,
                    size,
                    stride,
                    requires_grad,
                    _hooks,
                    dtype,
                    rest @ ..,
                ],
            ) => {
                let Some(Global::Type(known)) = allowed.meaning(dtype) else {
                    let message = format!("{} is not a known dtype", dtype.what());
                    return Err(Error::unsupported("dtype", message));
                };
                let mut view = Self::of(allowed, [storage, offset, size, stride], Some(known))?;
                view.requires_grad = matches!(requires_grad, Value::Bool(true));
                refuse_bits(rest)?;
                Ok(view)
            }
            _ => Err(wrong(
                "a tensor is made of other arguments than torch gives",
            )),
        }
    }

    /// The tensor that a value is, which is what was saved.
    pub(in crate::formats) fn only(allowed: Allowed, value: &Value<'_>) -> Result<Self> {
        if let Value::Node(node) = value
            && node.kind() == Kind::Call
        {
            let object = node.object()?;
            if let Some(Global::Rebuild(rebuild)) = allowed.meaning(&object.function) {
                let arguments = leaves::arguments(&object.arguments)?;
                return Self::parse(allowed, rebuild, &arguments, 0);
            }
        }
        let message = format!("{} was saved, a tensor is expected", value.what());
        Err(Error::malformed("tensor", message))
    }

    fn of(allowed: Allowed, parts: [&Value<'_>; 4], dtype: Option<DType>) -> Result<Self> {
        let [storage, offset, size, stride] = parts;
        let storage = match storage {
            Value::Node(node) if node.kind() == Kind::Persistent => {
                StorageId::parse(allowed, *node)?
            }
            other => {
                let message = format!("a tensor of {}, expected one of a storage", other.what());
                return Err(Error::malformed("tensor", message));
            }
        };
        let dtype = dtype.or(storage.dtype).ok_or_else(|| {
            let message = format!(
                "storage {:?} is bytes, and the tensor has no type",
                storage.key
            );
            Error::malformed("tensor", message)
        })?;
        Ok(Self {
            storage,
            dtype,
            offset: number(offset, "offset")?,
            size: numbers(allowed, size, "size")?,
            stride: numbers(allowed, stride, "stride")?,
            requires_grad: false,
            is_parameter: false,
        })
    }

    /// All elements of a storage.
    pub(in crate::formats) fn whole(storage: StorageId) -> Self {
        Self {
            dtype: storage.dtype.unwrap_or(DType::U8),
            offset: 0,
            size: vec![storage.count],
            stride: vec![1],
            requires_grad: false,
            is_parameter: false,
            storage,
        }
    }

    /// The tensor, and which storage it is of.
    pub(in crate::formats) fn place(
        mut self,
        name: &str,
        storages: &Storages,
        limits: &Limits,
        file: u64,
    ) -> Result<(TensorInfo, Placed)> {
        let (place, storage) = storages.find(&self.storage.key)?;
        let len = storage.payload.len();
        if self.storage.len() != Some(len) {
            let said = match self.storage.dtype {
                Some(dtype) => format!("{} elements of {dtype}", self.storage.count),
                None => format!("{} bytes", self.storage.count),
            };
            let message = format!(
                "storage {:?} should have {said}, it has {len} bytes",
                self.storage.key
            );
            return Err(Error::malformed("storage-size", message));
        }
        if self.size.len() != self.stride.len() {
            let (size, stride) = (self.size.len(), self.stride.len());
            let message = format!("{size} sizes and {stride} strides");
            return Err(Error::malformed("view", message));
        }
        let placed = Placed {
            storage: place,
            offset: self.offset,
            stride: (!self.is_row_major()).then(|| self.stride.clone()),
            is_whole: false,
        };
        self.check_bounds(len)?;
        if self.dtype == DType::F4_E2M1 {
            self.unpair()?;
        }
        self.locate(name, storages, storage, placed, limits, file)
    }

    /// Whether the last index runs fastest, without a gap.
    fn is_row_major(&self) -> bool {
        let mut expected = 1u64;
        for (size, stride) in self.size.iter().zip(&self.stride).rev() {
            if *size > 1 && *stride != expected {
                return false;
            }
            expected = expected.saturating_mul(*size);
        }
        true
    }

    /// Every element lies in the storage.
    fn check_bounds(&self, len: u64) -> Result<()> {
        let overflow = || {
            let message = format!("sizes {:?} do not fit 64 bits", self.size);
            Error::malformed("shape-overflow", message)
        };
        let elements = element_count(&self.size).ok_or_else(overflow)?;
        let nonzero = self.size.iter().copied().filter(|size| *size != 0);
        let most = nonzero.fold(1u128, |product, size| {
            product.saturating_mul(u128::from(size))
        });
        let width = self.width();
        // Strides are made of them, in bytes, with a sign.
        if most.saturating_mul(u128::from(width)) > i64::MAX as u128 {
            return Err(overflow());
        }
        if elements == 0 {
            return Ok(());
        }
        let steps = self.size.iter().zip(&self.stride);
        let last = steps.fold(u128::from(self.offset), |last, (size, stride)| {
            last.saturating_add(u128::from(size.saturating_sub(1)) * u128::from(*stride))
        });
        let count = len / width;
        if last >= u128::from(count) {
            let message = format!(
                "the last element is number {last} of a storage of {count} (offset {}, sizes {:?}, strides {:?})",
                self.offset, self.size, self.stride
            );
            return Err(Error::malformed("view", message));
        }
        Ok(())
    }

    /// Bytes of what is counted: of two elements, where they share one.
    fn width(&self) -> u64 {
        self.dtype.width().map_or(1, |width| width as u64)
    }

    /// Counts elements instead of pairs of them, which share a byte.
    fn unpair(&mut self) -> Result<()> {
        let refuse = |message: &str| Error::unsupported("view", message);
        let overflow = || refuse("sizes that do not fit 64 bits");
        let is_row_major = self.is_row_major();
        let (Some(last), Some(step)) = (self.size.last_mut(), self.stride.last_mut()) else {
            return Err(refuse("a pair of elements without a dimension"));
        };
        if *last > 1 && *step != 1 && !is_row_major {
            return Err(refuse("pairs of elements that do not lie side by side"));
        }
        *last = last.checked_mul(2).ok_or_else(overflow)?;
        *step = 1;
        let count = self.stride.len() - 1;
        for stride in self.stride.iter_mut().take(count) {
            *stride = stride.checked_mul(2).ok_or_else(overflow)?;
        }
        self.offset = self.offset.checked_mul(2).ok_or_else(overflow)?;
        Ok(())
    }

    fn locate(
        self,
        name: &str,
        storages: &Storages,
        storage: &Storage,
        mut placed: Placed,
        limits: &Limits,
        file: u64,
    ) -> Result<(TensorInfo, Placed)> {
        let overflow = || Error::malformed("view", "a size that does not fit 64 bits");
        let len = self
            .dtype
            .bytes_for(element_count(&self.size).ok_or_else(overflow)?);
        let len = len.ok_or_else(overflow)?;
        let stored = storage.payload.len();
        let at = self.dtype.bytes_for(self.offset).ok_or_else(overflow)?;
        // A run of the storage is a tensor of its own: it is read in place.
        let run = match &storage.payload {
            _ if len == 0 => Some(Payload::Inline(Bytes::new())),
            Payload::Raw { source, range } if self.is_row_major() => {
                let start = range.start.checked_add(at).ok_or_else(overflow)?;
                let end = start.checked_add(len).ok_or_else(overflow)?;
                Some(Payload::Raw {
                    source: *source,
                    range: start..end,
                })
            }
            whole if self.is_row_major() && at == 0 && len == stored => Some(whole.clone()),
            _ => None,
        };
        placed.is_whole = len == stored || run.is_none();
        if run.is_none() && len > stored {
            self.check_expansion(len, limits, file)?;
        }
        let layout = match &run {
            Some(_) => Layout::RowMajor,
            None => Layout::Strided(Box::new(Strides::new(self.offset, self.stride))),
        };
        let mut tensor = TensorInfo::new(name, self.dtype, self.size, layout);
        let payload = run.unwrap_or_else(|| storage.payload.clone());
        let mut part = Part::new(Role::Values, self.dtype, payload);
        part.endian = storages.endian;
        if let Some(crc32) = storage.crc32.filter(|_| placed.is_whole && stored > 0) {
            part.checksum = Some(Box::new(checksum(crc32)));
        }
        tensor.parts = part.into();
        Ok((tensor, placed))
    }

    /// A stride of 0 makes any number of elements of a few bytes.
    fn check_expansion(&self, len: u64, limits: &Limits, file: u64) -> Result<()> {
        let limit = limits.expanded(file);
        if len <= limit {
            return Ok(());
        }
        let message = format!(
            "strides of 0 make {len} bytes of a storage of {}, the limit is {limit}",
            self.storage.len().unwrap_or(0)
        );
        Err(Error::limit("expand", message).raised_by("dense_bytes", len))
    }
}

/// Which storage a tensor is of, and how.
#[derive(Clone, Debug)]
pub(in crate::formats) struct Placed {
    pub(in crate::formats) storage: u32,
    pub(in crate::formats) offset: u64,
    /// Where it is not row-major.
    pub(in crate::formats) stride: Option<Vec<u64>>,
    /// Its part is all of the storage.
    pub(in crate::formats) is_whole: bool,
}

pub(in crate::formats) fn checksum(crc32: u32) -> Checksum {
    Checksum {
        kind: DigestKind::Crc32,
        over: Over::Decoded,
        value: Bytes::copy_from_slice(&crc32.to_be_bytes()),
    }
}

/// The call that a parameter wraps.
fn inner<'t>(
    allowed: Allowed,
    tensor: &Value<'t>,
    depth: usize,
) -> Result<(Rebuild, Vec<Value<'t>>)> {
    if let Value::Node(node) = tensor
        && node.kind() == Kind::Call
        && depth < 2
    {
        let object = node.object()?;
        if let Some(Global::Rebuild(rebuild)) = allowed.meaning(&object.function) {
            return Ok((rebuild, leaves::arguments(&object.arguments)?));
        }
    }
    let message = format!("a parameter of {}, expected one of a tensor", tensor.what());
    Err(Error::malformed("tensor", message))
}

/// Values that are to be conjugated or negated when they are read.
fn refuse_bits(rest: &[Value<'_>]) -> Result<()> {
    for value in rest {
        let Value::Node(node) = value else { continue };
        for entry in node.entries() {
            let (key, value) = entry?;
            if let (Value::Text(key), Value::Bool(true)) = (&key, &value) {
                let message = format!("a tensor whose values are stored without its {key:?} bit");
                return Err(Error::unsupported("tensor", message));
            }
        }
    }
    Ok(())
}

fn number(value: &Value<'_>, what: &str) -> Result<u64> {
    let wrong = || {
        let message = format!("the {what} is {}, expected a number from 0", value.what());
        Error::malformed("view", message)
    };
    let number = value.as_i64().ok_or_else(wrong)?;
    u64::try_from(number).map_err(|_| wrong())
}

fn numbers(allowed: Allowed, value: &Value<'_>, what: &str) -> Result<Vec<u64>> {
    let wrong = || {
        let message = format!("the {what} is {}, expected a tuple", value.what());
        Error::malformed("view", message)
    };
    let Value::Node(node) = value else {
        return Err(wrong());
    };
    match node.kind() {
        Kind::Tuple | Kind::List => {
            if node.len() > MAX_RANK {
                let message = format!("{} dimensions, at most {MAX_RANK} are read", node.len());
                return Err(Error::limit("rank", message));
            }
            node.items().map(|item| number(&item?, what)).collect()
        }
        Kind::Call => {
            let object = node.object()?;
            match (
                allowed.meaning(&object.function),
                leaves::arguments(&object.arguments)?.as_slice(),
            ) {
                (Some(Global::List), [sizes @ Value::Node(inner)])
                    if matches!(inner.kind(), Kind::Tuple | Kind::List) =>
                {
                    numbers(allowed, sizes, what)
                }
                _ => Err(wrong()),
            }
        }
        _ => Err(wrong()),
    }
}

/// An array of NumPy, which is in the pickle itself: `(version, shape, dtype, is_fortran, bytes)`.
pub(in crate::formats) fn numpy_array(
    allowed: Allowed,
    node: Node<'_>,
    name: &str,
) -> Result<TensorInfo> {
    let wrong = |message: String| Error::malformed("numpy", message);
    let state = node.states().last().transpose()?;
    let state = state.map(|state| leaves::arguments(&state)).transpose()?;
    let Some([_version, shape, dtype, fortran, data]) = state.as_deref() else {
        return Err(wrong("a NumPy array without its state".to_owned()));
    };
    let shape = numbers(allowed, shape, "shape")?;
    let NumpyType { dtype, endian } = leaves::numpy_type(allowed, dtype)?;
    let data = leaves::as_bytes(allowed, data)?;
    let data = data.ok_or_else(|| wrong("a NumPy array that is not made of bytes".to_owned()))?;
    let len = crate::wire::numpy::data_len(dtype, &shape);
    if len != Some(data.len() as u64) {
        let message = format!("{} bytes for {dtype} of {shape:?}", data.len());
        return Err(wrong(message));
    }
    let mut tensor = TensorInfo::dense(name, dtype, shape, Payload::Inline(data.into()));
    if matches!(fortran, Value::Bool(true)) {
        tensor.layout = Layout::ColumnMajor;
    }
    for part in &mut tensor.parts {
        part.endian = endian;
    }
    Ok(tensor)
}
