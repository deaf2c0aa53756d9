//! Tensors by the parts of their names, with counts and sizes.

use std::io;

use tenfold::model::TensorInfo;

use super::{amount, data_len, dtype, group, notes, shape};
use crate::output::{Out, Table, quantity};

/// What is deeper stays together.
const DEEPEST: usize = 16;

/// A part of names, and all that is below it.
#[derive(Default)]
struct Node<'t> {
    /// With what separates it from the next.
    part: String,
    tensors: usize,
    elements: u64,
    bytes: u64,
    /// One of the tensors whose name ends here.
    tensor: Option<&'t TensorInfo>,
    children: Vec<Node<'t>>,
}

pub(super) fn write(tensors: &[&TensorInfo], exact: bool, out: &mut Out<'_>) -> io::Result<()> {
    let mut root = Node::default();
    for (name, members) in group(tensors, &notes(tensors)) {
        let infos: Vec<_> = members
            .iter()
            .filter_map(|&place| tensors.get(place))
            .collect();
        root.add(&mut parts(&name).into_iter(), &infos);
    }
    let mut table = Table::new(&["name", ">tensors", ">parameters", ">size", "dtype", "shape"]);
    for child in &root.children {
        child.list(0, exact, &mut table);
    }
    table.write(out, |_, _| Ok(()))
}

impl<'t> Node<'t> {
    fn add(&mut self, parts: &mut impl Iterator<Item = String>, infos: &[&&'t TensorInfo]) {
        self.tensors += infos.len();
        for info in infos {
            self.elements = self.elements.saturating_add(info.elements().unwrap_or(0));
            self.bytes = self.bytes.saturating_add(data_len(info));
        }
        let Some(part) = parts.next() else {
            self.tensor = infos.first().map(|info| **info);
            return;
        };
        // Names that end here are beside names that go on, and tensors of one name differ in what they are.
        let known = self.children.iter_mut();
        let known = known
            .rev()
            .find(|child| child.part == part && child.tensor.is_none());
        match known {
            Some(child) => child.add(parts, infos),
            None => {
                let mut child = Node {
                    part,
                    ..Node::default()
                };
                child.add(parts, infos);
                self.children.push(child);
            }
        }
    }

    fn list(&self, depth: usize, exact: bool, table: &mut Table) {
        let mut name = "  ".repeat(depth) + &self.part;
        // What has only one part below it shares its line.
        let mut node = self;
        while let ([only], None) = (node.children.as_slice(), node.tensor) {
            name += &only.part;
            node = only;
        }
        let (dtype, dims) = match node.tensor {
            Some(info) => (dtype(info), shape(&info.shape)),
            None => Default::default(),
        };
        let elements = if exact {
            node.elements.to_string()
        } else {
            quantity(node.elements)
        };
        table.row(&[
            name.trim_end_matches(SEPARATORS),
            &node.tensors.to_string(),
            &elements,
            &amount(node.bytes, exact),
            &dtype,
            &dims,
        ]);
        for child in &node.children {
            child.list(depth + 1, exact, table);
        }
    }
}

const SEPARATORS: [char; 2] = ['.', '/'];

/// The parts of a name, or of a pattern of names: the dots of `{0..31}` separate nothing.
fn parts(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut braces = 0usize;
    for c in name.chars() {
        match c {
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            _ => {}
        }
        let count = parts.len();
        if let Some(part) = parts.last_mut() {
            part.push(c);
        }
        if braces == 0 && SEPARATORS.contains(&c) && count < DEEPEST {
            parts.push(String::new());
        }
    }
    if parts.last().is_some_and(String::is_empty) && parts.len() > 1 {
        parts.pop();
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn names_are_parted_at_dots_and_slashes_outside_of_ranges() {
        assert_eq!(parts("a.{0..31}.w"), ["a.", "{0..31}.", "w"]);
        assert_eq!(parts("a/b.c"), ["a/", "b.", "c"]);
        assert_eq!(parts("a."), ["a."]);
        assert_eq!(parts(""), [""]);
        assert_eq!(parts(&"x.".repeat(100)).len(), 16);
    }
}
