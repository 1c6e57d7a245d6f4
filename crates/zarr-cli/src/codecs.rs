//! Codecs on the command line, and codec chains in words.

use zarr::DataType;
use zarr::meta::{Endianness, Extension, Json, JsonObject};

/// How codecs may be written, for messages and help.
pub(crate) const FORMS: &str = "zstd:5, gzip:6, blosc:lz4:5:shuffle, lz4, zlib:6, bz2:9, lzma:6, crc32c, bitround:10, transpose, shuffle, none, \
                                or JSON as the metadata has it; several are joined with `+`";

/// Codecs as they were asked for. Some depend on the array that they are for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CodecSpec(Vec<Asked>);

#[derive(Debug, Clone, PartialEq)]
enum Asked {
    Extension(Extension),
    /// Blosc, whose element size is the array's.
    Blosc(JsonObject),
    /// Byte shuffle, likewise.
    Shuffle,
    /// All axes reversed.
    Reversal,
}

/// Reads codecs in short or as JSON.
pub(crate) fn parse(text: &str) -> Result<CodecSpec, String> {
    let text = text.trim();
    if text.starts_with(['{', '[', '"']) {
        let json = Json::parse(text.as_bytes()).map_err(|error| error.to_string())?;
        let list = match &json {
            Json::Array(list) => list.clone(),
            one => vec![one.clone()],
        };
        let parsed = list.iter().map(|codec| Extension::parse(codec).map(Asked::Extension).map_err(|error| error.to_string()));
        return parsed.collect::<Result<_, _>>().map(CodecSpec);
    }
    if text == "none" {
        return Ok(CodecSpec(Vec::new()));
    }
    text.split('+').map(|one| short(one.trim())).collect::<Result<_, _>>().map(CodecSpec)
}

fn short(text: &str) -> Result<Asked, String> {
    let mut parts = text.split(':');
    let name = parts.next().unwrap_or_default();
    let arguments: Vec<&str> = parts.collect();
    let number = |index: usize, default: i64| match arguments.get(index) {
        None | Some(&"") => Ok(default),
        Some(text) => text.parse::<i64>().map_err(|_| format!("`{text}` in `{name}` is not a number")),
    };
    let most = |count: usize| match arguments.get(count) {
        Some(extra) => Err(format!("`{name}` takes no `{extra}`")),
        None => Ok(()),
    };
    let with = |name: &str, configuration: JsonObject| Ok(Asked::Extension(Extension::with_configuration(name, configuration)));
    let leveled = |full: &str, key: &str, default: i64| {
        most(1)?;
        with(full, JsonObject::new().with(key, number(0, default)?))
    };
    match name {
        "zstd" => {
            most(2)?;
            let checksum = match arguments.get(1) {
                None => false,
                Some(&"checksum") => true,
                Some(other) => return Err(format!("`{other}` in `zstd`: only `checksum` stands there")),
            };
            with("zstd", JsonObject::new().with("level", number(0, 3)?).with("checksum", checksum))
        }
        "gzip" => leveled("gzip", "level", 5),
        "zlib" => leveled("numcodecs.zlib", "level", 5),
        "bz2" => leveled("numcodecs.bz2", "level", 9),
        "lz4" => leveled("numcodecs.lz4", "acceleration", 1),
        "lzma" => leveled("numcodecs.lzma", "preset", 6),
        "bitround" => {
            most(1)?;
            let keepbits = arguments.first().ok_or("`bitround` needs the number of bits to keep: bitround:10")?;
            let keepbits: u32 = keepbits.parse().map_err(|_| format!("`{keepbits}` in `bitround` is not a number"))?;
            with("bitround", JsonObject::new().with("keepbits", keepbits))
        }
        "blosc" => {
            most(3)?;
            let cname = arguments.first().copied().filter(|cname| !cname.is_empty()).unwrap_or("lz4");
            if !["blosclz", "lz4", "lz4hc", "zlib", "zstd", "snappy"].contains(&cname) {
                return Err(format!("`{cname}` is not a compressor in Blosc: blosclz, lz4, lz4hc, zlib, zstd, snappy"));
            }
            let shuffle = match arguments.get(2).copied().unwrap_or("shuffle") {
                name @ ("noshuffle" | "shuffle" | "bitshuffle") => name,
                other => return Err(format!("`{other}` is not a shuffle of Blosc: noshuffle, shuffle, bitshuffle")),
            };
            Ok(Asked::Blosc(JsonObject::new().with("cname", cname).with("clevel", number(1, 5)?).with("shuffle", shuffle)))
        }
        "crc32c" => most(0).map(|()| Asked::Extension(Extension::new("crc32c"))),
        "shuffle" => most(0).map(|()| Asked::Shuffle),
        "transpose" => most(0).map(|()| Asked::Reversal),
        other => Err(format!("no codec `{other}` here; write {FORMS}")),
    }
}

impl CodecSpec {
    /// The chain for an array: what was asked for, and the array->bytes codec if none was. `given` is the one to take then.
    pub(crate) fn chain(&self, data_type: &DataType, rank: usize, given: Option<&Extension>) -> Vec<Extension> {
        let item_size = data_type.fixed_size().unwrap_or(1);
        let asked = self.0.iter().map(|asked| match asked {
            Asked::Extension(extension) => extension.clone(),
            Asked::Blosc(configuration) => {
                let typesize = if (1..=255).contains(&item_size) { item_size } else { 1 };
                Extension::with_configuration("blosc", configuration.clone().with("typesize", typesize).with("blocksize", 0))
            }
            Asked::Shuffle => Extension::with_configuration("numcodecs.shuffle", JsonObject::new().with("elementsize", item_size)),
            Asked::Reversal => {
                Extension::with_configuration("transpose", JsonObject::new().with("order", (0..rank).rev().collect::<Json>()))
            }
        });
        let mut chain: Vec<Extension> = asked.collect();
        if !chain.iter().any(|codec| kind(codec) == Kind::ArrayToBytes) {
            let at = chain.iter().position(|codec| kind(codec) == Kind::BytesToBytes).unwrap_or(chain.len());
            chain.insert(at, given.cloned().unwrap_or_else(|| array_to_bytes(data_type)));
        }
        chain
    }
}

/// The usual array->bytes codec.
pub(crate) fn array_to_bytes(data_type: &DataType) -> Extension {
    match data_type {
        DataType::String => Extension::new("vlen-utf8"),
        DataType::Bytes => Extension::new("vlen-bytes"),
        other if other.is_byte_order_sensitive() => {
            Extension::with_configuration("bytes", JsonObject::new().with("endian", Endianness::Little.name()))
        }
        _ => Extension::new("bytes"),
    }
}

/// What a codec takes and gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    ArrayToArray,
    ArrayToBytes,
    BytesToBytes,
}

pub(crate) fn kind(codec: &Extension) -> Kind {
    // `numcodecs.x`, `zarrs.x`, `https://codec.zarrs.dev/../x`.
    let name = codec.name.rsplit('/').next().unwrap_or_default();
    let short = name.strip_prefix("numcodecs.").or_else(|| name.strip_prefix("zarrs.")).unwrap_or(name);
    match short {
        "categorize" if configured(codec, "dtype").is_some_and(|dtype| dtype.trim_start_matches('|').starts_with(['O', 'o'])) => {
            Kind::ArrayToBytes
        }
        "packbits" if name != short => Kind::ArrayToArray,
        "transpose" | "bitround" | "scale_offset" | "cast_value" | "reshape" | "squeeze" | "delta" | "fixedscaleoffset" | "quantize"
        | "astype" | "categorize" => Kind::ArrayToArray,
        "bytes" | "endian" | "packbits" | "vlen-utf8" | "vlen-bytes" | "vlen-array" | "vlen_v2" | "vlen" | "optional"
        | "sharding_indexed" | "pcodec" | "zfpy" | "zfp" | "zfp_codec" | "n5_default" | "json2" | "pickle" | "msgpack2" => {
            Kind::ArrayToBytes
        }
        _ => Kind::BytesToBytes,
    }
}

/// A chain in words, in the order of encoding: `bitround(10) → zstd(9)`. What goes without saying is left out.
pub(crate) fn in_words(chain: &[Extension]) -> String {
    let words: Vec<String> = chain.iter().filter(|codec| !goes_without_saying(codec, chain.len())).map(word).collect();
    words.join(" → ")
}

fn goes_without_saying(codec: &Extension, chain: usize) -> bool {
    chain > 1 && codec.name == "bytes" && endian(codec) != Some("big")
}

fn endian(codec: &Extension) -> Option<&str> {
    configured(codec, "endian")
}

fn configured<'a>(codec: &'a Extension, key: &str) -> Option<&'a str> {
    codec.configuration.as_ref()?.get(key)?.as_str()
}

fn word(codec: &Extension) -> String {
    let none = JsonObject::new();
    let configuration = codec.configuration.as_ref().unwrap_or(&none);
    let value = |key: &str| configuration.get(key).map(plain).unwrap_or_default();
    let name = codec.name.strip_prefix("numcodecs.").unwrap_or(&codec.name);
    let arguments = match name {
        "bytes" => match endian(codec) {
            Some("big") => vec!["big".to_owned()],
            _ => Vec::new(),
        },
        "zstd" => {
            let checksum = configuration.get("checksum").and_then(Json::as_bool) == Some(true);
            [value("level")].into_iter().chain(checksum.then(|| "checksum".to_owned())).collect()
        }
        "gzip" | "zlib" | "bz2" => vec![value("level")],
        "blosc" => vec![value("cname"), value("clevel"), value("shuffle")],
        "transpose" => vec![value("order")],
        "bitround" => vec![value("keepbits")],
        "sharding_indexed" => {
            let codecs = configuration.get("codecs").and_then(Json::as_array).unwrap_or_default();
            let inner: Vec<Extension> = codecs.iter().filter_map(|codec| Extension::parse(codec).ok()).collect();
            return format!("sharded({})", in_words(&inner));
        }
        "lz4" | "json2" | "msgpack2" => Vec::new(),
        _ => configuration.iter().map(|(key, value)| format!("{key}={}", plain(value))).collect(),
    };
    let arguments: Vec<String> = arguments.into_iter().filter(|argument| !argument.is_empty()).collect();
    if arguments.is_empty() { name.to_owned() } else { format!("{name}({})", arguments.join(", ")) }
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_text(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(text: &str) -> Vec<String> {
        let chain = parse(text).unwrap().chain(&DataType::Float32, 3, None);
        chain.iter().map(|codec| codec.to_json().to_text()).collect()
    }

    #[test]
    fn short_forms() {
        let bytes = r#"{"name":"bytes","configuration":{"endian":"little"}}"#;
        assert_eq!(chain("none"), [bytes]);
        assert_eq!(chain("zstd:5"), [bytes, r#"{"name":"zstd","configuration":{"level":5,"checksum":false}}"#]);
        assert_eq!(
            chain("blosc:zstd:9:bitshuffle"),
            [bytes, r#"{"name":"blosc","configuration":{"cname":"zstd","clevel":9,"shuffle":"bitshuffle","typesize":4,"blocksize":0}}"#]
        );
        assert_eq!(
            chain("bitround:10+transpose+shuffle+gzip"),
            [
                r#"{"name":"bitround","configuration":{"keepbits":10}}"#,
                r#"{"name":"transpose","configuration":{"order":[2,1,0]}}"#,
                bytes,
                r#"{"name":"numcodecs.shuffle","configuration":{"elementsize":4}}"#,
                r#"{"name":"gzip","configuration":{"level":5}}"#
            ]
        );
        let big = r#"[{"name":"bytes","configuration":{"endian":"big"}},{"name":"crc32c"}]"#;
        assert_eq!(chain(big), [r#"{"name":"bytes","configuration":{"endian":"big"}}"#, r#"{"name":"crc32c"}"#]);
    }

    #[test]
    fn kinds_by_any_of_their_names() {
        let objects = Extension::with_configuration("numcodecs.categorize", JsonObject::new().with("dtype", "|O"));
        assert_eq!(kind(&objects), Kind::ArrayToBytes);
        for (name, expected) in [
            ("numcodecs.categorize", Kind::ArrayToArray),
            ("numcodecs.packbits", Kind::ArrayToArray),
            ("zarrs.squeeze", Kind::ArrayToArray),
            ("https://codec.zarrs.dev/array_to_bytes/bitround", Kind::ArrayToArray),
            ("packbits", Kind::ArrayToBytes),
            ("https://codec.zarrs.dev/array_to_bytes/zfp", Kind::ArrayToBytes),
            ("zarrs.vlen_v2", Kind::ArrayToBytes),
            ("numcodecs.base64", Kind::BytesToBytes),
            ("https://codec.zarrs.dev/bytes_to_bytes/fletcher32", Kind::BytesToBytes),
        ] {
            assert_eq!(kind(&Extension::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn wrong_forms_say_what_is_right() {
        for (text, message) in [
            ("zst", "no codec `zst` here; write zstd:5"),
            ("zstd:x", "`x` in `zstd` is not a number"),
            ("gzip:5:6", "`gzip` takes no `6`"),
            ("blosc:lzo", "`lzo` is not a compressor in Blosc"),
            ("bitround", "`bitround` needs the number of bits"),
            ("{\"nam\":1}", "the required key \"name\" is missing"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn chains_in_words() {
        let words = |text: &str| in_words(&parse(text).unwrap().chain(&DataType::Float32, 3, None));
        assert_eq!(words("none"), "bytes");
        assert_eq!(words("zstd:9:checksum"), "zstd(9, checksum)");
        assert_eq!(words("transpose+blosc"), "transpose([2,1,0]) → blosc(lz4, 5, shuffle)");
        assert_eq!(words("shuffle+lz4"), "shuffle(elementsize=4) → lz4");
    }
}
