//! What errors say: the cause, in `Display`; and no word of it again in what `source()` returns.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

use zarr_array::{Array, ArrayBuilder, ArrayError, Options, Selection};
use zarr_buffer_api::{BufferError, BufferErrorKind, DeviceId, DeviceKind};
use zarr_buffer_dlpack::DlpackError;
use zarr_codec_api::{CodecError, CodecErrorKind, Registry};
use zarr_conformance::implementation::{Adapter, AdapterError, Trouble};
use zarr_conformance::vectors::{self, VectorError};
use zarr_meta::{ArrayMetadataV3, DataType, Extension, Json, JsonPath, MetadataError, NodePath};
use zarr_store::{FilesystemStore, MemoryStore, ZipStore};
use zarr_store_api::{
    AnyStore, ByteRange, ListableStore, ReadableStore, Store, StoreError, StoreErrorKind, StoreKey, StorePrefix, StoredValue,
};

const CAUSE: &str = "a wheel came off";
const ROOT: &str = "the road ended";

/// The error of another library, which keeps to the rule of Rust's guidelines: what it returns as its source it does not show.
#[derive(Debug)]
struct Foreign(&'static str, Option<Box<Foreign>>);

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl Error for Foreign {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.1.as_deref().map(|source| source as _)
    }
}

fn foreign() -> Foreign {
    Foreign(CAUSE, Some(Box::new(Foreign(ROOT, None))))
}

fn chain(error: &dyn Error) -> Vec<String> {
    let mut told = vec![error.to_string()];
    let mut next = error.source();
    while let Some(source) = next {
        told.push(source.to_string());
        next = source.source();
    }
    told
}

#[track_caller]
fn check(error: &dyn Error) {
    let told = chain(error);
    for (at, message) in told.iter().enumerate() {
        assert!(!message.trim().is_empty(), "{told:?}");
        for deeper in told.iter().skip(at + 1) {
            assert!(!message.contains(deeper.as_str()), "a message repeats a deeper one: {told:?}");
        }
    }
}

/// An error with [`foreign`] at its bottom shows the cause, and returns what that one has below it.
#[track_caller]
fn check_wrapper(error: &dyn Error) {
    check(error);
    assert!(error.to_string().contains(CAUSE), "no cause in: {error}");
    assert_eq!(chain(error)[1..], [ROOT], "{error}");
}

fn key(text: &str) -> StoreKey {
    StoreKey::new(text).unwrap()
}

fn buffer_errors() -> Vec<BufferError> {
    use BufferErrorKind as Kind;
    let kinds = [Kind::Parameter, Kind::NotHostVisible, Kind::NotReady, Kind::Borrowed, Kind::OutOfMemory, Kind::Unsupported, Kind::Device];
    let on = DeviceId::new(DeviceKind::Cuda, 1);
    kinds.into_iter().map(|kind| BufferError::new(kind, "no luck").on(on).with_source(foreign())).collect()
}

fn store_errors() -> Vec<StoreError> {
    let io = || io::Error::other(foreign());
    let mut errors = vec![
        StoreError::from_io(io(), "cannot read").with_key(&key("a/c/0")).with_range(ByteRange::Suffix(5)),
        StoreError::from_io(io(), "cannot write").with_key(&key("a/c/0")).with_stored(StoredValue::Old),
        StoreError::new(StoreErrorKind::Corrupt, "torn").with_source(foreign()),
    ];
    errors.extend(buffer_errors().into_iter().map(|error| StoreError::from_buffer(error, "cannot copy")));
    errors
}

fn codec_errors() -> Vec<CodecError> {
    let mut errors = vec![CodecError::new(CodecErrorKind::Format, "lz9", "the frame is damaged").at(7).with_source(foreign())];
    errors.extend(buffer_errors().into_iter().map(CodecError::from));
    errors
}

#[test]
fn errors_of_the_contracts_show_their_cause_and_return_what_is_below() {
    buffer_errors().iter().for_each(|error| check_wrapper(error));
    store_errors().iter().for_each(|error| check_wrapper(error));
    codec_errors().iter().for_each(|error| check_wrapper(error));
    for (error, cause) in [
        (buffer_errors()[0].source.as_deref(), "BufferError"),
        (store_errors()[2].get_ref(), "StoreError"),
        (codec_errors()[0].get_ref(), "CodecError"),
    ] {
        assert!(error.is_some_and(|error| error.is::<Foreign>()), "{cause}");
    }
}

#[test]
fn errors_of_arrays_do_as_the_errors_inside() {
    for source in codec_errors() {
        check_wrapper(&ArrayError::Chunk { key: key("a/c/0"), chunk: vec![0], source });
    }
    for source in codec_errors() {
        check_wrapper(&ArrayError::Codecs { path: "/a".to_owned(), source });
    }
    store_errors().into_iter().for_each(|error| check_wrapper(&ArrayError::from(error)));
    buffer_errors().into_iter().for_each(|error| check_wrapper(&ArrayError::from(error)));
    for source in metadata_errors() {
        let shown = source.to_string();
        let error = ArrayError::Metadata { key: "a/zarr.json".to_owned(), source };
        check(&error);
        assert!(error.to_string().contains(&shown));
    }
    let (path, store) = ("/a".to_owned(), "memory://".to_owned());
    check(&ArrayError::Selection("not there".to_owned()));
    check(&ArrayError::Parameter("not this".to_owned()));
    check(&ArrayError::NotFound { what: "array", path: path.clone(), store: store.clone() });
    check(&ArrayError::Exists { what: "an array", path, store });
}

fn metadata_errors() -> Vec<MetadataError> {
    let (at, text) = (JsonPath::root, || "x".to_owned());
    let mut errors = vec![
        MetadataError::Missing { at: at(), key: text() },
        MetadataError::Unexpected { at: at(), expected: text(), found: text() },
        MetadataError::Unknown { at: at(), what: "data type", name: text() },
        MetadataError::UnknownKey { at: at(), key: text() },
        MetadataError::Inconsistent { at: at(), problem: text() },
        MetadataError::Unsupported { at: at(), what: text() },
        MetadataError::Configuration { at: at(), problem: text() },
        Json::parse(b"{").unwrap_err(),
        NodePath::new("/a//b").unwrap_err(),
    ];
    errors.extend(
        ["{}", "[]", r#"{"zarr_format":3,"node_type":"array","shape":-1}"#]
            .map(|text| ArrayMetadataV3::parse(text.as_bytes()).unwrap_err()),
    );
    errors
}

#[test]
fn errors_of_metadata_and_of_tensors() {
    metadata_errors().iter().for_each(|error| check(error));
    for error in buffer_errors() {
        let error = DlpackError::from(error);
        check(&error);
        assert!(error.to_string().contains(CAUSE));
    }
    let device = DeviceId::new(DeviceKind::Cuda, 0);
    for error in [
        DlpackError::DataType { data_type: "r7".to_owned() },
        DlpackError::ElementType { code: 9, bits: 3, lanes: 1, reason: "unknown" },
        DlpackError::NeedsVersioned { what: "a bool" },
        DlpackError::Device { device_type: 99, device_id: 0, reason: "unknown" },
        DlpackError::Null { what: "data" },
        DlpackError::Version { major: 9, minor: 0 },
        DlpackError::ReadOnly,
        DlpackError::Stream { stream: 0, device, reason: "not allowed" },
        DlpackError::CopyRefused { device, wish: device },
        DlpackError::Transfer { device, device_type: 99, device_id: 0 },
    ] {
        check(&error);
    }
}

#[test]
fn errors_of_the_suite() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing");
    let broken = directory.path().join("broken.toml");
    std::fs::write(&broken, "= =").unwrap();
    let (version, of_zarr) = (Path::new("FORMAT"), directory.path().join("vectors"));
    std::fs::create_dir(&of_zarr).unwrap();
    std::fs::write(of_zarr.join(version), "0").unwrap();
    let path = || missing.clone();
    let vectors: [VectorError; 3] = [
        vectors::load(&missing).unwrap_err(),
        vectors::load(&of_zarr).unwrap_err(),
        VectorError::Inconsistent { id: "a".into(), problem: "b".into() },
    ];
    vectors.iter().for_each(|error| check(error));
    let syntax = || toml::from_str::<toml::Table>("= =").unwrap_err();
    check(&VectorError::Syntax { path: path(), error: syntax() });
    for error in [
        Adapter::load(&missing).unwrap_err(),
        Adapter::load(&broken).unwrap_err(),
        AdapterError::Idle { path: path(), pattern: "x".to_owned() },
        AdapterError::Variable { path: path(), variable: "X".to_owned() },
    ] {
        check(&error);
    }
    check(&Trouble::Refused("no".to_owned()));
    check(&Trouble::Broke("no".to_owned()));
}

#[cfg(feature = "runner")]
#[test]
fn errors_of_cuda_name_the_driver() {
    use zarr_buffer_cuda::CudaError;
    let driver = |code| CudaError::Driver { call: "cuMemAlloc", code, name: "CUDA_ERROR".to_owned(), message: "why".to_owned() };
    for error in
        [CudaError::NoDriver { library: "libcuda.so.1" }, CudaError::OldDriver { found: 11_080, least: 12_000 }, driver(2), driver(1)]
    {
        check(&error);
        let shown = error.to_string();
        let error = BufferError::from(error);
        check(&error);
        assert!(error.to_string().ends_with(&shown) && error.source.is_some_and(|source| source.is::<CudaError>()));
    }
}

/// What the libraries behind codecs say of damaged bytes.
#[test]
fn errors_of_damaged_chunks() {
    let mut told = 0;
    for codecs in [
        r#"["bytes", {"name": "zstd", "configuration": {"level": 1, "checksum": true}}]"#,
        r#"["bytes", {"name": "gzip", "configuration": {"level": 1}}]"#,
        r#"["bytes", {"name": "numcodecs.zlib", "configuration": {"level": 1}}]"#,
        r#"["bytes", {"name": "numcodecs.lz4", "configuration": {"acceleration": 1}}]"#,
        r#"["bytes", {"name": "numcodecs.bz2", "configuration": {"level": 1}}]"#,
        r#"["bytes", {"name": "numcodecs.lzma", "configuration": {"format": 1, "check": -1, "preset": null, "filters": null}}]"#,
        r#"["bytes", {"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 1, "blocksize": 0}}]"#,
        r#"["bytes", "crc32c"]"#,
        r#"[{"name": "numcodecs.pcodec", "configuration": {"level": 8}}]"#,
        r#"[{"name": "sharding_indexed", "configuration": {"chunk_shape": [100], "codecs": ["bytes", "crc32c"], "index_codecs": ["bytes", "crc32c"]}}]"#,
    ] {
        let pcodec = codecs.contains("pcodec");
        let data_type = if pcodec { DataType::UInt32 } else { DataType::UInt8 };
        let mut metadata = ArrayBuilder::new([400], data_type).chunks([400]).metadata().unwrap();
        let zarr_array::StoredMetadata::ArrayV3(array) = &mut metadata else { panic!("version 3") };
        let list = Json::parse(codecs.replace(r#""bytes""#, r#"{"name":"bytes","configuration":{"endian":"little"}}"#).as_bytes()).unwrap();
        array.codecs = list.as_array().unwrap().iter().map(|codec| Extension::parse(codec).unwrap()).collect();
        let options = Options::new(Registry::new().with(zarr_codecs_cpu::provider()));
        let store = AnyStore::blocking(MemoryStore::new());
        let array = Array::from_metadata(store, "/", metadata, &options).unwrap_or_else(|error| panic!("{codecs}: {error}"));
        let write = |array: &Array| match pcodec {
            true => array.write_elements(&Selection::all(), &(0..400u32).map(|i| i * i % 97).collect::<Vec<_>>()),
            false => array.write_elements(&Selection::all(), &(0..400u32).map(|i| (i * i % 97) as u8).collect::<Vec<_>>()),
        };
        write(&array).unwrap();
        let good = array.read_encoded_chunk(&[0]).unwrap().unwrap();
        for at in 0..good.len() {
            let mut damaged = good.to_vec();
            damaged[at] ^= 0x55;
            for bytes in [good[..at].to_vec(), damaged] {
                array.write_encoded_chunk(&[0], bytes).unwrap();
                if let Err(error) = array.read(&Selection::all()) {
                    check(&error);
                    told += 1;
                }
            }
        }
    }
    assert!(told > 1000, "{told}");
}

/// What the system says of files.
#[test]
fn errors_of_stores() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::create_dir_all(path("a/b")).unwrap();
    std::fs::write(path("file"), "x").unwrap();
    let store = FilesystemStore::new(directory.path()).unwrap();
    let writable = Store::as_writable(&store).unwrap();
    let errors = [
        store.get(&key("file"), ByteRange::Bounded { start: 5, end: 9 }).unwrap_err(),
        writable.set(&key("file/below"), "x".into()).unwrap_err(),
        writable.set(&key("a"), "x".into()).unwrap_err(),
        ZipStore::open(path("file")).unwrap_err(),
        ZipStore::open(path("missing.zip")).unwrap_err(),
        StoreKey::new("a//b").unwrap_err(),
    ];
    errors.iter().for_each(|error| check(error));
    let of_file = FilesystemStore::new(path("file"));
    if let Err(error) = of_file.and_then(|store| store.list(&StorePrefix::new("").unwrap())) {
        check(&error);
    }
}

/// An error type that is new needs a sample above.
#[test]
fn every_error_type_is_here() {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("..")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.extend(Some(path).filter(|path| !path.ends_with("tests") && !path.ends_with("target")));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.extend(error_types(&std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found.dedup();
    // The error under way through serde is not public, and is one of metadata.
    found.retain(|name| name != "Error");
    assert!(found.len() >= 9, "{found:?}");
    let here = include_str!("errors.rs");
    let missing: Vec<&String> = found.iter().filter(|name| !here.contains(&format!("{name}::"))).collect();
    assert!(missing.is_empty(), "no samples of {missing:?}");
}

/// Types that a source file makes errors.
fn error_types(source: &str) -> Vec<String> {
    let name = |text: &str| text.chars().take_while(|letter| letter.is_alphanumeric()).collect::<String>();
    let lines: Vec<&str> = source.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if let Some((_, of)) = line.split_once("Error for ").filter(|(before, _)| before.starts_with("impl")) {
            found.push(name(of));
        }
        if line.starts_with("#[derive(") && line.contains("Error") {
            let declared = lines[at..].iter().find_map(|line| line.strip_prefix("pub enum ").or_else(|| line.strip_prefix("pub struct ")));
            found.extend(declared.map(name));
        }
    }
    found
}
