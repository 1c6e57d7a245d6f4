//! JSON text: where values end, and how Python writes them.

use zarr_codec_api::CodecError;
use zarr_meta::{Json, JsonObject};

use super::NAME;

/// A place in a text. It finds where values end without looking into them, so that they can be parsed one by one.
pub(super) struct Cursor<'a> {
    rest: &'a [u8],
    len: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self { rest: text, len: text.len() }
    }

    /// The place in bytes.
    pub(super) fn offset(&self) -> usize {
        self.len.saturating_sub(self.rest.len())
    }

    fn skip_space(&mut self) {
        while let Some((b' ' | b'\t' | b'\r' | b'\n', rest)) = self.rest.split_first() {
            self.rest = rest;
        }
    }

    /// Goes past white space and `token`, if that is next.
    pub(super) fn take(&mut self, token: u8) -> bool {
        self.skip_space();
        match self.rest.split_first() {
            Some((&first, rest)) if first == token => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Whether nothing but white space is left.
    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip_space();
        self.rest.is_empty()
    }

    /// Goes past one value, and gives its text; `None` if there is none that ends.
    pub(super) fn value(&mut self) -> Option<&'a [u8]> {
        self.skip_space();
        let end = end_of_value(self.rest)?;
        let (value, rest) = self.rest.split_at_checked(end)?;
        self.rest = rest;
        Some(value)
    }
}

/// The length of the value that a text begins with.
fn end_of_value(text: &[u8]) -> Option<usize> {
    let mut bytes = text.iter().enumerate();
    let mut depth = 0usize;
    let mut quoted = false;
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' if quoted => quoted = false,
            b'\\' if quoted => {
                bytes.next()?;
                continue;
            }
            _ if quoted => continue,
            b'"' => {
                quoted = true;
                continue;
            }
            b'[' | b'{' => {
                depth = depth.checked_add(1)?;
                continue;
            }
            // The end of the list around it, or of a value without brackets or quotes, which is at least one byte long.
            b']' | b'}' | b',' | b' ' | b'\t' | b'\r' | b'\n' if depth == 0 => return (at > 0).then_some(at),
            b']' | b'}' => depth = depth.checked_sub(1)?,
            _ => continue,
        }
        if depth == 0 {
            return at.checked_add(1);
        }
    }
    None
}

/// How values are written: the options of Python's `JSONEncoder`.
#[derive(Debug)]
pub(super) struct Style {
    /// Between items.
    pub(super) item: String,
    /// Between a key and its value.
    pub(super) key: String,
    /// What stands before an item on a line of its own, for each level; `None` for one line.
    pub(super) indent: Option<String>,
    /// Whether what is not ASCII is escaped.
    pub(super) ascii: bool,
    /// Whether objects are sorted by their keys.
    pub(super) sorted: bool,
    /// Whether NaN and infinities are written.
    pub(super) not_finite: bool,
}

impl Style {
    /// No white space, and nothing else that need not be.
    pub(super) fn compact() -> Self {
        Self { item: ",".to_owned(), key: ":".to_owned(), indent: None, ascii: false, sorted: false, not_finite: true }
    }

    /// Writes a value that stands `level` levels deep.
    pub(super) fn write(&self, value: &Json, level: usize, out: &mut String) -> Result<(), CodecError> {
        match value {
            Json::Null => out.push_str("null"),
            Json::Bool(true) => out.push_str("true"),
            Json::Bool(false) => out.push_str("false"),
            Json::Number(number) if self.not_finite || number.is_finite() => out.push_str(number.as_str()),
            Json::Number(number) => return Err(CodecError::parameter(NAME, format!("{number} is not allowed by allow_nan"))),
            Json::String(text) => self.string(text, out),
            Json::Array(items) => self.list(('[', ']'), items.iter(), level, out, |item, level, out| self.write(item, level, out))?,
            Json::Object(object) => self.list(('{', '}'), self.members(object).into_iter(), level, out, |(key, value), level, out| {
                self.string(key, out);
                out.push_str(&self.key);
                self.write(value, level, out)
            })?,
        }
        Ok(())
    }

    fn members<'a>(&self, object: &'a JsonObject) -> Vec<(&'a str, &'a Json)> {
        let mut members: Vec<_> = object.iter().collect();
        if self.sorted {
            // By code points, as Python compares strings.
            members.sort_by_key(|(key, _)| *key);
        }
        members
    }

    fn list<T>(
        &self,
        (open, close): (char, char),
        items: impl ExactSizeIterator<Item = T>,
        level: usize,
        out: &mut String,
        write: impl Fn(T, usize, &mut String) -> Result<(), CodecError>,
    ) -> Result<(), CodecError> {
        let inner = level.saturating_add(1);
        let is_empty = items.len() == 0;
        out.push(open);
        for (index, item) in items.enumerate() {
            if index > 0 {
                out.push_str(&self.item);
            }
            self.break_line(inner, out);
            write(item, inner, out)?;
        }
        if !is_empty {
            self.break_line(level, out);
        }
        out.push(close);
        Ok(())
    }

    fn break_line(&self, level: usize, out: &mut String) {
        if let Some(indent) = &self.indent {
            out.push('\n');
            out.extend(std::iter::repeat_n(indent.as_str(), level));
        }
    }

    fn string(&self, text: &str, out: &mut String) {
        out.push('"');
        for character in text.chars() {
            match character {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                '\u{8}' => out.push_str("\\b"),
                '\u{c}' => out.push_str("\\f"),
                escaped if escaped < ' ' || self.ascii && !matches!(escaped, ' '..='~') => {
                    for unit in escaped.encode_utf16(&mut [0; 2]) {
                        out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
                other => out.push(other),
            }
        }
        out.push('"');
    }
}
