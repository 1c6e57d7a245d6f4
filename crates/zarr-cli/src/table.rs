//! Text in columns, and the few colours that are used.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr as _;

pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();

/// The text without control characters, other than ends of lines and the colours that this program writes. Names, attributes and messages come from data that
/// anybody may have made, and a terminal obeys what it is shown.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    if !text.contains(|c: char| c.is_control() && c != '\n') {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let colour = rest.strip_prefix("\x1b[").map(|after| after.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';'));
        if let Some(after) = colour.and_then(|after| after.strip_prefix('m')) {
            safe.push_str(&rest[..rest.len() - after.len()]);
            rest = after;
            continue;
        }
        if character.is_control() && character != '\n' {
            safe.extend(character.escape_debug());
        } else {
            safe.push(character);
        }
        rest = &rest[character.len_utf8()..];
    }
    Cow::Owned(safe)
}

/// Where a column's text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// Rows of cells; columns that are empty in every row are left out. The last cell of a row with fewer cells than there are columns reaches as far as it has
/// to.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    pub(crate) fn new(columns: impl Into<Vec<(&'static str, Align)>>) -> Self {
        Self { columns: columns.into(), rows: Vec::new() }
    }

    pub(crate) fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        self.styled_row(cells.into_iter().map(|cell| (cell.into(), Style::new())));
    }

    pub(crate) fn styled_row(&mut self, cells: impl IntoIterator<Item = (String, Style)>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table without those of `expendable` columns, first to last, that a terminal has no room for. What goes to a file or a pipe is whole.
    pub(crate) fn fit(mut self, expendable: &[&str]) -> Self {
        let Some((terminal_size::Width(room), _)) = terminal_size::terminal_size_of(std::io::stdout()) else { return self };
        for title in expendable {
            let width = self.render().lines().map(|line| anstream::adapter::strip_str(line).to_string().width()).max().unwrap_or(0);
            if width <= usize::from(room) {
                break;
            }
            if let Some(at) = self.columns.iter().position(|(name, _)| name == title) {
                self.columns.remove(at);
                self.rows.iter_mut().filter(|row| row.len() > at).for_each(|row| {
                    row.remove(at);
                });
            }
        }
        self
    }

    /// Whether the cell of a row in a column reaches over the columns behind it.
    fn reaches(&self, row: &[(String, Style)], column: usize) -> bool {
        column > 0 && column + 1 == row.len() && row.len() < self.columns.len()
    }

    /// The table with a line of titles, unless no column has one.
    pub(crate) fn render(&self) -> String {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let in_column = self.rows.iter().filter(|row| !self.reaches(row, column)).filter_map(|row| row.get(column));
                let cells = in_column.map(|(text, _)| text.width()).max().unwrap_or(0);
                if cells == 0 { 0 } else { cells.max(self.columns.get(column).map_or(0, |(title, _)| title.width())) }
            })
            .collect();
        let titles: Vec<(String, Style)> = self.columns.iter().map(|(title, _)| ((*title).to_owned(), DIM)).collect();
        let with_titles = self.columns.iter().any(|(title, _)| !title.is_empty());
        let mut text = String::new();
        for row in with_titles.then_some(&titles).into_iter().chain(&self.rows) {
            let mut line = String::new();
            for (column, ((cell, style), (&width, (_, align)))) in row.iter().zip(widths.iter().zip(&self.columns)).enumerate() {
                if width == 0 && !self.reaches(row, column) {
                    continue;
                }
                if !line.is_empty() {
                    line.push_str("  ");
                }
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                let styled = format!("{style}{cell}{style:#}");
                match align {
                    Align::Left => line.extend([styled.as_str(), &padding]),
                    Align::Right => line.extend([padding.as_str(), &styled]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_does_not_command_the_terminal() {
        assert_eq!(harmless("a\x1b[31mb\x1b[0m\n"), "a\x1b[31mb\x1b[0m\n");
        assert_eq!(harmless("a\x1b]0;title\x07b\u{9b}2J\t"), "a\\u{1b}]0;title\\u{7}b\\u{9b}2J\\t");
    }

    #[test]
    fn columns_line_up_and_empty_ones_go() {
        let mut table = Table::new([("name", Align::Left), ("none", Align::Left), ("size", Align::Right)]);
        table.row(["a", "", "1.00 kB"]);
        table.row(["ünïcode", "", "5 B"]);
        let plain = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(plain, "name        size\na        1.00 kB\nünïcode      5 B\n");
    }

    #[test]
    fn messages_reach_over_columns() {
        let mut table = Table::new([("name", Align::Left), ("shape", Align::Left), ("size", Align::Right)]);
        table.row(["a", "3×4", "5 B"]);
        table.row(["b", "cannot be opened: for a reason"]);
        let plain = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(plain, "name  shape  size\na     3×4     5 B\nb     cannot be opened: for a reason\n");
    }
}
