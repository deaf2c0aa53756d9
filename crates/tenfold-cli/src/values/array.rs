//! Brackets, lines and commas around the elements of an array, which come one after the other.

use std::io::{self, Write};

/// Characters of a line.
const WIDTH: usize = 75;

/// Writes the elements of an array in lines that line up, as NumPy does.
pub(crate) struct Grid<'a> {
    out: &'a mut dyn Write,
    /// How many elements there are along each dimension.
    shape: Vec<u64>,
    /// Behind how many of them something was left out.
    gaps: Vec<Option<u64>>,
    index: Vec<u64>,
    begun: bool,
    /// Characters on the line.
    line: usize,
    /// Blanks at the end of the line that are written when something follows.
    blanks: usize,
}

impl<'a> Grid<'a> {
    /// For a shape without zeros that has a dimension.
    pub(crate) fn new(out: &'a mut dyn Write, shape: Vec<u64>, gaps: Vec<Option<u64>>) -> Self {
        let index = vec![0; shape.len()];
        Self {
            out,
            shape,
            gaps,
            index,
            begun: false,
            line: 0,
            blanks: 0,
        }
    }

    /// The next element.
    pub(crate) fn push(&mut self, word: &str) -> io::Result<()> {
        let rank = self.shape.len();
        if !self.begun {
            self.begun = true;
            write!(self.out, "{}", "[".repeat(rank))?;
            self.line = rank;
            return self.word(word);
        }
        let ended = self.advance();
        let axis = rank - 1 - ended.min(rank - 1);
        let gap = self.is_behind_gap(axis);
        if ended == 0 {
            self.blank();
            if gap {
                self.wrapped("...")?;
                self.blank();
            }
            return self.wrapped(word);
        }
        self.flush_blanks()?;
        let (lines, indent) = ("\n".repeat(ended), " ".repeat(axis + 1));
        write!(self.out, "{}{lines}{indent}", "]".repeat(ended))?;
        if gap {
            write!(self.out, "...{lines}{indent}")?;
        }
        write!(self.out, "{}", "[".repeat(ended))?;
        self.line = rank;
        self.word(word)
    }

    /// Closes what is open.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush_blanks()?;
        writeln!(self.out, "{}", "]".repeat(self.shape.len()))
    }

    /// Goes on to the next index; how many dimensions began anew.
    fn advance(&mut self) -> usize {
        let mut ended = 0;
        for (index, count) in self.index.iter_mut().zip(&self.shape).rev() {
            *index += 1;
            if *index < *count {
                break;
            }
            *index = 0;
            ended += 1;
        }
        ended
    }

    fn is_behind_gap(&self, axis: usize) -> bool {
        match (self.gaps.get(axis), self.index.get(axis)) {
            (Some(Some(gap)), Some(index)) => gap == index,
            _ => false,
        }
    }

    fn blank(&mut self) {
        self.blanks += 1;
        self.line += 1;
    }

    /// A word on this line, or on the next where it does not fit.
    fn wrapped(&mut self, word: &str) -> io::Result<()> {
        let rank = self.shape.len();
        let width = WIDTH.saturating_sub(rank);
        if self.line + word.len() > width && self.line > rank {
            write!(self.out, "\n{}", " ".repeat(rank))?;
            self.blanks = 0;
            self.line = rank;
        }
        self.word(word)
    }

    fn word(&mut self, word: &str) -> io::Result<()> {
        self.flush_blanks()?;
        let visible = word.trim_end();
        self.blanks = word.len() - visible.len();
        self.line += word.len();
        self.out.write_all(visible.as_bytes())
    }

    fn flush_blanks(&mut self) -> io::Result<()> {
        let blanks = std::mem::take(&mut self.blanks);
        write!(self.out, "{:blanks$}", "")
    }
}
