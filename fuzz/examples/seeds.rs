//! Makes the seeds in `fuzz/corpus` out of the example data, the vectors of `zarr-conformance`, and what our own encoders give:
//! `cargo xtask fuzz --seeds`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use zarr_array::{ArrayBuilder, Selection};
use zarr_codec_api::{ArrayRepresentation, Chain, Policy, Scratch, Source, VariableData};
use zarr_meta::{DataType, Extension, FillValue, Json};
use zarr_store::{FilesystemStore, MemoryStore, ZipStore, ZipWriteOptions};
use zarr_store_api::{AnyStore, StoreKey, WritableStore};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Larger seeds are left out: the fuzzer works on small ones.
const LARGEST: usize = 16 << 10;

struct Corpus {
    folder: PathBuf,
    count: BTreeMap<String, usize>,
}

impl Corpus {
    fn add(&mut self, target: &str, name: &str, parts: &[&[u8]]) -> Result<()> {
        let bytes = parts.concat();
        if bytes.len() <= LARGEST {
            *self.count.entry(target.to_owned()).or_default() += 1;
            let folder = self.folder.join(target);
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(name), bytes)?;
        }
        Ok(())
    }
}

fn main() -> Result<()> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut corpus = Corpus { folder: fuzz.join("corpus"), count: BTreeMap::new() };
    if corpus.folder.exists() {
        fs::remove_dir_all(&corpus.folder)?;
    }
    let data = fuzz.join("../examples/data");
    documents(&mut corpus, &data)?;
    stores(&mut corpus, &fuzz.join("../crates/zarr-conformance/vectors/arrays"))?;
    let field = field(&data)?;
    codecs(&mut corpus, &field)?;
    shards(&mut corpus, &field)?;
    archives(&mut corpus)?;
    selections(&mut corpus)?;
    for (target, count) in &corpus.count {
        println!("{target}: {count}");
    }
    Ok(())
}

/// The metadata of the example data.
fn documents(corpus: &mut Corpus, data: &Path) -> Result<()> {
    for hierarchy in ["north_america.zarr", "sea_surface.zarr"] {
        let root = data.join(hierarchy);
        let mut folders = vec![root.clone()];
        for entry in fs::read_dir(&root)? {
            folders.push(entry?.path());
        }
        for folder in folders.iter().filter(|folder| folder.is_dir()) {
            let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = |file: &str| fs::read(folder.join(file)).ok();
            if let Some(document) = text("zarr.json") {
                corpus.add("metadata_v3", &name, &[&document])?;
                corpus.add("json", &name, &[&document])?;
            }
            if let Some(document) = text(".zarray").or_else(|| text(".zmetadata")) {
                let attributes = text(".zattrs").unwrap_or_default();
                corpus.add("metadata_v2", &name, &[&document, b"\0", &attributes])?;
            }
        }
    }
    for (name, encoding) in [
        ("fanout", r#"{"name": "fanout", "configuration": {"max_children": 3}}"#),
        ("suffix", r#"{"name": "suffix", "configuration": {"suffix": ".x", "base_encoding": {"name": "v2"}}}"#),
        ("default-suffix", r#"{"name": "zarrs.default_suffix", "configuration": {"separator": ".", "suffix": ".x"}}"#),
    ] {
        let document = format!(
            r#"{{"zarr_format": 3, "node_type": "array", "shape": [9, 9], "data_type": "int8", "fill_value": 0, "codecs": [{{"name": "bytes"}}],
            "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [2, 3]}}}}, "chunk_key_encoding": {encoding}}}"#
        );
        corpus.add("metadata_v3", name, &[document.as_bytes()])?;
    }
    for (name, filter) in [("json2", "{\"id\": \"json2\"}"), ("msgpack2", "{\"id\": \"msgpack2\"}"), ("pickle", "{\"id\": \"pickle\"}")] {
        let document = format!(
            r#"{{"zarr_format": 2, "shape": [9], "chunks": [4], "dtype": "|O", "order": "F", "fill_value": [1, -70000, {{"a": 0.5}}, null, "x"],
            "compressor": null, "filters": [{filter}]}}"#
        );
        corpus.add("metadata_v2", name, &[document.as_bytes(), b"\0{}"])?;
    }
    let odd = br#"[NaN, -Infinity, 18446744073709551616, 1e400, -0.0, "\ud83d\ude00\u0000", {"a": 1, "b": 2, "a": 3}]"#;
    corpus.add("json", "odd", &[odd])
}

/// Families of vectors that are ordinary arrays: what is unusual makes better seeds.
const ORDINARY: [&str; 5] = ["codecs", "filters", "keys", "layouts", "types"];

/// Stores on which implementations part ways: metadata, and a chunk with its metadata.
fn stores(corpus: &mut Corpus, folder: &Path) -> Result<()> {
    for family in children(folder)? {
        let family_name = file_name(&family);
        if ORDINARY.contains(&family_name.as_str()) {
            continue;
        }
        for vector in children(&family)? {
            let name = format!("{family_name}-{}", file_name(&vector));
            store(corpus, &name, &vector.join("store"))?;
        }
    }
    Ok(())
}

/// The nodes of one store.
fn store(corpus: &mut Corpus, name: &str, folder: &Path) -> Result<()> {
    let mut files = Vec::new();
    for path in children(folder)? {
        match path.is_dir() {
            true => store(corpus, name, &path)?,
            false => files.push(path),
        }
    }
    for document in &files {
        let v2 = file_name(document) == ".zarray";
        if !v2 && file_name(document) != "zarr.json" {
            continue;
        }
        let value = fs::read(document)?;
        let attributes = fs::read(folder.join(".zattrs")).unwrap_or_default();
        match v2 {
            true => corpus.add("metadata_v2", name, &[&value, b"\0", &attributes])?,
            false => corpus.add("metadata_v3", name, &[&value])?,
        }
        if let Some(chunk) = first_chunk(folder)? {
            corpus.add("array", name, &[if v2 { b"2" } else { b"3" }, &value, b"\0", &fs::read(chunk)?])?;
        }
    }
    Ok(())
}

/// The first object at or below a node that is no document.
fn first_chunk(folder: &Path) -> Result<Option<PathBuf>> {
    for path in children(folder)? {
        if path.is_dir() {
            if let Some(found) = first_chunk(&path)? {
                return Ok(Some(found));
            }
        } else if !file_name(&path).starts_with('.') && file_name(&path) != "zarr.json" {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut out = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    out.sort();
    Ok(out)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Air temperatures in whole kelvins, as bytes of 32-bit integers: they compress well, as seeds should.
fn field(data: &Path) -> Result<Vec<u8>> {
    let store = AnyStore::blocking(FilesystemStore::new(data.join("north_america.zarr"))?);
    let array = zarr_array::Array::open(store, "/air_temperature", &zarr_fuzz::options())?;
    let values: Vec<f32> = array.read_elements(&Selection::parse("0:3", 3)?)?;
    Ok(values.iter().flat_map(|value| (*value as i32).to_le_bytes()).collect())
}

fn codecs(corpus: &mut Corpus, field: &[u8]) -> Result<()> {
    for (at, (chain, text)) in zarr_fuzz::chains().iter().zip(zarr_fuzz::chain_texts()).enumerate() {
        let chain = chain.as_ref().map_err(|error| format!("configuration {at}: {error}"))?;
        let name = chain.stages().last().map_or("none", |stage| stage.codec.name.as_str()).replace(['.', '/', ':'], "-");
        let name = format!("{at:02}-{name}");
        let first = u8::try_from(at)?;
        corpus.add("codec_chain", &name, &[&[first], text.as_bytes()])?;
        let words = VariableData::from_iter(["", "Zarr", "naïve", "\u{1f600}", "a", "bb", "ccc", "dddd", "eeee"]);
        let numbers = VariableData::from_iter((0..9).map(|count| vec![1u8; count * 4]));
        let values: Vec<u8> = match chain.representation().byte_len()? {
            Some(len) if chain.representation().data_type == DataType::Bool => (0..len).map(|at| u8::from(at % 3 == 0)).collect(),
            // Small whole numbers, so that no codec refuses them.
            Some(len) if chain.representation().data_type == DataType::Float64 => {
                (0..len / 8).flat_map(|at| (at as f64).to_le_bytes()).collect()
            }
            Some(len) if chain.representation().data_type == DataType::Int64 => (0..len as i64 / 8).flat_map(i64::to_le_bytes).collect(),
            Some(len) => field[..len].to_vec(),
            None => Vec::new(),
        };
        let json = VariableData::from_iter(["null", "-1.5e3", "\"a\\u00e9\"", "[1,[],\"|O\"]", "{\"b\":NaN,\"a\":{}}", "true"]);
        let packed: [&[u8]; 6] =
            [b"\xc0", b"\xcd\x01\x00", b"\xa3foo", b"\x92\x01\xdc\0\x01\x02", b"\x81\xa1a\xca\0\0\0\0", b"\xc7\x02\x05ab"];
        let packed = VariableData::from_iter(packed);
        let source = match (chain.representation().byte_len()?, name.split_once("numcodecs-").map_or("", |(_, id)| id)) {
            (Some(_), _) => Source::Bytes(&values),
            (None, "vlen-array") => Source::Variable(&numbers),
            (None, "json2") => Source::Variable(&json),
            (None, "msgpack2") => Source::Variable(&packed),
            (None, _) => Source::Variable(&words),
        };
        let mut encoded = Vec::new();
        chain.encode(source, &mut encoded, &mut Scratch::new())?;
        corpus.add("codec_decode", &name, &[&[first], &encoded])?;
        corpus.add("codec_round_trip", &name, &[&[first], &values])?;
    }
    for cname in ["blosclz", "lz4", "lz4hc", "snappy", "zlib", "zstd"] {
        for shuffle in ["noshuffle", "shuffle", "bitshuffle"] {
            for (level, blocksize) in [(0, 0), (1, 256), (9, 0)] {
                let json = format!(
                    r#"{{"name": "blosc", "configuration": {{"cname": "{cname}", "clevel": {level}, "shuffle": "{shuffle}", "typesize": 4, "blocksize": {blocksize}}}}}"#
                );
                let encoded = one(&json, field)?;
                corpus.add("codec_blosc", &format!("{cname}-{shuffle}-{level}-{blocksize}"), &[&encoded])?;
            }
        }
    }
    for level in [-5, 1, 19] {
        let json = |checksum: bool| format!(r#"{{"name": "zstd", "configuration": {{"level": {level}, "checksum": {checksum}}}}}"#);
        let (plain, checked) = (one(&json(false), field)?, one(&json(true), field)?);
        corpus.add("codec_zstd", &format!("{level}"), &[&plain])?;
        corpus.add("codec_zstd", &format!("{level}-checksum"), &[&checked])?;
        // A skippable frame before and behind.
        let skippable = b"\x52\x2a\x4d\x18\x03\x00\x00\x00abc";
        corpus.add("codec_zstd", &format!("{level}-skippable"), &[skippable, &plain, skippable])?;
    }
    // Chunks of 16 bytes that claim 4 GiB: a zstd frame (RFC 8878 3.1.1.1.4: a content size of 8 bytes), and a blosc header.
    let claim = b"\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00";
    corpus.add("codec_zstd", "claims-4-gib", &[claim])?;
    let claim = b"\x02\x01\x21\x04\xf0\xff\xff\xff\xf0\xff\xff\xff\x10\x00\x00\x00";
    corpus.add("codec_blosc", "claims-4-gib", &[claim])?;
    let halves = field[..CHUNK].split_at(CHUNK / 2);
    let half = |part: &[u8], json: &str| encode(&[32, 64], json, part);
    for (target, json) in [
        ("codec_zstd", r#"{"name": "zstd", "configuration": {"level": 3}}"#),
        ("codec_gzip", r#"{"name": "gzip", "configuration": {"level": 6}}"#),
    ] {
        corpus.add(target, "two-parts", &[&half(halves.0, json)?, &half(halves.1, json)?])?;
    }
    for level in [0, 1, 9] {
        let encoded = one(&format!(r#"{{"name": "gzip", "configuration": {{"level": {level}}}}}"#), field)?;
        corpus.add("codec_gzip", &format!("{level}"), &[&encoded])?;
        // RFC 1952 2.3.1: with FEXTRA, FNAME, FCOMMENT and FHCRC off, the header has 10 bytes.
        let (header, rest) = encoded.split_at(10);
        let mut named = header.to_vec();
        named[3] |= 8;
        corpus.add("codec_gzip", &format!("{level}-name"), &[&named, b"chunk\0", rest])?;
    }
    Ok(())
}

/// Bytes of a chunk of the targets with one codec.
const CHUNK: usize = 64 * 64 * 4;

fn one(json: &str, field: &[u8]) -> Result<Vec<u8>> {
    encode(&[64, 64], json, &field[..CHUNK])
}

fn encode(shape: &[u64], json: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let codecs = [r#"{"name": "bytes", "configuration": {"endian": "little"}}"#, json];
    let codecs = codecs.iter().map(|json| Ok(Extension::parse(&Json::parse(json.as_bytes())?)?)).collect::<Result<Vec<_>>>()?;
    let data_type = DataType::Int32;
    let fill_value = FillValue::default_for(&data_type);
    let representation = ArrayRepresentation { data_type, shape: shape.to_vec(), fill_value };
    let chain = Chain::bind(&codecs, representation, &zarr_fuzz::registry(), &Policy::Host)?;
    let mut encoded = Vec::new();
    chain.encode(Source::Bytes(bytes), &mut encoded, &mut Scratch::new())?;
    Ok(encoded)
}

/// Shards that are full, shards with holes, and entries that lie.
fn shards(corpus: &mut Corpus, field: &[u8]) -> Result<()> {
    for (at, json) in zarr_fuzz::shard_configurations().iter().enumerate() {
        let first = u8::try_from(at)?;
        let list = Json::parse(format!("[{json}]").as_bytes())?;
        let codecs: Vec<Extension> =
            list.as_array().unwrap_or_default().iter().map(|codec| Ok(Extension::parse(codec)?)).collect::<Result<_>>()?;
        let builder = ArrayBuilder::new([8, 8], DataType::Int16).chunks([8, 8]).codecs(codecs);
        for (name, selection) in [("full", Selection::all()), ("holes", Selection::ranges([3..6, 1..3]))] {
            let array = builder.create(AnyStore::blocking(MemoryStore::new()), "/", &zarr_fuzz::options())?;
            let count: u64 = array.selection_shape(&selection)?.iter().product();
            array.write(&selection, &field[..count as usize * 2])?;
            let value = array.read_encoded_chunk(&[0, 0])?.ok_or("nothing was written")?;
            corpus.add("shard_index", &format!("{at}-{name}"), &[&[first], &value])?;
        }
    }
    // Configurations 0 and 1: four entries of offset and size, no checksum.
    let lies = [("overflow", u64::MAX, 16), ("end", u64::MAX - 1, 1), ("huge", 0, 4 << 30), ("index", 64, 32), ("empty", 0, 0)];
    for (name, offset, size) in lies {
        let entry = [offset.to_le_bytes(), (size as u64).to_le_bytes()].concat();
        let absent = [0xff; 48];
        corpus.add("shard_index", &format!("0-{name}"), &[&[0], &[7; 32], &entry, &absent])?;
        corpus.add("shard_index", &format!("1-{name}"), &[&[1], &entry, &absent, &[7; 32]])?;
    }
    Ok(())
}

/// Archives, stored and deflated.
fn archives(corpus: &mut Corpus) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("zarr-fuzz-seeds-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    for level in [None, Some(6)] {
        let path = folder.join("archive.zip");
        let mut options = ZipWriteOptions::default();
        options.deflate_level = level;
        let archive = Arc::new(ZipStore::create_with(&path, options)?);
        for (key, value) in
            [("zarr.json", b"{\"zarr_format\": 3, \"node_type\": \"group\"}".to_vec()), ("a/c/0/0", vec![5; 300]), ("empty", Vec::new())]
        {
            archive.set(&StoreKey::new(key)?, value.into())?;
        }
        archive.close()?;
        corpus.add("zip_directory", if level.is_some() { "deflated" } else { "stored" }, &[&fs::read(&path)?])?;
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

fn selections(corpus: &mut Corpus) -> Result<()> {
    let texts = [
        "",
        "0",
        "-1",
        "1:5",
        "::-2, 3",
        "..., 0",
        "[1, 5, 3], :, 2:",
        "5:1:-1, ...",
        "9223372036854775807:",
        "-9223372036854775808::9223372036854775807",
    ];
    for (at, text) in texts.iter().enumerate() {
        corpus.add("selection", &format!("{at}"), &[&[4, 10, 20, 30, 40, at as u8 * 6], text.as_bytes()])?;
    }
    // Structured input has no text form: a counter, multiplied into bytes of every size.
    for seed in 1u64..=24 {
        let bytes: Vec<u8> =
            (1..=160u64).map(|at| (seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_mul(at * at + seed) >> 40) as u8).collect();
        corpus.add("plan", &format!("{seed}"), &[&bytes[..40 + 5 * seed as usize]])?;
    }
    Ok(())
}
