//! Text in columns, and the few colours that are used.

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr as _;

pub(crate) const RED: Style = AnsiColor::Red.on_default();
pub(crate) const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
pub(crate) const CYAN: Style = AnsiColor::Cyan.on_default();
pub(crate) const DIM: Style = Style::new().dimmed();

/// Rows of cells under titles. The first column is aligned left, the others right.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<(String, Style)>>,
}

impl Table {
    pub(crate) fn new<S: Into<String>>(titles: impl IntoIterator<Item = S>) -> Self {
        Self { rows: vec![titles.into_iter().map(|title| (title.into(), DIM)).collect()] }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = (String, Style)>) {
        self.rows.push(cells.into_iter().collect());
    }

    pub(crate) fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|(text, _)| text.width()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, ((cell, style), width)) in row.iter().zip(&widths).enumerate() {
                let padding = " ".repeat(width.saturating_sub(cell.width()));
                let cell = format!("{style}{cell}{style:#}");
                match column {
                    0 => line.extend([cell.as_str(), &padding]),
                    _ => line.extend(["  ", &padding, &cell]),
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
    fn columns_line_up() {
        let mut table = Table::new(["name", "cases"]);
        table.row([("a".to_owned(), Style::new()), ("1000000".to_owned(), RED)]);
        table.row([("ünïcode".to_owned(), Style::new()), ("5".to_owned(), Style::new())]);
        let plain = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(plain, "name       cases\na        1000000\nünïcode        5\n");
    }
}
