//! Text for people: escaping, sizes, tables, colour, messages.

use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};
use std::path::Path;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = AnsiColor::Red.on_default().bold();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();

/// Standard output, and whether it shows colour.
pub(crate) struct Out<'a> {
    writer: &'a mut dyn Write,
    color: bool,
    written: bool,
    /// How much a terminal shows, if it is one.
    pub(crate) screen: Option<Screen>,
}

/// What a terminal shows at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Screen {
    pub(crate) columns: usize,
    pub(crate) lines: usize,
}

impl<'a> Out<'a> {
    pub(crate) fn new(writer: &'a mut dyn Write, color: bool) -> Self {
        Self {
            writer,
            color,
            written: false,
            screen: None,
        }
    }

    /// Whether nothing has been written yet.
    pub(crate) fn is_empty(&self) -> bool {
        !self.written
    }

    /// Whether there is colour.
    pub(crate) fn has_color(&self) -> bool {
        self.color
    }

    /// `text` in a style, where there is colour.
    pub(crate) fn paint<T: Display>(&self, style: Style, text: T) -> Painted<T> {
        Painted {
            style: self.color.then_some(style),
            text,
        }
    }
}

impl Write for Out<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written |= !bytes.is_empty();
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// Text in a style.
pub(crate) struct Painted<T> {
    style: Option<Style>,
    text: T,
}

impl<T: Display> Display for Painted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.style {
            Some(style) => write!(f, "{style}{}{style:#}", self.text),
            None => self.text.fmt(f),
        }
    }
}

/// A message for people, on standard error. A closed standard error is nobody's concern.
pub(crate) fn say(message: impl Display) {
    let _ = writeln!(io::stderr(), "tenfold: {}", Clean(&message.to_string()));
}

/// More of the same kind is counted, not listed.
pub(crate) const LISTED: usize = 10;

/// The first of many messages, and how many more there are.
pub(crate) fn first_of(messages: impl ExactSizeIterator<Item = String>) -> Vec<String> {
    let more = messages.len().saturating_sub(LISTED);
    let more = (more > 0).then(|| format!("and {more} more"));
    messages.take(LISTED).chain(more).collect()
}

/// Says the first of many messages, and how many more there are.
pub(crate) fn say_first(messages: impl ExactSizeIterator<Item = String>) {
    first_of(messages).iter().for_each(say);
}

/// A message, a path, or what was escaped before, as it may be shown: what a terminal would act on, or what would hide or
/// reorder what is beside it, is escaped. Texts from a file stand in messages in quotes, with escapes of their own.
pub(crate) struct Clean<'a>(pub(crate) &'a str);

impl Display for Clean<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(self.0, is_unsafe, f)
    }
}

/// Text from a file as it may be shown by itself: escaped, `\` too, so that no two of them look the same.
pub(crate) struct Verbatim<'a>(pub(crate) &'a str);

impl Display for Verbatim<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(self.0, |c| c == '\\' || is_unsafe(c), f)
    }
}

fn escape(text: &str, is_escaped: fn(char) -> bool, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let mut rest = text;
    while let Some(at) = rest.find(is_escaped) {
        let (safe, tail) = rest.split_at(at);
        f.write_str(safe)?;
        let mut chars = tail.chars();
        if let Some(c) = chars.next() {
            write!(f, "{}", c.escape_default())?;
        }
        rest = chars.as_str();
    }
    f.write_str(rest)
}

/// Control characters, line separators, and what changes the direction of text, or cannot be seen or told from a space:
/// Unicode's white space and its default ignorable characters, and two that are drawn as nothing.
pub(crate) fn is_unsafe(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    c.is_control()
        || c.is_whitespace()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// A tensor's name as it may be shown; one without characters in quotes, so that it can be seen.
pub(crate) fn show_name(name: &str) -> String {
    match name {
        "" => "\"\"".to_owned(),
        name => Verbatim(name).to_string(),
    }
}

/// A path as it may be shown.
pub(crate) fn show_path(path: &Path) -> String {
    Clean(&path.to_string_lossy()).to_string()
}

/// A number of bytes: `24 B`, `1.5 KiB`, `14.96 GiB`.
pub(crate) fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    #[allow(clippy::cast_precision_loss)] // shown with two decimals
    let mut value = bytes as f64 / 1024.0;
    let mut unit = UNITS[0];
    for next in &UNITS[1..] {
        // What would be shown as 1024 is 1 of the next.
        if value < 1023.95 {
            break;
        }
        value /= 1024.0;
        unit = next;
    }
    let decimals = if value < 100.0 { 2 } else { 1 };
    format!("{value:.decimals$} {unit}")
}

/// A number of bytes as shops and model pages say it: `24 B`, `11.7 MB`.
pub(crate) fn decimal_size(bytes: u64) -> String {
    scaled(bytes, ["KB", "MB", "GB", "TB", "PB", "EB"]).unwrap_or_else(|| format!("{bytes} B"))
}

/// A count as people say it: `512`, `12 K`, `5.87 M`, `7.24 B`.
pub(crate) fn quantity(n: u64) -> String {
    scaled(n, ["K", "M", "B", "T", "Q", "Qi"]).unwrap_or_else(|| n.to_string())
}

/// Three digits of a number in thousands of thousands; `None` below the first.
fn scaled(n: u64, units: [&str; 6]) -> Option<String> {
    if n < 1000 {
        return None;
    }
    #[allow(clippy::cast_precision_loss)] // shown with three digits
    let mut value = n as f64 / 1000.0;
    let mut unit = units[0];
    for next in &units[1..] {
        // What would be shown as 1000 is 1 of the next.
        if value < 999.5 {
            break;
        }
        value /= 1000.0;
        unit = next;
    }
    let decimals = match value {
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    let digits = format!("{value:.decimals$}");
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        &digits
    };
    Some(format!("{digits} {unit}"))
}

/// A whole number with its digits in threes: `3 200`.
pub(crate) fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}

/// A number with six digits: `0.25`, `-1.5e-7`, `123457`, `1.23457e6`.
pub(crate) fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let scientific = format!("{value:.5e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let trim = |text: &str| {
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            text.to_owned()
        }
    };
    match exponent.parse::<i32>() {
        Ok(places @ -5..6) => {
            let decimals = usize::try_from(5 - places).unwrap_or(0);
            trim(&format!("{value:.decimals$}"))
        }
        _ => format!("{}e{exponent}", trim(digits)),
    }
}

/// `1 tensor`, `2 tensors`.
pub(crate) fn count(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

/// A table with columns as wide as their cells. Columns without any content are left out.
pub(crate) struct Table {
    columns: Vec<Column>,
    /// All cells of all rows one after the other: one allocation instead of one for every cell.
    cells: String,
    /// Where each cell ends.
    ends: Vec<usize>,
}

struct Column {
    title: &'static str,
    right: bool,
    width: usize,
    used: bool,
}

/// A wider cell pushes the rest of its line to the right, and not all other lines too: a file may have one long name and
/// millions of others.
const WIDEST: usize = 200;

/// The first column has so many columns of a terminal at least.
const NARROWEST: usize = 24;

impl Table {
    /// Columns by their titles; a title that begins with `>` aligns to the right.
    pub(crate) fn new(titles: &[&'static str]) -> Self {
        let columns = titles
            .iter()
            .map(|title| Column {
                right: title.starts_with('>'),
                title: title.trim_start_matches('>'),
                width: 0,
                used: false,
            })
            .collect();
        Self {
            columns,
            cells: String::new(),
            ends: Vec::new(),
        }
    }

    /// Adds a row, one cell for every column. Cells are cleaned here.
    pub(crate) fn row(&mut self, cells: &[&str]) {
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            let from = self.cells.len();
            // Writing to a string cannot fail.
            let _ = write!(self.cells, "{}", Clean(cell));
            let width = self.cells.get(from..).map_or(0, width);
            column.width = column.width.max(width.min(WIDEST));
            column.used |= width > 0;
            self.ends.push(self.cells.len());
        }
    }

    /// Writes the titles and the rows. `after` may add lines below a row, given its number.
    pub(crate) fn write(
        &self,
        out: &mut Out<'_>,
        mut after: impl FnMut(&mut Out<'_>, usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let titles: Vec<_> = self.columns.iter().map(|column| column.title).collect();
        let mut line = String::new();
        let first = self.first_width(out.screen);
        self.line(&mut line, first, titles.into_iter());
        writeln!(out, "{}", out.paint(DIM, line.trim_end()))?;
        let mut from = 0;
        let mut cells = self.ends.iter().map(|&end| {
            let cell = self.cells.get(from..end).unwrap_or_default();
            from = end;
            cell
        });
        for row in 0..self.ends.len() / self.columns.len().max(1) {
            line.clear();
            self.line(&mut line, first, cells.by_ref().take(self.columns.len()));
            writeln!(out, "{}", line.trim_end())?;
            after(out, row)?;
        }
        Ok(())
    }

    /// Columns of a terminal for the first cells: what the others leave. A name that needs more has a line of its own.
    fn first_width(&self, screen: Option<Screen>) -> Option<usize> {
        let screen = screen?;
        let used = self.columns.iter().skip(1).filter(|column| column.used);
        let others: usize = used.map(|column| column.shown_width() + GAP.len()).sum();
        Some(screen.columns.saturating_sub(others + 1).max(NARROWEST))
    }

    fn line<'c>(
        &self,
        line: &mut String,
        first: Option<usize>,
        cells: impl Iterator<Item = &'c str>,
    ) {
        for (place, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            if !column.used {
                continue;
            }
            let mut wanted = column.shown_width();
            if let (0, Some(first)) = (place, first) {
                wanted = wanted.min(first);
                if width(cell) > wanted {
                    line.push_str(cell);
                    line.push('\n');
                    pad(line, wanted + GAP.len());
                    continue;
                }
            }
            let padding = wanted.saturating_sub(width(cell));
            if column.right {
                pad(line, padding);
            }
            line.push_str(cell);
            if !column.right {
                pad(line, padding);
            }
            line.push_str(GAP);
        }
    }
}

/// Between columns.
const GAP: &str = "  ";

impl Column {
    fn shown_width(&self) -> usize {
        self.width.max(self.title.len())
    }
}

/// Columns that a text takes on a terminal.
fn width(text: &str) -> usize {
    if text.is_ascii() {
        text.len()
    } else {
        text.width()
    }
}

fn pad(line: &mut String, n: usize) {
    line.extend(std::iter::repeat_n(' ', n));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short_and_exact_below_a_kibibyte() {
        assert_eq!(size(0), "0 B");
        assert_eq!(size(1023), "1023 B");
        assert_eq!(size(1024), "1.00 KiB");
        assert_eq!(size(1536), "1.50 KiB");
        assert_eq!(size(1 << 20), "1.00 MiB");
        assert_eq!(size((1 << 20) - 1), "1.00 MiB");
        assert_eq!(size(500 << 20), "500.0 MiB");
        assert_eq!(size(u64::MAX), "16.00 EiB");
    }

    #[test]
    fn counts_are_said_in_three_digits() {
        for (n, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1 K"),
            (12_000, "12 K"),
            (12_345, "12.3 K"),
            (999_499, "999 K"),
            (999_500, "1 M"),
            (5_872_025, "5.87 M"),
            (7_241_732_096, "7.24 B"),
            (u64::MAX, "18.4 Qi"),
        ] {
            assert_eq!(quantity(n), text);
        }
        assert_eq!(decimal_size(512), "512 B");
        assert_eq!(decimal_size(11_744_050), "11.7 MB");
        assert_eq!(thousands(3200), "3 200");
        assert_eq!(thousands(1_000_000), "1 000 000");
        assert_eq!(thousands(12), "12");
    }

    #[test]
    fn names_longer_than_a_narrow_terminal_leaves_have_lines_of_their_own() {
        let mut table = Table::new(&["name", ">size"]);
        let long = "model.layers.0.self_attn.q_proj.weight";
        table.row(&[long, "10 B"]);
        table.row(&["b", "5 B"]);
        let mut text = Vec::new();
        let mut out = Out::new(&mut text, false);
        let (columns, lines) = (20, 24);
        out.screen = Some(Screen { columns, lines });
        table.write(&mut out, |_, _| Ok(())).unwrap();
        let pad = " ".repeat(NARROWEST);
        let expected = format!(
            "name{0}  size\n{long}\n{pad}  10 B\nb{1}   5 B\n",
            &pad[4..],
            &pad[1..]
        );
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn numbers_have_six_digits() {
        for (value, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (0.25, "0.25"),
            (1.0 / 3.0, "0.333333"),
            (-1.5e-7, "-1.5e-7"),
            (1e-5, "0.00001"),
            (123_456.7, "123457"),
            (999_999.9, "1e6"),
            (1_234_567.0, "1.23457e6"),
            (100_000.0, "100000"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(number(value), text);
        }
    }

    #[test]
    fn what_a_terminal_acts_on_is_escaped() {
        let nasty = "a\u{1b}[2Jb\nc\u{202e}d\u{9b}é";
        assert_eq!(
            Clean(nasty).to_string(),
            "a\\u{1b}[2Jb\\nc\\u{202e}d\\u{9b}é"
        );
    }

    #[test]
    fn no_two_texts_of_files_look_the_same() {
        let alike = [
            ("a\\nb", "a\\\\nb"),
            ("a\nb", "a\\nb"),
            ("a\\u{3164}", "a\\\\u{3164}"),
            ("a\u{3164}", "a\\u{3164}"),
            (
                "a\u{115f}\u{2800}\u{3000}\u{a0}",
                "a\\u{115f}\\u{2800}\\u{3000}\\u{a0}",
            ),
            ("a b é ж 名", "a b é ж 名"),
        ];
        for (text, shown) in alike {
            assert_eq!(Verbatim(text).to_string(), shown);
            assert_eq!(show_name(text), shown);
            // What was escaped already stays as it is.
            assert_eq!(Clean(shown).to_string(), shown);
        }
        assert_eq!(
            Clean("\"a\\\\b\u{3164}\"").to_string(),
            "\"a\\\\b\\u{3164}\""
        );
    }

    #[test]
    fn tables_leave_out_what_nobody_uses() {
        let mut table = Table::new(&["name", ">size", "layout"]);
        table.row(&["a", "10 B", ""]);
        table.row(&["bcdef", "5 B", ""]);
        let mut text = Vec::new();
        table
            .write(&mut Out::new(&mut text, false), |_, _| Ok(()))
            .unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "name   size\na      10 B\nbcdef   5 B\n"
        );
    }
}
