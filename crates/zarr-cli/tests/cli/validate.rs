//! `validate`: every problem is found and named, and a sound array is sound.

use crate::common::{copy_directory, ok, sample, temporary, zarr};
use serde_json::Value;

fn problems(path: &str) -> Vec<(String, String, Value, String)> {
    let run = zarr(&["validate", path, "--json"]);
    let json = run.json();
    let problems = json["problems"].as_array().unwrap();
    assert_eq!(run.code, i32::from(!problems.is_empty()));
    assert_eq!(json["valid"], problems.is_empty());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    problems
        .iter()
        .map(|problem| (text(&problem["kind"]), text(&problem["key"]), problem["chunk"].clone(), text(&problem["reason"])))
        .collect()
}

#[test]
fn the_samples_are_valid() {
    for name in ["north_america.zarr", "sea_surface.zarr", "sea_surface.zarr/surface_temperature"] {
        assert!(problems(&sample(name)).is_empty(), "{name}");
    }
    let text = ok(&["validate", &sample("north_america.zarr")]);
    assert!(text.text().ends_with("is valid: 10 chunks in 9 arrays, 1.42 MB read\n"), "{}", text.text());
}

#[test]
fn every_problem_is_listed() {
    let (_directory, at) = temporary();
    let root = at("n.zarr");
    copy_directory(&sample("north_america.zarr"), &root);
    // A byte in the middle of the third inner chunk of the second shard.
    let shard = at("n.zarr/air_temperature/c/1/0/0");
    let mut bytes = std::fs::read(&shard).unwrap();
    let index = bytes.len() - 4 - 5 * 16;
    let entry = |number: usize| u64::from_le_bytes(bytes[index + number * 16..][..8].try_into().unwrap()) as usize;
    let at_byte = entry(2) + 4;
    bytes[at_byte..at_byte + 8].fill(0xFF);
    std::fs::write(&shard, &bytes).unwrap();
    // A chunk that is no frame, one outside the grid, a stray file, a node whose metadata is broken, one without a parent, metadata that differs from its copy.
    std::fs::write(at("n.zarr/time/c/0"), "this is no frame").unwrap();
    std::fs::create_dir_all(at("n.zarr/longitude/c")).unwrap();
    std::fs::copy(at("n.zarr/longitude/c/0"), at("n.zarr/longitude/c/7")).unwrap();
    std::fs::write(at("n.zarr/longitude/notes.txt"), "hello").unwrap();
    std::fs::write(at("n.zarr/README"), "hello").unwrap();
    let text = std::fs::read_to_string(at("n.zarr/height/zarr.json")).unwrap();
    std::fs::write(at("n.zarr/height/zarr.json"), text.replace("\"float64\"", "\"float65\"")).unwrap();
    copy_directory(&at("n.zarr/latitude"), &at("n.zarr/lost/latitude"));
    let text = std::fs::read_to_string(at("n.zarr/time_bnds/zarr.json")).unwrap();
    std::fs::write(at("n.zarr/time_bnds/zarr.json"), text.replace("\"attributes\": {", "\"attributes\": {\"new\": 1,")).unwrap();

    let found = problems(&root);
    let has = |kind: &str, key: &str, chunk: Value, reason: &str| {
        assert!(
            found.iter().any(|(k, at, c, why)| k == kind && at == key && *c == chunk && why.contains(reason)),
            "no {kind} at {key} {chunk} with {reason:?} in {found:#?}"
        );
    };
    has("undecodable chunk", "air_temperature/c/1/0/0", serde_json::json!([7, 0, 0]), "codec zstd");
    has("undecodable chunk", "time/c/0", serde_json::json!([0]), "codec zstd");
    has("chunk outside the grid", "longitude/c/7", serde_json::json!([7]), "the array has a grid of 1 chunks");
    has("unexpected key", "longitude/notes.txt", Value::Null, "neither metadata nor a chunk");
    has("unexpected key", "README", Value::Null, "belongs to no array");
    has("metadata", "height/zarr.json", Value::Null, "unknown data type \"float65\"");
    has("metadata", "/lost", Value::Null, "there is no group");
    has("consolidated metadata", "zarr.json", Value::Null, "/time_bnds differs from what is stored");
    has("consolidated metadata", "zarr.json", Value::Null, "/lost/latitude is stored, and not named");
    assert_eq!(found.len(), 9, "{found:#?}");

    let text = zarr(&["validate", &root]);
    assert_eq!(text.code, 1);
    assert!(text.text().contains("undecodable chunk  air_temperature/c/1/0/0 chunk [7, 0, 0]\n    codec zstd"), "{}", text.text());
    assert!(text.text().contains("9 problems in "));
}

#[test]
fn shards_and_plain_chunks() {
    let (_directory, at) = temporary();
    let source = sample("north_america.zarr/air_temperature");
    // An index that does not match its checksum spoils the whole shard, and is told once.
    copy_directory(&source, &at("index"));
    let shard = at("index/c/0/0/0");
    let mut bytes = std::fs::read(&shard).unwrap();
    let last = bytes.len() - 30;
    bytes[last] ^= 1;
    std::fs::write(&shard, &bytes).unwrap();
    let found = problems(&at("index"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert_eq!((found[0].1.as_str(), &found[0].2), ("c/0/0/0", &serde_json::json!([0, 0, 0])));
    // Chunks without a compressor are as long as they must be, at the edge of the array too.
    ok(&["copy", &source, &at("plain"), "--shards", "none", "--chunks", "100,37,49", "--codec", "none"]);
    assert!(problems(&at("plain")).is_empty());
    let chunk = std::fs::read(at("plain/c/2/0/0")).unwrap();
    std::fs::write(at("plain/c/2/0/0"), &chunk[..chunk.len() - 4]).unwrap();
    let found = problems(&at("plain"));
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].3.contains("expected 725200 bytes, found 725196"), "{found:#?}");
}

#[test]
fn version_2_and_archives() {
    let (_directory, at) = temporary();
    copy_directory(&sample("sea_surface.zarr"), &at("s"));
    std::fs::write(at("s/surface_temperature/9.0.0"), "").unwrap();
    std::fs::write(at("s/surface_temperature/4.0.1"), vec![0; 100]).unwrap();
    std::fs::remove_dir_all(at("s/longitude")).unwrap();
    let found = problems(&at("s"));
    let kinds: Vec<(&str, &str)> = found.iter().map(|(kind, key, ..)| (kind.as_str(), key.as_str())).collect();
    assert_eq!(
        kinds,
        [
            ("chunk outside the grid", "surface_temperature/9.0.0"),
            ("consolidated metadata", ".zmetadata"),
            ("undecodable chunk", "surface_temperature/4.0.1")
        ]
    );
    ok(&["copy", &sample("sea_surface.zarr"), &at("s.zip")]);
    assert!(problems(&at("s.zip")).is_empty());
    // Shards are read in parts, of which the checksums in the archive say nothing.
    ok(&["copy", &sample("north_america.zarr/air_temperature"), &at("a.zip"), "--codec", "none"]);
    assert!(problems(&at("a.zip")).is_empty());
    let mut bytes = std::fs::read(at("a.zip")).unwrap();
    let inside = bytes.len() / 3;
    bytes[inside] ^= 1;
    std::fs::write(at("a.zip"), bytes).unwrap();
    let found = problems(&at("a.zip"));
    assert_eq!(found.len(), 1, "{found:#?}");
    // Which chunk lies there is a matter of which thread was first.
    assert!(found[0].0 == "unreadable chunk" && found[0].1.starts_with("c/"), "{found:#?}");
    assert!(found[0].3.contains("the CRC-32 of the entry is wrong"), "{found:#?}");
}
