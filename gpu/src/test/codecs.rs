//! Codecs on a device hold the laws of `zarr-conformance`, with the CPU's as the reference.

use std::sync::Arc;

use zarr_codec_api::{ArrayRepresentation, CodecProvider as _, Direction};
use zarr_conformance::codec::device::{DeviceCodecSubject as _, DeviceCodecUnderTest, cases};
use zarr_meta::{DataType, FillValue};

use super::data::{BIG, CRC, LITTLE, ZSTD, chains, codecs, data_types, reference, shuffle, stands_for_its_size, transpose};
use super::{Subject, Test, TestResult, outcome};

/// Every chain, for the data types that it takes. Those that the provider does not take as one segment are listed as ignored: the CPU does part of them.
pub(super) fn tests(subject: &Subject) -> Vec<Test> {
    let mut tests = Vec::new();
    for data_type in data_types() {
        let mut chains = chains(&data_type);
        if matches!(data_type, DataType::Float16 | DataType::Float32 | DataType::Float64) {
            let bitround = r#"{"name":"numcodecs.bitround","configuration":{"keepbits":5}}"#;
            chains.push(("bitround-zstd", format!("{bitround},{LITTLE},{ZSTD}")));
            let half = r#"{"name":"numcodecs.astype","configuration":{"encode_dtype":"<f2"}}"#;
            chains.push(("astype", format!("{half},{BIG},{}", shuffle(2))));
        }
        let float = match data_type {
            DataType::Float32 => "<f4",
            DataType::Float64 => "<f8",
            _ => "",
        };
        if !float.is_empty() {
            let fixed = format!(
                r#"{{"name":"numcodecs.fixedscaleoffset","configuration":{{"offset":3,"scale":10,"dtype":"{float}","astype":"<i4"}}}}"#
            );
            chains.push(("fixedscaleoffset-zstd", format!("{fixed},{LITTLE},{ZSTD}")));
            let cast = r#"{"name":"cast_value","configuration":{"data_type":"float32","rounding":"nearest-even","out_of_range":"clamp"}}"#;
            chains.push(("cast_value-zstd", format!("{cast},{LITTLE},{ZSTD}")));
            let offset = r#"{"name":"scale_offset","configuration":{"offset":2,"scale":4}}"#;
            chains.push(("scale_offset-zstd", format!("{offset},{LITTLE},{ZSTD}")));
            let turned = transpose("[2,0,1]");
            chains.push(("all", format!("{offset},{turned},{fixed},{BIG},{},{CRC},{ZSTD},{CRC}", shuffle(4))));
        }
        for (name, chain) in chains {
            of_chain(subject, &data_type, name, &chain, &mut tests);
        }
    }
    tests
}

fn of_chain(subject: &Subject, data_type: &DataType, name: &str, chain: &str, tests: &mut Vec<Test>) {
    let name = format!("codecs::{name}::{}", data_type.name());
    let shape = if subject.small { vec![6, 10, 11] } else { vec![12, 50, 101] };
    let under_test = || -> Result<DeviceCodecUnderTest, Box<dyn std::error::Error + Send + Sync>> {
        let decoded = ArrayRepresentation { data_type: data_type.clone(), shape, fill_value: FillValue::default_for(data_type) };
        let (device, provider) = (Arc::clone(&subject.device), Arc::new(subject.provider.clone()));
        Ok(DeviceCodecUnderTest::new(device, provider, &reference(), &codecs(&format!("[{chain}]"))?, decoded)?)
    };
    let under_test = match under_test() {
        Ok(under_test) => Arc::new(under_test),
        Err(error) => {
            // A mistake in the list above, or a chain that the CPU refuses.
            tests.push(Test::new(name, move || -> TestResult { Err(error) }));
            return;
        }
    };
    let stages = under_test.reference().stages();
    match subject.provider.bind(stages, Direction::Decode) {
        Ok(Some(bound)) if bound.consumed == stages.len() => {}
        _ => {
            tests.push(Test::ignored(format!("{name} (the CPU does part of it)")));
            return;
        }
    }
    // In a small run one type of each size stands for all.
    if subject.small && !stands_for_its_size(data_type) {
        return;
    }
    for case in cases() {
        let under_test = Arc::clone(&under_test);
        tests.push(Test::new(format!("{name}::{}", case.id()), move || {
            outcome(case.run(&*under_test, &zarr_conformance::Trial::default()))
        }));
    }
}
