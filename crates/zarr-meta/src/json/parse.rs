//! The parser: RFC 8259, plus the bare `NaN`, `Infinity` and `-Infinity` that Python writes.

use super::object::Builder;
use super::{Json, Number};
use crate::MetadataError;

/// How deep arrays and objects may be nested.
pub const MAX_DEPTH: usize = 128;

pub(super) fn parse(text: &[u8]) -> Result<Json, MetadataError> {
    let text_start = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let mut parser = Parser { text, at: text_start };
    parser.skip_space();
    let value = parser.value(0)?;
    parser.skip_space();
    match parser.peek() {
        None => Ok(value),
        Some(_) => Err(parser.error("text after the end of the document")),
    }
}

/// The length of the number literal that `text` starts with.
pub(super) fn number_length(text: &[u8]) -> Option<usize> {
    let digits = |from: usize| text.get(from..).unwrap_or_default().iter().take_while(|b| b.is_ascii_digit()).count();
    let mut at = usize::from(text.first() == Some(&b'-'));
    let whole = digits(at);
    if whole == 0 || (whole > 1 && text.get(at) == Some(&b'0')) {
        return None;
    }
    at += whole;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        at += 1 + fraction;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        if exponent == 0 {
            return None;
        }
        at += 1 + sign + exponent;
    }
    Some(at)
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn rest(&self) -> &'a [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, problem: impl Into<String>) -> MetadataError {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let line_start = before.iter().rposition(|&b| b == b'\n').map_or(0, |newline| newline + 1);
        MetadataError::Syntax {
            offset: before.len(),
            line: 1 + before.iter().filter(|&&b| b == b'\n').count(),
            column: 1 + before.len() - line_start,
            problem: problem.into(),
        }
    }

    fn skip_space(&mut self) {
        self.at += self.rest().iter().take_while(|b| b" \t\r\n".contains(b)).count();
    }

    fn take(&mut self, token: &[u8]) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn value(&mut self, depth: usize) -> Result<Json, MetadataError> {
        match self.peek() {
            None if depth == 0 => Err(self.error("the document is empty")),
            None => Err(self.error("the document ends where a value should be")),
            Some(b'<') => Err(self.error("expected a value, found `<`: this is a page of HTML or XML")),
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => {
                for (token, value) in [
                    (&b"null"[..], Json::Null),
                    (b"true", Json::Bool(true)),
                    (b"false", Json::Bool(false)),
                    (b"NaN", Json::Number(Number::from_literal(Number::NAN))),
                    (b"Infinity", Json::Number(Number::from_literal(Number::INFINITY))),
                ] {
                    if self.take(token) {
                        return Ok(value);
                    }
                }
                Err(self.error("expected a value"))
            }
        }
    }

    fn number(&mut self) -> Result<Json, MetadataError> {
        if self.take(Number::NEG_INFINITY.as_bytes()) {
            return Ok(Json::Number(Number::from_literal(Number::NEG_INFINITY)));
        }
        let literal = number_length(self.rest())
            .and_then(|length| self.rest().get(..length))
            .and_then(|literal| std::str::from_utf8(literal).ok())
            .ok_or_else(|| self.error("malformed number"))?;
        self.at += literal.len();
        Ok(Json::Number(Number::from_literal(literal)))
    }

    fn enter(&mut self, depth: usize) -> Result<usize, MetadataError> {
        if depth >= MAX_DEPTH {
            return Err(self.error(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        self.at += 1;
        self.skip_space();
        Ok(depth + 1)
    }

    fn array(&mut self, depth: usize) -> Result<Json, MetadataError> {
        let depth = self.enter(depth)?;
        let mut elements = Vec::new();
        if self.take(b"]") {
            return Ok(Json::Array(elements));
        }
        loop {
            elements.push(self.value(depth)?);
            self.skip_space();
            if self.take(b"]") {
                return Ok(Json::Array(elements));
            }
            if !self.take(b",") {
                return Err(self.error("expected ',' or ']'"));
            }
            self.skip_space();
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, MetadataError> {
        let depth = self.enter(depth)?;
        let mut entries = Builder::default();
        if self.take(b"}") {
            return Ok(Json::Object(entries.finish()));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a key in double quotes"));
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(b":") {
                return Err(self.error("expected ':'"));
            }
            self.skip_space();
            let value = self.value(depth)?;
            entries.push(key, value);
            self.skip_space();
            if self.take(b"}") {
                return Ok(Json::Object(entries.finish()));
            }
            if !self.take(b",") {
                return Err(self.error("expected ',' or '}'"));
            }
            self.skip_space();
        }
    }

    /// A string; the parser stands on its opening quote.
    fn string(&mut self) -> Result<String, MetadataError> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let plain = self.rest().iter().take_while(|&&b| b != b'"' && b != b'\\' && b >= 0x20).count();
            let run = self.rest().get(..plain).unwrap_or_default();
            match std::str::from_utf8(run) {
                Ok(run) => out.push_str(run),
                Err(error) => {
                    self.at += error.valid_up_to();
                    return Err(self.error("a string that is not UTF-8"));
                }
            }
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    let escaped = self.escape()?;
                    out.push(escaped);
                }
                Some(_) => return Err(self.error("a control character inside a string")),
                None => return Err(self.error("the document ends inside a string")),
            }
        }
    }

    /// An escape sequence; the parser stands on its backslash.
    fn escape(&mut self) -> Result<char, MetadataError> {
        let plain = match self.text.get(self.at + 1) {
            Some(&quoted @ (b'"' | b'\\' | b'/')) => char::from(quoted),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            _ => return Err(self.error("unknown escape sequence")),
        };
        self.at += 2;
        Ok(plain)
    }

    fn unicode_escape(&mut self) -> Result<char, MetadataError> {
        let start = self.at;
        let first = self.code_unit()?;
        let decoded = match first {
            0xd800..=0xdbff => match self.code_unit() {
                Ok(second @ 0xdc00..=0xdfff) => char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)),
                _ => None,
            },
            unit => char::from_u32(unit),
        };
        decoded.ok_or_else(|| {
            self.at = start;
            self.error("a surrogate without its partner")
        })
    }

    /// One `\uXXXX`.
    fn code_unit(&mut self) -> Result<u32, MetadataError> {
        let digits = match self.rest() {
            [b'\\', b'u', digits @ ..] => digits.get(..4),
            _ => None,
        };
        let unit = digits
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .ok_or_else(|| self.error("malformed \\u escape"))?;
        self.at += 6;
        Ok(unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Result<Json, MetadataError> {
        parse(text.as_bytes())
    }

    #[test]
    fn literals_and_order_survive() {
        let source = r#"{"b":18446744073709551616,"a":[1.50,-0.0,1E5,123456789012345678901234567890.1]}"#;
        assert_eq!(text(source).map(|value| value.to_text()).as_deref(), Ok(source));
    }

    #[test]
    fn what_python_writes_outside_the_standard_is_read() {
        assert_eq!(text("[NaN, Infinity, -Infinity]").map(|value| value.to_text()).as_deref(), Ok(r#"["NaN","Infinity","-Infinity"]"#));
    }

    #[test]
    fn strings() {
        assert_eq!(text(r#""a\u00e9\ud83d\ude00\n\/ß""#), Ok(Json::from("aé😀\n/ß")));
        for bad in [r#""\ud800""#, r#""\ud800x""#, r#""\ud800\u0041""#, r#""\udc00""#, r#""\u12g4""#, "\"\t\"", r#""\x""#, "\"ab", "\"\\"] {
            assert!(matches!(text(bad), Err(MetadataError::Syntax { .. })), "{bad}");
        }
        assert!(parse(b"\"\xff\"").is_err());
    }

    #[test]
    fn errors_say_where() {
        assert_eq!(
            text("{\n  \"a\": 01}").map_err(|error| error.to_string()),
            Err("not valid JSON at line 2, column 8 (byte 9): malformed number".to_owned())
        );
        for (document, problem) in [
            ("\n<!DOCTYPE html><html>", "line 2, column 1 (byte 1): expected a value, found `<`: this is a page of HTML or XML"),
            ("", "line 1, column 1 (byte 0): the document is empty"),
            ("[", "line 1, column 2 (byte 1): the document ends where a value should be"),
        ] {
            assert_eq!(text(document).map_err(|error| error.to_string()), Err(format!("not valid JSON at {problem}")));
        }
    }

    #[test]
    fn strictness() {
        for bad in
            ["", " ", "[1,]", "{\"a\":1,}", "{a:1}", "[1 2]", "nul", "1 2", "{\"a\" 1}", "[", "{", "-", "'a'", "// c\n1", "-NaN", "+1"]
        {
            assert!(text(bad).is_err(), "{bad}");
        }
        assert_eq!(parse(b"\xef\xbb\xbf 1 "), Ok(Json::from(1)));
    }

    #[test]
    fn depth_is_limited() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(text(&nested(MAX_DEPTH)).is_ok());
        assert!(text(&nested(MAX_DEPTH + 1)).is_err());
        assert!(text(&"[".repeat(1_000_000)).is_err());
    }
}
