//! Builds a hierarchy in a temporary directory: a group, and in it a sharded array that is written, appended to and read back.
//!
//! `cargo run -p zarr --example write`

use std::error::Error;

use zarr::{Array, ArrayBuilder, DataType, Extension, FillValue, GroupBuilder, JsonObject, OpenOptions, Selection};

const ROWS: usize = 18;
const COLUMNS: usize = 36;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let url = directory.path().join("climate.zarr").display().to_string();
    let (store, path) = zarr::locate(&url, &OpenOptions::write())?;

    let title = JsonObject::new().with("title", "temperatures of a made-up planet");
    let mut root = GroupBuilder::new().attributes(title).create(store, &path, &zarr::options())?;

    // Chunks are one day, shards 30 of them: a file for each month, of which a day is read alone.
    let zstd = JsonObject::new().with("level", 9u64).with("checksum", true);
    let builder = ArrayBuilder::new([0, ROWS as u64, COLUMNS as u64], DataType::Float32)
        .chunks([1, ROWS as u64, COLUMNS as u64])
        .shards([30, ROWS as u64, COLUMNS as u64])
        .compressors([Extension::with_configuration("zstd", zstd)])
        .fill_value(FillValue::from_bytes(f32::NAN.to_ne_bytes(), &DataType::Float32)?)
        .dimension_names(["time", "latitude", "longitude"])
        .attributes(JsonObject::new().with("units", "degree_Celsius").with("long_name", "temperature near the ground"));
    // The group `surface` is made on the way.
    let mut array = root.create_array("surface/temperature", &builder)?;

    // A year that is known in advance, of which January is written, and a day behind its end.
    array.resize(&[365, ROWS as u64, COLUMNS as u64])?;
    let january: Vec<f32> = (0..31).flat_map(day).collect();
    array.write_elements(&Selection::parse("0:31", 3)?, &january)?;
    array.append_elements(0, &day(365))?;

    // Readers of the whole hierarchy ask for one document.
    root.consolidate()?;

    print_tree(&url)?;
    let array: Array = zarr::open_group(&url)?.array("surface/temperature")?;
    println!("units: {}", array.attributes().get("units").map(ToString::to_string).unwrap_or_default());
    let mut today = [0.0f32; ROWS * COLUMNS];
    for time in [0, 30, 31, 365] {
        array.read_elements_into(&Selection::axes([time.into()]), &mut today)?;
        println!("day {time}: {} at the first place, {} at the last", today[0], today[ROWS * COLUMNS - 1]);
        let expected = if time == 31 { vec![f32::NAN; ROWS * COLUMNS] } else { day(time) };
        assert!(today.iter().zip(&expected).all(|(found, expected)| found.to_bits() == expected.to_bits()));
    }
    let (bytes, shards) = array.stored_size()?;
    println!("{bytes} bytes in {shards} shards; {}", array.explain());
    Ok(())
}

/// A field of temperatures.
fn day(time: i64) -> Vec<f32> {
    let place = |at: usize| (at / COLUMNS, at % COLUMNS);
    (0..ROWS * COLUMNS).map(place).map(|(row, column)| (time % 30) as f32 / 10.0 + row as f32 - column as f32 / 4.0).collect()
}

fn print_tree(url: &str) -> Result<(), zarr::ArrayError> {
    for node in zarr::open_group(url)?.walk()? {
        let node = node?;
        println!("{}", node.path());
        if let Some(array) = node.into_array() {
            println!("  {} {:?} {:?}", array.data_type().name(), array.shape(), array.dimension_names().unwrap_or_default());
        }
    }
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}
