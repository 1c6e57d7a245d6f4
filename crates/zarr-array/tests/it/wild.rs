//! Stores on which implementations part ways: what we do with each, and why.
//!
//! `vectors/wild` holds small stores with the verdicts of zarr-python, tensorstore and zarrs, written by `vectors/wild.py`. `vectors/decisions.txt` says,
//! for each of them, whether we read it and who is right. Run with `ZARR_SHOW_VERDICTS=1` to print what we do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::options;
use zarr_array::{Array, Elements, Selection};
use zarr_meta::{DataType, Endianness, Json};
use zarr_store::MemoryStore;
use zarr_store_api::{AnyStore, StoreKey, WritableStore};

fn hex(text: &str) -> Vec<u8> {
    text.as_bytes().chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// Elements in the form of the vectors: little-endian C order; strings behind their length.
fn canonical(data_type: &DataType, elements: Elements) -> Vec<u8> {
    match elements {
        Elements::Variable(elements) => {
            elements.iter().flat_map(|element| [&(element.len() as u32).to_le_bytes()[..], element].concat()).collect()
        }
        Elements::Fixed(mut bytes) => {
            if Endianness::NATIVE == Endianness::Big
                && let Some(size) = data_type.fixed_size()
            {
                for element in bytes.chunks_mut(size) {
                    for run in data_type.swap_units() {
                        element[run.offset..run.offset + run.width * run.count].chunks_mut(run.width).for_each(<[u8]>::reverse);
                    }
                }
            }
            bytes
        }
    }
}

struct Vector {
    why: String,
    intended: Option<Vec<u8>>,
    store: MemoryStore,
    node: String,
}

fn load(path: &Path) -> Vector {
    let json = Json::parse(&std::fs::read(path).unwrap()).unwrap();
    let store = MemoryStore::new();
    for (key, value) in json.get("store").unwrap().as_object().unwrap().iter() {
        let part = |name| value.get(name).and_then(Json::as_str);
        let bytes = part("text").map(|text| text.as_bytes().to_vec()).or_else(|| part("hex").map(hex)).expect("text or hex");
        store.set(&StoreKey::new(key).unwrap(), bytes.into()).unwrap();
    }
    Vector {
        why: json.get("why").and_then(Json::as_str).unwrap_or_default().to_owned(),
        intended: json.get("intended").and_then(Json::as_str).map(hex),
        store,
        node: json.get("node").and_then(Json::as_str).unwrap_or_default().to_owned(),
    }
}

fn read(vector: &Vector) -> Result<Vec<u8>, String> {
    let store = AnyStore::blocking(vector.store.clone());
    let array = Array::open(store, &format!("/{}", vector.node), &options()).map_err(|error| chain(&error))?;
    let data = array.read(&Selection::all()).map_err(|error| chain(&error))?;
    Ok(canonical(array.data_type(), data.elements))
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        if !text.contains(&error.to_string()) {
            text = format!("{text}: {error}");
        }
        source = error.source();
    }
    text
}

fn vectors() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors")
}

/// `name: reads [VALUES] | refuses - reason`
fn decisions() -> BTreeMap<String, (String, String)> {
    let text = std::fs::read_to_string(vectors().join("decisions.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, rest) = line.split_once(": ").unwrap_or_else(|| panic!("{line}"));
            let (verdict, reason) = rest.split_once(" - ").unwrap_or_else(|| panic!("a reason for {line}"));
            (name.to_owned(), (verdict.to_owned(), reason.to_owned()))
        })
        .collect()
}

#[test]
fn every_vector_is_decided_and_read_so() {
    let decisions = decisions();
    let mut wrong = Vec::new();
    let mut names: Vec<PathBuf> = std::fs::read_dir(vectors().join("wild")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() > 200);
    for path in &names {
        let name = path.file_stem().unwrap().to_str().unwrap();
        let vector = load(path);
        let found = read(&vector);
        let shown = match (&found, &vector.intended) {
            (Ok(bytes), Some(intended)) if bytes == intended => "reads".to_owned(),
            (Ok(bytes), _) => format!("reads {}", bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
            (Err(_), _) => "refuses".to_owned(),
        };
        if std::env::var_os("ZARR_SHOW_VERDICTS").is_some() {
            println!("{name}: {shown} - {} | {}", vector.why, found.as_ref().err().map_or("", |error| error));
        }
        match decisions.get(name) {
            Some((verdict, _)) if *verdict == shown => {}
            Some((verdict, reason)) => {
                wrong.push(format!("{name}: decided that it {verdict} ({reason}), and it {shown}: {:?}", found.err()))
            }
            // What was meant is read, and what means nothing is refused: no decision needed.
            None if (shown == "reads" && vector.intended.is_some()) || (shown == "refuses" && vector.intended.is_none()) => {}
            None => wrong.push(format!("{name}: undecided, and it {shown}: {} | {:?}", vector.why, found.err())),
        }
    }
    for name in decisions.keys() {
        if !names.iter().any(|path| path.file_stem().is_some_and(|stem| stem.to_str() == Some(name))) {
            wrong.push(format!("{name}: decided, but there is no such vector"));
        }
    }
    assert!(wrong.is_empty(), "{} vectors:\n{}", wrong.len(), wrong.join("\n"));
}
