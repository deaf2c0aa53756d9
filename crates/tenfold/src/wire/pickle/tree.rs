//! What a program builds: nodes, each a few words, whose values are places in the program.

use alloc::borrow::Cow;

use super::op::{self, Decoded, Operand};
use super::{Budget, MAX_INTEGER, text};
use crate::error::{Error, Result};
use crate::prelude::*;

/// A value: the place of the opcode that pushes it, or the number of a node.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Ref(u32);

/// Marks the numbers of nodes.
const NODE: u32 = 1 << 31;

impl Ref {
    /// A value that its opcode says whole.
    pub(super) fn at(at: usize) -> Self {
        // Programs have at most 2^28 bytes.
        Self(u32::try_from(at).unwrap_or(0) & !NODE)
    }

    pub(super) fn node(self) -> Option<usize> {
        (self.0 & NODE != 0).then_some((self.0 & !NODE) as usize)
    }

    fn place(self) -> usize {
        self.0 as usize
    }
}

/// What a node is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Dict,
    FrozenSet,
    List,
    /// A class or function, whose module and name were on the stack.
    Global,
    /// What a function gives for arguments.
    Call,
    /// What a class makes of arguments without its constructor.
    New,
    /// Something that lies outside the program, by what stands for it.
    Persistent,
    Set,
    Tuple,
}

const KINDS: [Kind; 9] = [
    Kind::Dict,
    Kind::FrozenSet,
    Kind::List,
    Kind::Global,
    Kind::Call,
    Kind::New,
    Kind::Persistent,
    Kind::Set,
    Kind::Tuple,
];

/// What the words of a stretch are to their node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Content {
    Items,
    /// Keys and values in turns.
    Entries,
    State,
    /// Function and arguments; module and name; what stands for something.
    Head,
}

/// Of the word in front of a stretch: which content. The rest is its length.
const CONTENT: u32 = 30;

/// A node as it is kept: its kind and the place of its opcode, its first stretch and its last.
#[derive(Clone, Copy, Debug)]
struct Kept {
    head: u32,
    first: u32,
    last: u32,
}

/// No stretch.
const NONE: u32 = u32::MAX;
/// Where the kind stands in the first word of a node.
const KIND: u32 = 28;

/// Everything that a program has built.
#[derive(Debug)]
pub(crate) struct Tree<'b> {
    bytes: &'b [u8],
    nodes: Vec<Kept>,
    /// Stretches: the next one of the same node, content and length, and so many values.
    words: Vec<u32>,
    root: Option<Ref>,
}

impl<'b> Tree<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Self {
        Self {
            bytes,
            nodes: Vec::new(),
            words: Vec::new(),
            root: None,
        }
    }

    pub(super) fn set_root(&mut self, root: Ref) {
        self.root = Some(root);
    }

    /// What is left when the program stops.
    pub(crate) fn root(&self) -> Result<Value<'_>> {
        match self.root {
            Some(root) => self.value(root),
            None => Err(Error::malformed("pickle", "the pickle has no result")),
        }
    }

    pub(super) fn add(&mut self, kind: Kind, at: usize, budget: &mut Budget) -> Result<Ref> {
        budget.charge(size_of::<Kept>())?;
        let code = KINDS.iter().position(|known| *known == kind).unwrap_or(0);
        let number = u32::try_from(self.nodes.len())
            .ok()
            .filter(|number| number & NODE == 0);
        let number = number.ok_or_else(too_long)?;
        let place = u32::try_from(at)
            .ok()
            .filter(|at| *at < 1 << KIND)
            .ok_or_else(too_long)?;
        push_tight(
            &mut self.nodes,
            Kept {
                head: u32::try_from(code).unwrap_or(0) << KIND | place,
                first: NONE,
                last: NONE,
            },
        );
        Ok(Ref(number | NODE))
    }

    /// Adds values to a node, after those that it has.
    pub(super) fn extend(
        &mut self,
        node: usize,
        content: Content,
        values: &[Ref],
        budget: &mut Budget,
    ) -> Result<()> {
        if values.is_empty() && content != Content::Head {
            return Ok(());
        }
        let Some(kept) = self.nodes.get(node).copied() else {
            return Ok(());
        };
        // What is appended one by one makes one stretch, as long as nothing comes between.
        if kept.last != NONE
            && let Some((known, len)) = self.stretch(kept.last)
            && known == content
            && kept.last as usize + 2 + len == self.words.len()
        {
            budget.charge(size_of_val(values))?;
            self.push_all(values);
            return self.set_header(kept.last, content, len + values.len());
        }
        budget.charge(size_of_val(values) + 2 * size_of::<u32>())?;
        let at = u32::try_from(self.words.len())
            .ok()
            .filter(|at| *at != NONE);
        let at = at.ok_or_else(too_long)?;
        push_tight(&mut self.words, NONE);
        push_tight(&mut self.words, 0);
        self.push_all(values);
        self.set_header(at, content, values.len())?;
        if let Some(next) = self.words.get_mut(kept.last as usize) {
            *next = at;
        }
        if let Some(kept) = self.nodes.get_mut(node) {
            kept.last = at;
            if kept.first == NONE {
                kept.first = at;
            }
        }
        Ok(())
    }

    fn push_all(&mut self, values: &[Ref]) {
        let missing = (self.words.len() + values.len()).saturating_sub(self.words.capacity());
        if missing > 0 {
            self.words
                .reserve_exact(values.len().max(self.words.len() / 4));
        }
        self.words.extend(values.iter().map(|value| value.0));
    }

    fn set_header(&mut self, at: u32, content: Content, len: usize) -> Result<()> {
        let len = u32::try_from(len).ok().filter(|len| *len < 1 << CONTENT);
        let len = len.ok_or_else(too_long)?;
        let content = match content {
            Content::Items => 0,
            Content::Entries => 1,
            Content::State => 2,
            Content::Head => 3,
        };
        if let Some(word) = self.words.get_mut(at as usize + 1) {
            *word = content << CONTENT | len;
        }
        Ok(())
    }

    /// What a stretch is, and how long.
    fn stretch(&self, at: u32) -> Option<(Content, usize)> {
        let word = self.words.get((at as usize).checked_add(1)?)?;
        let content = match word >> CONTENT {
            0 => Content::Items,
            1 => Content::Entries,
            2 => Content::State,
            _ => Content::Head,
        };
        Some((content, (word & ((1 << CONTENT) - 1)) as usize))
    }

    /// The stretches of a node with their values.
    fn stretches(&self, node: usize) -> impl Iterator<Item = (Content, &[u32])> {
        let mut at = self.nodes.get(node).map_or(NONE, |kept| kept.first);
        core::iter::from_fn(move || {
            let (content, len) = self.stretch(at)?;
            let start = at as usize + 2;
            let values = self.words.get(start..start.checked_add(len)?)?;
            at = self.words.get(at as usize).copied().unwrap_or(NONE);
            Some((content, values))
        })
    }

    pub(super) fn kind(&self, node: usize) -> Kind {
        let kept = self.nodes.get(node).map_or(0, |kept| kept.head);
        let kind = KINDS.get((kept >> KIND) as usize);
        kind.copied().unwrap_or(Kind::Tuple)
    }

    /// All nodes of a kind, also those that nothing leads to.
    pub(crate) fn nodes(&self, kind: Kind) -> impl Iterator<Item = Node<'_>> {
        let numbers = 0..self.nodes.len();
        let nodes = numbers.map(|number| Node { tree: self, number });
        nodes.filter(move |node| node.kind() == kind)
    }

    /// A value as it is.
    pub(super) fn value(&self, value: Ref) -> Result<Value<'_>> {
        match value.node() {
            Some(number) if self.kind(number) == Kind::Global => {
                let node = Node { tree: self, number };
                let mut head = node.head();
                let mut text = || match head.next().transpose()? {
                    Some(Value::Text(text)) => Ok(text),
                    _ => Err(Error::malformed("pickle", "a name that is not text")),
                };
                Ok(Value::Global {
                    module: text()?,
                    name: text()?,
                })
            }
            Some(number) => Ok(Value::Node(Node { tree: self, number })),
            None => atom(self.bytes, value.place()),
        }
    }
}

fn too_long() -> Error {
    Error::limit("limit", "the pickle has too many values")
}

/// A value of a program.
#[derive(Clone, Debug)]
pub(crate) enum Value<'t> {
    None,
    Bool(bool),
    /// Of any length: two's complement, little-endian.
    Integer(Cow<'t, [u8]>),
    Float(f64),
    Text(Cow<'t, str>),
    Bytes(Cow<'t, [u8]>),
    /// A class or a function.
    Global {
        module: Cow<'t, str>,
        name: Cow<'t, str>,
    },
    Node(Node<'t>),
}

impl Value<'_> {
    /// An integer that fits 64 bits.
    pub(crate) fn as_i64(&self) -> Option<i64> {
        let Value::Integer(digits) = self else {
            return None;
        };
        let fill = match digits.last() {
            Some(byte) if byte & 0x80 != 0 => 0xff,
            _ => 0,
        };
        let mut wide = [fill; 8];
        let (low, high) = digits.split_at(digits.len().min(8));
        // What lies above must repeat the sign.
        let sign = match low.get(7) {
            Some(byte) if byte & 0x80 != 0 => 0xff,
            Some(_) => 0,
            None => fill,
        };
        if high.iter().any(|byte| *byte != sign) {
            return None;
        }
        wide.get_mut(..low.len())?.copy_from_slice(low);
        Some(i64::from_le_bytes(wide))
    }

    /// What it is, for messages.
    pub(crate) fn what(&self) -> String {
        match self {
            Value::None => "None".to_owned(),
            Value::Bool(true) => "True".to_owned(),
            Value::Bool(false) => "False".to_owned(),
            Value::Integer(_) => match self.as_i64() {
                Some(number) => number.to_string(),
                None => "an integer of more than 64 bits".to_owned(),
            },
            Value::Float(number) => format!("{number:?}"),
            Value::Text(text) if text.len() <= 64 => format!("{text:?}"),
            Value::Text(text) => format!("a text of {} bytes", text.len()),
            Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
            Value::Global { module, name } => format!("{module}.{name}"),
            Value::Node(node) => match node.kind() {
                Kind::Dict => "a dict",
                Kind::FrozenSet => "a frozenset",
                Kind::List => "a list",
                Kind::Set => "a set",
                Kind::Tuple => "a tuple",
                Kind::Persistent => "a persistent id",
                Kind::Call | Kind::New | Kind::Global => "an object",
            }
            .to_owned(),
        }
    }
}

/// A container, an object or something outside the program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'t> {
    tree: &'t Tree<'t>,
    number: usize,
}

/// A call, taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Object<'t> {
    pub(crate) function: Value<'t>,
    pub(crate) arguments: Value<'t>,
}

impl<'t> Node<'t> {
    pub(crate) fn kind(self) -> Kind {
        self.tree.kind(self.number)
    }

    /// The same number is the same node.
    pub(crate) fn number(self) -> usize {
        self.number
    }

    /// The place of its opcode in the program.
    pub(crate) fn at(self) -> usize {
        let kept = self.tree.nodes.get(self.number).map_or(0, |kept| kept.head);
        (kept & ((1 << KIND) - 1)) as usize
    }

    /// The items of a list, a tuple or a set, and what was appended to an object.
    pub(crate) fn items(self) -> impl Iterator<Item = Result<Value<'t>>> {
        self.content(Content::Items)
    }

    /// How many items there are.
    pub(crate) fn len(self) -> usize {
        let stretches = self.tree.stretches(self.number);
        let items = stretches.filter(|(content, _)| *content == Content::Items);
        items.map(|(_, values)| values.len()).sum()
    }

    /// Keys and values of a dict, or of an object that is like one, in the order in which they were set: of a key that is
    /// there twice the last value counts.
    pub(crate) fn entries(self) -> impl Iterator<Item = Result<(Value<'t>, Value<'t>)>> {
        let mut values = self.content(Content::Entries);
        core::iter::from_fn(move || {
            let key = values.next()?;
            let value = values.next()?;
            Some(key.and_then(|key| Ok((key, value?))))
        })
    }

    /// What an object was built with.
    pub(crate) fn states(self) -> impl Iterator<Item = Result<Value<'t>>> {
        self.content(Content::State)
    }

    /// What a call is of.
    pub(crate) fn object(self) -> Result<Object<'t>> {
        let mut head = self.head();
        let mut next = || {
            let missing = || Error::malformed("pickle", "a call without a function");
            head.next().unwrap_or_else(|| Err(missing()))
        };
        Ok(Object {
            function: next()?,
            arguments: next()?,
        })
    }

    /// What stands for something outside the program.
    pub(crate) fn persistent(self) -> Result<Value<'t>> {
        let missing = || Error::malformed("pickle", "a persistent id without a value");
        self.head().next().unwrap_or_else(|| Err(missing()))
    }

    fn head(self) -> impl Iterator<Item = Result<Value<'t>>> {
        self.content(Content::Head)
    }

    fn content(self, wanted: Content) -> impl Iterator<Item = Result<Value<'t>>> {
        let tree = self.tree;
        let stretches = tree.stretches(self.number);
        stretches
            .filter(move |(content, _)| *content == wanted)
            .flat_map(|(_, values)| values)
            .map(move |value| tree.value(Ref(*value)))
    }
}

/// What an opcode pushes that says its value whole.
fn atom(bytes: &[u8], at: usize) -> Result<Value<'_>> {
    let damaged = || Error::malformed("pickle", "a value that its opcode does not say");
    let Decoded::Op(op) = op::decode(bytes, at)? else {
        return Err(damaged());
    };
    Ok(match (op.code, op.operand) {
        (b'N', _) => Value::None,
        (0x88, _) => Value::Bool(true),
        (0x89, _) => Value::Bool(false),
        (b'I', Operand::Line(b"00")) => Value::Bool(false),
        (b'I', Operand::Line(b"01")) => Value::Bool(true),
        (b'I' | b'L', Operand::Line(line)) => Value::Integer(text::integer(line)?.into()),
        (b'J', Operand::Signed(number)) => Value::Integer(number.to_le_bytes().to_vec().into()),
        (b'K' | b'M', Operand::Number(number)) => {
            // One byte more, so that the highest bit is not a sign.
            let [low, high, ..] = number.to_le_bytes();
            Value::Integer(vec![low, high, 0].into())
        }
        (0x8a | 0x8b, Operand::Bytes(digits)) if digits.len() > MAX_INTEGER => {
            let message = format!("an integer of {} bytes, the limit is 128", digits.len());
            return Err(Error::limit("limit", message));
        }
        (0x8a | 0x8b, Operand::Bytes(digits)) => Value::Integer(digits.into()),
        (b'F', Operand::Line(line)) => Value::Float(text::float(line)?),
        (b'G', Operand::Float(number)) => Value::Float(number),
        (b'S', Operand::Line(line)) => text::old(text::unquote(line)?.into()),
        (b'T' | b'U', Operand::Bytes(bytes)) => text::old(bytes.into()),
        (b'V', Operand::Line(line)) => Value::Text(text::raw_unicode(line)?.into()),
        (b'X' | 0x8c | 0x8d, Operand::Bytes(bytes)) => Value::Text(text::unicode(bytes)?),
        (b'B' | b'C' | 0x8e | 0x96, Operand::Bytes(bytes)) => Value::Bytes(bytes.into()),
        (b'P', Operand::Line(line)) => Value::Text(text::unicode(line)?),
        (0x97, _) => Value::Bytes(Cow::Borrowed(&[])),
        (0x82..=0x84, Operand::Number(code)) => Value::Global {
            module: "copyreg".into(),
            name: super::machine::extension(code),
        },
        (b'c' | b'i', Operand::Lines(module, name)) => Value::Global {
            module: text::unicode(module)?,
            name: text::unicode(name)?,
        },
        _ => return Err(damaged()),
    })
}
