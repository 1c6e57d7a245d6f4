//! The writer: compact, or with two spaces of indentation.

use super::Json;

pub(super) fn compact(value: &Json) -> String {
    let mut out = String::new();
    write(value, None, &mut out);
    out
}

pub(super) fn pretty(value: &Json) -> String {
    let mut out = String::new();
    write(value, Some(0), &mut out);
    out
}

/// Writes `value`; `level` is the indentation of the line it stands on, `None` for compact text.
fn write(value: &Json, level: Option<usize>, out: &mut String) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(true) => out.push_str("true"),
        Json::Bool(false) => out.push_str("false"),
        Json::Number(number) if number.is_finite() => out.push_str(number.as_str()),
        Json::Number(number) => write_string(number.as_str(), out),
        Json::String(text) => write_string(text, out),
        Json::Array(elements) => {
            out.push('[');
            write_list(elements.iter(), level, out, write);
            out.push(']');
        }
        Json::Object(object) => {
            out.push('{');
            write_list(object.iter(), level, out, |(key, value), level, out| {
                write_string(key, out);
                out.push_str(if level.is_some() { ": " } else { ":" });
                write(value, level, out);
            });
            out.push('}');
        }
    }
}

fn write_list<T>(
    items: impl ExactSizeIterator<Item = T>,
    level: Option<usize>,
    out: &mut String,
    write_item: impl Fn(T, Option<usize>, &mut String),
) {
    if items.len() == 0 {
        return;
    }
    let inner = level.map(|level| level + 1);
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        break_line(inner, out);
        write_item(item, inner, out);
    }
    break_line(level, out);
}

fn break_line(level: Option<usize>, out: &mut String) {
    if let Some(level) = level {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", level));
    }
}

fn write_string(text: &str, out: &mut String) {
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
            control if control < ' ' => {
                out.push_str(&format!("\\u{:04x}", u32::from(control)));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indentation_is_that_of_python() {
        let value = Json::parse(br#"{"a":[1,{"b":[]}],"c":{},"d":"\u0001\"\\"}"#);
        assert_eq!(
            value.map(|value| pretty(&value)).as_deref(),
            Ok("{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    }\n  ],\n  \"c\": {},\n  \"d\": \"\\u0001\\\"\\\\\"\n}")
        );
    }
}
