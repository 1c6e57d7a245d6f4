//! Implementations that are wrong on purpose: the laws catch each of them, and no law is idle.
#![cfg(feature = "reference")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value, json};
use zarr_array::Options;
use zarr_codec_api::Registry;
use zarr_conformance::implementation::{Exchange, Implementation, ImplementationUnderTest, Ours, ReadJob, Trouble, WriteJob, ours};
use zarr_conformance::vectors::{self, Vector};
use zarr_conformance::{Outcome, Suite, Trial};
use zarr_store::MemoryStore;
use zarr_store_api::{AnyStore, StoreKey, WritableStore};

/// The objects of a store, by key.
type Store = BTreeMap<String, Vec<u8>>;

/// Reads a store that was changed, or reads what it likes.
type Read = fn(&Ours, &ReadJob<'_>, Store) -> Result<Vec<u8>, Trouble>;
type Write = fn(&Ours, &WriteJob<'_>) -> Result<(), Trouble>;

#[derive(Clone, Copy)]
struct Wrong {
    name: &'static str,
    read: Read,
    write: Write,
}

impl Implementation for Wrong {
    fn name(&self) -> String {
        self.name.into()
    }

    fn identity(&self) -> Result<String, Trouble> {
        Ok(self.name.into())
    }

    fn read(&self, job: &ReadJob<'_>) -> Result<Vec<u8>, Trouble> {
        (self.read)(&right(), job, load(job.store))
    }

    fn write(&self, job: &WriteJob<'_>) -> Result<(), Trouble> {
        (self.write)(&right(), job)
    }
}

fn right() -> Ours {
    Ours::new("right", Options::new(Registry::new().with(zarr_codecs_cpu::provider())))
}

/// One that reads rightly a store that `edit` spoils.
macro_rules! spoiled {
    ($name:literal, $edit:expr) => {
        Wrong {
            name: $name,
            read: |ours, job, mut store| {
                let edit: fn(&mut Store) = $edit;
                edit(&mut store);
                via(ours, job, store)
            },
            write: |ours, job| ours.write(job),
        }
    };
}

const WRONG: [Wrong; 18] = [
    spoiled!("ignores the fill value", |store| documents(store, |document| {
        let fill = &mut document["fill_value"];
        *fill = if fill.is_number() { json!(0) } else { fill.take() };
    })),
    spoiled!("takes F order for C order", |store| documents(store, |document| {
        if document["order"] == "F" {
            document["order"] = json!("C");
        }
    })),
    spoiled!("does not swap big-endian elements", |store| documents(store, |document| {
        replace(document, "endian", &json!("little"));
        if let Some(name) = document["dtype"].as_str().map(|name| name.replace('>', "<")) {
            document["dtype"] = json!(name);
        }
    })),
    spoiled!("pads chunks that are too short", |store| {
        let lengths: Vec<usize> = store.iter().filter(|(key, _)| is_chunk(key)).map(|(_, value)| value.len()).collect();
        if let Some(value) = store.iter_mut().find(|(key, _)| is_chunk(key)).map(|(_, value)| value) {
            // The chunk of the vectors that lack their last element.
            if lengths == [116] {
                value.resize(120, 0);
            }
        }
    }),
    spoiled!("cuts chunks that are too long", |store| {
        store.iter_mut().filter(|(key, value)| is_chunk(key) && value.len() == 124).for_each(|(_, value)| value.truncate(120));
    }),
    spoiled!("knows no index at the start", |store| documents(store, |document| replace(document, "index_location", &json!("end")))),
    spoiled!("ignores the checksum of shard indexes", |store| {
        // Four inner chunks: 64 bytes of entries and the checksum.
        if !matches!(store.get("zarr.json"), Some(text) if String::from_utf8_lossy(text).contains("\"index_location\": \"end\"")) {
            return;
        }
        if let Some(shard) = store.get_mut("c/0/0").filter(|shard| shard.len() == 132) {
            let sum = crc32c::crc32c(&shard[64..128]).to_le_bytes();
            shard[128..].copy_from_slice(&sum);
        }
    }),
    spoiled!("skips codecs that it does not know", |store| documents(store, |document| {
        if let Some(codecs) = document["codecs"].as_array_mut() {
            codecs.retain(|codec| codec["name"] != "red");
        }
    })),
    spoiled!("ignores what it must understand", |store| documents(store, |document| {
        if let Some(members) = document.as_object_mut() {
            members.remove("colour");
            members.remove("storage_transformers");
        }
    })),
    spoiled!("knows one separator", |store| documents(store, |document| replace(document, "separator", &json!("/")))),
    spoiled!("takes capital digits for the usual NaN", |store| documents(store, |document| {
        if document["fill_value"] == "0x7FC0ABCD" {
            document["fill_value"] = json!("NaN");
        }
    })),
    spoiled!("looks for arrays without axes elsewhere", |store| {
        let chunk = store.remove("c");
        store.extend(chunk.map(|chunk| ("c/0".to_owned(), chunk)));
    }),
    Wrong {
        name: "quiets NaN",
        read: |ours, job, store| {
            let text = store.get("zarr.json").map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default();
            let mut bytes = via(ours, job, store)?;
            if text.contains("\"float32\"") {
                let quiet = |word: &mut [u8]| {
                    if f32::from_le_bytes(word.try_into().unwrap_or_default()).is_nan() {
                        word[2] |= 0x40;
                    }
                };
                bytes.chunks_exact_mut(4).for_each(quiet);
            }
            Ok(bytes)
        },
        write: |ours, job| ours.write(job),
    },
    Wrong {
        name: "gives nothing where it should refuse",
        read: |ours, job, store| Ok(via(ours, job, store).unwrap_or_default()),
        write: |ours, job| ours.write(job),
    },
    Wrong {
        name: "reads all where a box is wanted",
        read: |ours, job, store| via(ours, &ReadJob { part: None, ..*job }, store),
        write: |ours, job| ours.write(job),
    },
    Wrong {
        name: "is one off in a box",
        read: |ours, job, store| {
            let shifted =
                job.part.map(|part| part.iter().map(|range| range.start.saturating_sub(1)..range.end.max(2) - 1).collect::<Vec<_>>());
            via(ours, &ReadJob { part: shifted.as_deref(), ..*job }, store)
        },
        write: |ours, job| ours.write(job),
    },
    Wrong {
        name: "loses the last element it writes",
        read: |ours, job, store| via(ours, job, store),
        write: |ours, job| {
            let mut data = job.data.to_vec();
            if let (zarr_conformance::vectors::Element::Size(size), len) = (job.element, data.len()) {
                data[len.saturating_sub(size)..].fill(0);
            }
            ours.write(&WriteJob { data: &data, ..*job })
        },
    },
    Wrong {
        name: "writes little-endian whatever it says",
        read: |ours, job, store| via(ours, job, store),
        write: |ours, job| {
            let said = job.metadata.replace("\"big\"", "\"little\"").replace("\">", "\"<");
            ours.write(&WriteJob { metadata: &said, ..*job })?;
            let name = if said.contains("\"zarr_format\": 3") { "zarr.json" } else { ".zarray" };
            fs::write(job.store.join(name), job.metadata).map_err(|error| Trouble::Broke(error.to_string()))
        },
    },
];

/// Objects of a folder.
fn load(folder: &Path) -> Store {
    fn walk(folder: &Path, before: &str, store: &mut Store) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let key = format!("{before}{}", entry.file_name().to_str().unwrap());
            match entry.path().is_dir() {
                true => walk(&entry.path(), &format!("{key}/"), store),
                false => drop(store.insert(key, fs::read(entry.path()).unwrap())),
            }
        }
    }
    let mut store = Store::new();
    walk(folder, "", &mut store);
    store
}

fn via(ours: &Ours, job: &ReadJob<'_>, store: Store) -> Result<Vec<u8>, Trouble> {
    let memory = MemoryStore::new();
    for (key, value) in store {
        memory.set(&StoreKey::new(key).unwrap(), value.into()).unwrap();
    }
    ours.read_store(AnyStore::blocking(memory), job)
}

fn is_chunk(key: &str) -> bool {
    !key.ends_with(".json") && !key.starts_with('.')
}

/// Changes every metadata document that plain JSON can hold.
fn documents(store: &mut Store, edit: impl Fn(&mut Value)) {
    for (_, text) in store.iter_mut().filter(|(key, _)| key.ends_with("zarr.json") || key.ends_with(".zarray")) {
        if let Ok(mut document) = serde_json::from_slice::<Value>(text) {
            let before = document.clone();
            edit(&mut document);
            if before != document {
                *text = document.to_string().into_bytes();
            }
        }
    }
}

/// Gives every member called `name`, at any depth, one value.
fn replace(value: &mut Value, name: &str, with: &Value) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                if key == name { *value = with.clone() } else { replace(value, name, with) }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| replace(value, name, with)),
        _ => {}
    }
}

fn all() -> Arc<[Vector]> {
    vectors::load(&vectors::directory()).unwrap().into()
}

fn suite(wrong: Wrong, vectors: &Arc<[Vector]>) -> Suite {
    ImplementationUnderTest::new(Arc::new(wrong), ours(), Arc::clone(vectors)).into()
}

/// The first case that fails.
fn caught(suite: &Suite) -> Option<(&str, &str)> {
    let trial = Trial::default();
    let case = suite.cases().iter().find(|case| matches!(case.run(&trial), Outcome::Fail(_)));
    case.map(|case| (case.law(), case.id()))
}

#[test]
fn every_wrong_one_is_caught() {
    let vectors = all();
    let missed: Vec<&str> = WRONG.iter().filter(|wrong| caught(&suite(**wrong, &vectors)).is_none()).map(|wrong| wrong.name).collect();
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

#[test]
fn without_a_law_one_of_them_passes() {
    let vectors = all();
    let only_caught_by = [
        ("read/must-accept", "looks for arrays without axes elsewhere"),
        ("read/must-reject", "ignores the checksum of shard indexes"),
        ("read/may", "takes capital digits for the usual NaN"),
        ("part", "is one off in a box"),
        ("write", "loses the last element it writes"),
    ];
    let mut laws: Vec<String> = suite(WRONG[0], &vectors).cases().iter().map(|case| case.law().to_owned()).collect();
    laws.sort_unstable();
    laws.dedup();
    assert_eq!(laws.len(), only_caught_by.len(), "{laws:?}");
    for (law, name) in only_caught_by {
        let wrong = WRONG.into_iter().find(|wrong| wrong.name == name).unwrap();
        let without = suite(wrong, &vectors).without_law(law);
        assert_eq!(caught(&without), None, "{name} without {law}");
    }
}

/// A reader that is wrong shows in an exchange, on the side of the writer.
#[test]
fn exchanges_catch_both_sides() {
    let vectors = all();
    let under_test = |implementation: Arc<dyn Implementation>| ImplementationUnderTest::new(implementation, ours(), Arc::clone(&vectors));
    let find = |name: &str| -> Arc<dyn Implementation> { Arc::new(WRONG.into_iter().find(|wrong| wrong.name == name).unwrap()) };
    let writer = Suite::from(Exchange::new(under_test(find("writes little-endian whatever it says")), [under_test(ours())]));
    assert!(caught(&writer).is_some());
    assert_eq!(caught(&writer.without_law("exchange")), None);
    let reader = Suite::from(Exchange::new(under_test(ours()), [under_test(find("does not swap big-endian elements"))]));
    assert!(caught(&reader).is_some());
}

#[test]
fn what_is_declared_is_unsupported_and_must_not_work() {
    struct Refuses;
    impl Implementation for Refuses {
        fn name(&self) -> String {
            "refuses".into()
        }
        fn identity(&self) -> Result<String, Trouble> {
            Ok("refuses".into())
        }
        fn read(&self, _: &ReadJob<'_>) -> Result<Vec<u8>, Trouble> {
            Err(Trouble::Refused("no".into()))
        }
        fn write(&self, _: &WriteJob<'_>) -> Result<(), Trouble> {
            Err(Trouble::Refused("no".into()))
        }
    }
    let vectors: Arc<[Vector]> = all().iter().filter(|vector| vector.id.starts_with("rectilinear/")).cloned().collect::<Vec<_>>().into();
    let outcomes = |subject: ImplementationUnderTest| Suite::from(subject).run(&Trial::default()).outcomes;
    let undeclared = outcomes(ImplementationUnderTest::new(Arc::new(Refuses), ours(), Arc::clone(&vectors)));
    for (id, outcome) in &undeclared {
        match id.as_str() {
            "read/rectilinear/short" => assert_eq!(*outcome, Outcome::Pass, "{id}"),
            _ => assert!(matches!(outcome, Outcome::Fail(message) if message.contains("not declared")), "{id}: {outcome:?}"),
        }
    }
    let declared = ImplementationUnderTest::new(Arc::new(Refuses), ours(), Arc::clone(&vectors)).without("");
    assert!(outcomes(declared).iter().all(|(_, outcome)| matches!(outcome, Outcome::Unsupported(_))));
    let works = ImplementationUnderTest::new(ours(), ours(), vectors).without("read/rectilinear/lists");
    let failed: Vec<String> =
        outcomes(works).into_iter().filter(|(_, outcome)| matches!(outcome, Outcome::Fail(_))).map(|(id, _)| id).collect();
    assert_eq!(failed, ["read/rectilinear/lists"]);
}
