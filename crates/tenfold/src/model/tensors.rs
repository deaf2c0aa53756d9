//! The tensors of a file.

use core::ops::{Deref, DerefMut};

use crate::model::TensorInfo;
use crate::prelude::*;

/// The tensors of a file: a vector that clones share until one of them is changed.
///
/// Most descriptions of a file differ in a few places from the one that it was opened with, and files with a hundred
/// thousand tensors are nothing unusual.
#[derive(Clone, Debug, Default)]
pub struct Tensors(Arc<Vec<TensorInfo>>);

impl Deref for Tensors {
    type Target = Vec<TensorInfo>;

    fn deref(&self) -> &Vec<TensorInfo> {
        &self.0
    }
}

/// Copies the tensors first if they are shared.
impl DerefMut for Tensors {
    fn deref_mut(&mut self) -> &mut Vec<TensorInfo> {
        Arc::make_mut(&mut self.0)
    }
}

impl From<Vec<TensorInfo>> for Tensors {
    fn from(tensors: Vec<TensorInfo>) -> Self {
        Self(Arc::new(tensors))
    }
}

impl FromIterator<TensorInfo> for Tensors {
    fn from_iter<I: IntoIterator<Item = TensorInfo>>(tensors: I) -> Self {
        Vec::from_iter(tensors).into()
    }
}

impl IntoIterator for Tensors {
    type Item = TensorInfo;
    type IntoIter = alloc::vec::IntoIter<TensorInfo>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'a> IntoIterator for &'a Tensors {
    type Item = &'a TensorInfo;
    type IntoIter = core::slice::Iter<'a, TensorInfo>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a> IntoIterator for &'a mut Tensors {
    type Item = &'a mut TensorInfo;
    type IntoIter = core::slice::IterMut<'a, TensorInfo>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{DType, Payload};

    #[test]
    fn clones_share_until_one_is_changed() {
        let one = TensorInfo::dense("one", DType::U8, vec![], Payload::main(0..1));
        let first: Tensors = vec![one].into();
        let mut second = first.clone();
        assert_eq!(first.as_ptr(), second.as_ptr());
        if let Some(tensor) = second.first_mut() {
            tensor.name = "two".into();
        }
        assert_eq!(first.first().map(|t| t.name.as_str()), Some("one"));
        assert_eq!(second.first().map(|t| t.name.as_str()), Some("two"));
    }
}
