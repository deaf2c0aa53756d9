//! Names as variables, structures and cells.

use super::super::limits;
use crate::model::{Manifest, Value};
use crate::prelude::*;

/// What a variable, a field or an entry is.
pub(in crate::formats::mat) enum Node<'m> {
    /// The place among the tensors.
    Tensor(usize),
    Text(&'m Value),
    /// Fields, or entries of a cell by their numbers.
    Inner(Vec<(&'m str, Node<'m>)>),
}

/// The variables of a file.
pub(in crate::formats::mat) struct Tree<'m> {
    pub(in crate::formats::mat) variables: Vec<(&'m str, Node<'m>)>,
    refused: Vec<(usize, &'static str)>,
    lost: Vec<&'m str>,
}

/// Where names lead, while the tree grows: places in the list of nodes by their paths.
#[derive(Default)]
struct Growing<'m> {
    nodes: Vec<Branch<'m>>,
    by_path: LookupMap<&'m str, usize>,
}

#[derive(Default)]
struct Branch<'m> {
    part: &'m str,
    children: Vec<usize>,
    leaf: Option<Leaf<'m>>,
    /// How many of the children are numbers, and the greatest of these.
    entries: usize,
    last: u64,
}

#[derive(Clone, Copy)]
enum Leaf<'m> {
    Tensor(usize),
    Text(&'m Value),
}

impl<'m> Growing<'m> {
    /// Adds a leaf; says why it has no place.
    fn add(&mut self, path: &'m str, leaf: Leaf<'m>) -> Result<(), &'static str> {
        if limits::name(path).is_err() {
            return Err("no name of MATLAB's");
        }
        let ends = path.match_indices('.').map(|(at, _)| at);
        let mut parent = 0;
        let mut new = Vec::new();
        for end in ends.chain([path.len()]) {
            let prefix = path.get(..end).unwrap_or_default();
            let is_last = end == path.len();
            match self.by_path.get(prefix).copied() {
                Some(_) if is_last => {
                    return Err("there is another of this name, or something in it");
                }
                Some(known) => {
                    if self
                        .nodes
                        .get(known)
                        .is_some_and(|node| node.leaf.is_some())
                    {
                        return Err("another tensor has a part of its name, and is no structure");
                    }
                    parent = known;
                }
                None => new.push(prefix),
            }
        }
        let part = |prefix: &'m str| prefix.rsplit('.').next().unwrap_or(prefix);
        // Fields and numbers do not go together.
        if let Some(first) = new.first()
            && parent > 0
            && let Some(node) = self.nodes.get(parent)
            && !node.children.is_empty()
            && (node.entries > 0) != limits::entry(part(first)).is_some()
        {
            return Err("a structure has fields and a cell has numbers, and this would have both");
        }
        for prefix in new {
            let place = self.nodes.len();
            let number = limits::entry(part(prefix));
            if let Some(node) = self.nodes.get_mut(parent) {
                node.children.push(place);
                if let Some(number) = number.filter(|_| parent > 0) {
                    node.entries += 1;
                    node.last = node.last.max(number);
                }
            }
            self.nodes.push(Branch {
                part: part(prefix),
                ..Branch::default()
            });
            self.by_path.insert(prefix, place);
            parent = place;
        }
        if let Some(node) = self.nodes.get_mut(parent) {
            node.leaf = Some(leaf);
        }
        Ok(())
    }

    fn node(&mut self, place: usize) -> (&'m str, Node<'m>) {
        let branch = self.nodes.get_mut(place).map(core::mem::take);
        let branch = branch.unwrap_or_default();
        let node = match branch.leaf {
            Some(Leaf::Tensor(place)) => Node::Tensor(place),
            Some(Leaf::Text(value)) => Node::Text(value),
            None => {
                let children = branch.children.into_iter();
                let mut children: Vec<_> = children.map(|child| self.node(child)).collect();
                if branch.entries > 0 {
                    children.sort_by_key(|(part, _)| limits::entry(part));
                }
                Node::Inner(children)
            }
        };
        (branch.part, node)
    }
}

impl<'m> Tree<'m> {
    pub(in crate::formats::mat) fn of(what: &'m Manifest) -> Self {
        let mut growing = Growing::default();
        growing.nodes.push(Branch::default());
        let mut refused = Vec::new();
        let mut lost = Vec::new();
        for (place, tensor) in what.tensors.iter().enumerate() {
            if let Err(why) = growing.add(&tensor.name, Leaf::Tensor(place)) {
                refused.push((place, why));
            }
        }
        for (key, value, is_fact) in what.metadata.entries() {
            let fits = matches!(limits::value(key, value), crate::format::Fit::Exact);
            if fits && !is_fact && growing.add(key, Leaf::Text(value)).is_err() {
                lost.push(key);
            }
        }
        // A cell of which few entries are there would be long for nothing.
        for branch in growing.nodes.iter().skip(1) {
            if branch.entries > 0 && !limits::is_cell(branch.entries, branch.last) {
                let why = "the number of an entry leaves too many others out";
                let mut below = branch.children.clone();
                while let Some(place) = below.pop() {
                    if let Some(node) = growing.nodes.get(place) {
                        below.extend(&node.children);
                        if let Some(Leaf::Tensor(tensor)) = node.leaf {
                            refused.push((tensor, why));
                        }
                    }
                }
            }
        }
        let (_, root) = growing.node(0);
        let variables = match root {
            Node::Inner(variables) => variables,
            Node::Tensor(_) | Node::Text(_) => Vec::new(),
        };
        Self {
            variables,
            refused,
            lost,
        }
    }

    /// Tensors that have no place, and why.
    pub(in crate::formats::mat) fn refused(&self) -> &[(usize, &'static str)] {
        &self.refused
    }

    /// Keys that have no place.
    pub(in crate::formats::mat) fn lost(&self) -> &[&'m str] {
        &self.lost
    }

    /// The places of the tensors in the order of the file.
    pub(in crate::formats::mat) fn order(&self) -> Vec<usize> {
        fn visit(node: &Node<'_>, order: &mut Vec<usize>) {
            match node {
                Node::Tensor(place) => order.push(*place),
                Node::Text(_) => {}
                Node::Inner(children) => {
                    for (_, child) in children {
                        visit(child, order);
                    }
                }
            }
        }
        let mut order = Vec::new();
        for (_, node) in &self.variables {
            visit(node, &mut order);
        }
        order
    }
}
