//! Numbers as people read and write them.

use std::time::Duration;

/// Bytes, in decimal units: `1.10 MB`.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 7] = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    if count < 1000 {
        return format!("{count} B");
    }
    if count == u64::MAX {
        return "18.4 EB or more".to_owned();
    }
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// At least so many bytes, as an option takes it: `129MiB`.
pub(crate) fn at_least(count: u64) -> String {
    format!("{}MiB", count.div_ceil(1 << 20))
}

/// Bytes each second.
pub(crate) fn rate(count: u64, time: Duration) -> String {
    if time.is_zero() || count == 0 {
        return "-".to_owned();
    }
    let gigabytes = count as f64 / time.as_secs_f64() / 1e9;
    if gigabytes >= 0.01 { format!("{} GB/s", three_digits(gigabytes)) } else { format!("{} MB/s", three_digits(gigabytes * 1e3)) }
}

fn three_digits(value: f64) -> String {
    let digits = match value {
        value if value < 9.995 => 2,
        value if value < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$}")
}

pub(crate) fn duration(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    match seconds {
        s if s < 1e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 1.0 => format!("{} ms", three_digits(s * 1e3)),
        s if s < 100.0 => format!("{} s", three_digits(s)),
        s => format!("{:.0} min {:02.0} s", (s / 60.0).floor(), s % 60.0),
    }
}

/// `240×37×49`; an array of no axes is a `scalar`.
pub(crate) fn shape(lengths: &[u64]) -> String {
    if lengths.is_empty() {
        return "scalar".to_owned();
    }
    lengths.iter().map(u64::to_string).collect::<Vec<_>>().join("×")
}

/// How many elements, or chunks, there are; a number too large for that is the largest.
pub(crate) fn product(lengths: &[u64]) -> u64 {
    lengths.iter().fold(1, |product, &length| product.saturating_mul(length))
}

/// How many times smaller the stored form is.
pub(crate) fn ratio(decoded: u64, stored: u64) -> Option<f64> {
    (stored > 0).then(|| decoded as f64 / stored as f64)
}

pub(crate) fn count(number: u64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// A float with at most `digits` significant digits.
pub(crate) fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return value.to_string();
    }
    let exponent = value.abs().log10().floor() as i32;
    if !(-4..=15).contains(&exponent) {
        return format!("{value:.*e}", digits.saturating_sub(1));
    }
    let decimals = usize::try_from(digits as i32 - 1 - exponent).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Reads `1GiB`, `512MB`, `64k`, `1000`.
pub(crate) fn parse_bytes(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| format!("`{text}` is not a number of bytes, such as 1GiB or 512MB"))?;
    let factor: u64 = match unit.trim().to_ascii_lowercase().trim_end_matches('b') {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        "g" => 1_000_000_000,
        "t" => 1_000_000_000_000,
        "ki" => 1 << 10,
        "mi" => 1 << 20,
        "gi" => 1 << 30,
        "ti" => 1 << 40,
        _ => return Err(format!("`{}` is not a unit of bytes: kB, MB, GB, TB, KiB, MiB, GiB, TiB", unit.trim())),
    };
    Ok((number * factor as f64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_three_digits() {
        for (count, text) in
            [(0, "0 B"), (999, "999 B"), (1000, "1.00 kB"), (999_499, "999 kB"), (999_999, "1.00 MB"), (1_740_480, "1.74 MB")]
        {
            assert_eq!(bytes(count), text);
        }
        assert_eq!(bytes(u64::MAX - 1), "18.4 EB");
        assert_eq!(bytes(u64::MAX), "18.4 EB or more");
    }

    #[test]
    fn sizes_are_read() {
        for (text, count) in [("1GiB", 1 << 30), ("512 MB", 512_000_000), ("64k", 64_000), ("1.5KiB", 1536), ("12", 12), ("7B", 7)] {
            assert_eq!(parse_bytes(text), Ok(count), "{text}");
        }
        assert!(parse_bytes("x").is_err() && parse_bytes("1 parsec").is_err());
    }

    #[test]
    fn floats_keep_what_matters() {
        for (value, text) in
            [(273.15, "273.15"), (0.000123456, "0.000123456"), (1e20, "1.00000e20"), (-1234567.8, "-1234568"), (0.5, "0.5")]
        {
            assert_eq!(significant(value, 6), text);
        }
    }

    #[test]
    fn times() {
        assert_eq!(duration(Duration::from_micros(250)), "250 µs");
        assert_eq!(duration(Duration::from_millis(12)), "12.0 ms");
        assert_eq!(duration(Duration::from_secs(125)), "2 min 05 s");
    }
}
