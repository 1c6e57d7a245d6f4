//! `devices`, `bench`, and `read` on whatever there is.

use crate::common::{ok, sample, zarr};

/// The CUDA device of this machine, if it has one.
fn cuda() -> Option<String> {
    let json = ok(&["devices", "--json"]).json();
    Some(json["devices"].as_array().unwrap().get(1)?["name"].as_str().unwrap().to_owned())
}

#[test]
fn a_machine_without_a_driver_says_so_and_is_well() {
    let json = ok(&["devices", "--json"]).json();
    assert_eq!(json["devices"][0]["device"], "cpu");
    assert!(json["devices"][0]["codecs"].as_array().unwrap().contains(&"zstd".into()));
    let text = ok(&["devices"]);
    match cuda() {
        Some(name) => assert!(text.text().contains(&name), "{}", text.text()),
        None => assert_eq!(text.text().lines().filter(|line| line.starts_with("no CUDA device: ")).count(), 1, "{}", text.text()),
    }
}

#[test]
fn reading_uses_the_device_that_is_there_and_says_so() {
    let read = ok(&["read", &sample("north_america.zarr")]);
    let expected = cuda().map_or("9 arrays read on CPU: ".to_owned(), |name| format!("cuda:0 ({name}): "));
    assert!(read.text().contains(&expected), "{}", read.text());
    let json = ok(&["read", &sample("north_america.zarr/air_temperature"), "--json"]).json();
    assert_eq!(json["device"], if cuda().is_some() { "cuda:0" } else { "cpu" });
    assert_eq!((&json["min"], &json["max"]), (&257.31882.into(), &306.0733.into()));
    if cuda().is_none() {
        let read = zarr(&["read", &sample("north_america.zarr/air_temperature"), "--device", "cuda"]);
        assert_eq!(read.code, 1);
        assert!(read.stderr.starts_with("error: cannot use cuda:0"), "{}", read.stderr);
    }
}

#[test]
fn a_measurement_has_every_stage() {
    let array = sample("north_america.zarr/air_temperature");
    let json = ok(&["bench", &array, "--json", "--device", "cpu", "--runs", "2", "--select", "10:150"]).json();
    assert_eq!(json["decoded_bytes"], 140 * 37 * 49 * 4);
    for stage in ["fetch", "decode_and_scatter"] {
        assert_eq!(json["stages"][stage]["seconds"].as_array().unwrap().len(), 2, "{json}");
    }
    assert!(json["warm"]["decoded_gb_per_s"].as_f64().unwrap() > 0.0);
    let text = ok(&["bench", &array, "--runs", "1"]);
    assert!(["fetch", "warm read", "overlap"].iter().all(|word| text.text().contains(word)), "{}", text.text());
    assert_eq!(zarr(&["bench", &sample("north_america.zarr")]).code, 2);
}
