use proptest::prelude::*;
use zarr_codec_api::Representation;
use zarr_meta::FillValue;

use super::*;
use crate::testing::{ArrayCodec, bytes_never_panic, bytes_of};

fn make(name: &str, configuration: &str, data_type: &DataType, shape: &[u64]) -> Result<ArrayCodec, CodecError> {
    ArrayCodec::with_fill(name, configuration, data_type, shape, FillValue::default_for(data_type))
}

const MODES: [&str; 7] = [
    r#"{"mode": "reversible"}"#,
    r#"{"mode": "fixed_rate", "rate": 6.3}"#,
    r#"{"mode": "fixed_rate", "rate": 0}"#,
    r#"{"mode": "fixed_precision", "precision": 12}"#,
    r#"{"mode": "fixed_accuracy", "tolerance": 0.01}"#,
    r#"{"mode": "expert", "minbits": 20, "maxbits": 200, "maxprec": 20, "minexp": -5}"#,
    r#"{"mode": "expert", "minbits": 0, "maxbits": 4096, "maxprec": 64, "minexp": -1075}"#,
];

#[test]
fn narrow_types_come_back() {
    for data_type in [DataType::Int8, DataType::UInt8, DataType::Int16, DataType::UInt16, DataType::Float16, DataType::BFloat16] {
        let codec = make(NAME, MODES[0], &data_type, &[16, 16]).unwrap();
        let bytes: Vec<u8> = (0..256 * data_type.fixed_size().unwrap()).map(|i| (i * 7 % 120) as u8).collect();
        assert_eq!(codec.decode(&codec.encode(&bytes).unwrap()).unwrap(), bytes, "{data_type}");
    }
}

#[test]
fn unsigned_numbers_have_a_bound() {
    let codec = make(NAME, MODES[0], &DataType::UInt32, &[2]).unwrap();
    let bytes = bytes_of(&[0u32, i32::MAX as u32], u32::to_ne_bytes);
    assert_eq!(codec.decode(&codec.encode(&bytes).unwrap()).unwrap(), bytes);
    assert!(codec.encode(&bytes_of(&[0, 1 << 31], u32::to_ne_bytes)).is_err());
    // Lossy coding may come out below zero.
    let negative = make(NAME, MODES[0], &DataType::Int32, &[2]).unwrap().encode(&bytes_of(&[-5, 3], i32::to_ne_bytes)).unwrap();
    assert_eq!(codec.decode(&negative).unwrap(), bytes_of(&[0u32, 3], u32::to_ne_bytes));
}

#[test]
fn the_smallest_numbers_are_coded_as_they_are() {
    let codec = make(NAME, r#"{"mode": "fixed_precision", "precision": 20}"#, &DataType::Float32, &[4]).unwrap();
    let numbers = [2f32.powi(-110), 2f32.powi(-111), 3.0 * 2f32.powi(-112), 0.0];
    let decoded = codec.decode(&codec.encode(&bytes_of(&numbers, f32::to_ne_bytes)).unwrap()).unwrap();
    for (number, bytes) in numbers.iter().zip(decoded.as_chunks().0) {
        assert!((f32::from_ne_bytes(*bytes) - number).abs() < 2f32.powi(-120));
    }
    let codec = make(NAME, MODES[0], &DataType::Float32, &[4]).unwrap();
    for numbers in [[1e-40, -0.0, 1e-45, 0.0], [-0.0; 4], [f32::NAN, f32::INFINITY, 1.0, -0.0]] {
        let bytes = bytes_of(&numbers, f32::to_ne_bytes);
        assert_eq!(codec.decode(&codec.encode(&bytes).unwrap()).unwrap(), bytes);
    }
}

#[test]
fn what_is_not_finite_needs_the_reversible_mode() {
    let codec = make(NAME, MODES[3], &DataType::Float64, &[1]).unwrap();
    assert!(codec.encode(&f64::NAN.to_ne_bytes()).is_err());
    assert!(codec.encode(&f64::INFINITY.to_ne_bytes()).is_err());
}

#[test]
fn shapes_of_no_and_too_many_dimensions() {
    let codec = make(NAME, MODES[0], &DataType::Float64, &[]).unwrap();
    assert_eq!(codec.decode(&codec.encode(&1.5f64.to_ne_bytes()).unwrap()).unwrap(), 1.5f64.to_ne_bytes());
    assert!(make(NAME, MODES[0], &DataType::Float64, &[1; 5]).is_err());
    let codec = make(NAME, MODES[0], &DataType::Float64, &[0, 3]).unwrap();
    assert_eq!(codec.encode(&[]).unwrap(), []);
    assert_eq!(codec.decode(&[]).unwrap(), []);
}

#[test]
fn configurations_that_do_not_fit_are_refused() {
    for configuration in [
        r#"{"mode": "reversible", "rate": 1}"#,
        r#"{"mode": "fixed_rate"}"#,
        r#"{"mode": "fixed_rate", "rate": -1}"#,
        r#"{"mode": "fixed_rate", "rate": 1e9}"#,
        r#"{"mode": "fixed_accuracy", "tolerance": -1}"#,
        r#"{"mode": "expert", "minbits": 9, "maxbits": 8, "maxprec": 1, "minexp": 0}"#,
        r#"{"mode": "expert", "minbits": 0, "maxbits": 8, "maxprec": 1, "minexp": 0}"#,
        r#"{"mode": "expert", "minbits": 0, "maxbits": 80, "maxprec": 0, "minexp": 0}"#,
        r#"{"mode": "lossless"}"#,
        "{}",
    ] {
        assert!(make(NAME, configuration, &DataType::Float32, &[4]).is_err(), "{configuration}");
    }
    for data_type in [DataType::Bool, DataType::Complex64, DataType::Int4, DataType::String] {
        assert!(make(NAME, MODES[0], &data_type, &[4]).is_err());
    }
    assert!(make(ZFPY, r#"{"mode": 2, "rate": 8}"#, &DataType::UInt8, &[4]).is_err());
    assert!(make(ZFPY, r#"{"mode": 9}"#, &DataType::Int32, &[4]).is_err());
}

#[test]
fn damaged_streams_are_errors_or_other_numbers() {
    let numbers: Vec<f32> = (0..100).map(|i| (i as f32 / 9.0).sin()).collect();
    let bytes = bytes_of(&numbers, f32::to_ne_bytes);
    for configuration in MODES {
        let codec = make(NAME, configuration, &DataType::Float32, &[10, 10]).unwrap();
        let encoded = codec.encode(&bytes).unwrap();
        bytes_never_panic(&encoded, |damaged| drop(codec.decode(damaged)));
        assert!(encoded.is_empty() || codec.decode(&encoded[..encoded.len() - 8]).is_err(), "{configuration}");
        assert!(codec.decode(&[&encoded[..], &[0; 8]].concat()).is_err(), "{configuration}");
    }
    let codec = make(ZFPY, r#"{"mode": 4, "tolerance": 0.1}"#, &DataType::Float32, &[10, 10]).unwrap();
    let encoded = codec.encode(&bytes).unwrap();
    bytes_never_panic(&encoded, |damaged| drop(codec.decode(damaged)));
}

#[test]
fn headers_must_be_those_of_the_array() {
    let codec = |data_type: &DataType, shape: &[u64]| make(ZFPY, r#"{"mode": 4, "tolerance": 0.1}"#, data_type, shape).unwrap();
    let encoded = codec(&DataType::Float32, &[6, 2]).encode(&[0; 48]).unwrap();
    assert!(codec(&DataType::Float32, &[3, 4]).decode(&encoded).is_ok());
    assert!(codec(&DataType::Float32, &[3, 5]).decode(&encoded).is_err());
    assert!(codec(&DataType::Int32, &[6, 2]).decode(&encoded).is_err());
    assert!(codec(&DataType::Float32, &[6, 2]).decode(&[1; 64]).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn the_reversible_mode_keeps_all_bits(seed in any::<u64>(), shape in prop::collection::vec(1u64..7, 1..5), shift in 0u32..64) {
        let count = shape.iter().product::<u64>();
        let mut state = seed;
        let numbers: Vec<u64> = (0..count).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state as i64 >> shift) as u64
        }).collect();
        let bytes = bytes_of(&numbers, u64::to_ne_bytes);
        for data_type in [DataType::Int64, DataType::Float64] {
            let codec = make(NAME, MODES[0], &data_type, &shape).unwrap();
            let encoded = codec.encode(&bytes).unwrap();
            let Representation::Bytes(most) = codec.encoded().unwrap() else { panic!() };
            prop_assert!(encoded.len() as u64 <= most.upper(), "{} of {most:?}", encoded.len());
            prop_assert_eq!(codec.decode(&encoded).unwrap(), bytes.clone());
        }
        let shape32: Vec<u64> = shape.iter().copied().chain([2]).collect();
        if shape32.len() <= 4 {
            for data_type in [DataType::Int32, DataType::Float32] {
                let codec = make(NAME, MODES[0], &data_type, &shape32).unwrap();
                prop_assert_eq!(codec.decode(&codec.encode(&bytes).unwrap()).unwrap(), bytes.clone());
            }
        }
    }

    #[test]
    fn tolerances_hold(values in prop::collection::vec(-1e3f64..1e3, 36), tolerance in 1e-9f64..10.0) {
        let configuration = format!("{{\"mode\": \"fixed_accuracy\", \"tolerance\": {tolerance:?}}}");
        let codec = make(NAME, &configuration, &DataType::Float64, &[6, 6]).unwrap();
        let bytes = bytes_of(&values, f64::to_ne_bytes);
        let decoded = codec.decode(&codec.encode(&bytes).unwrap()).unwrap();
        for (value, bytes) in values.iter().zip(decoded.as_chunks().0) {
            prop_assert!((value - f64::from_ne_bytes(*bytes)).abs() <= tolerance);
        }
    }

    #[test]
    fn every_mode_stays_within_its_bound(values in prop::collection::vec(any::<i32>(), 30), shape in prop::sample::select(vec![vec![30u64], vec![5, 6], vec![3, 2, 5], vec![1, 3, 2, 5]])) {
        let bytes = bytes_of(&values, i32::to_ne_bytes);
        for configuration in MODES {
            for data_type in [DataType::Int32, DataType::Float32] {
                let codec = make(NAME, configuration, &data_type, &shape).unwrap();
                let Ok(encoded) = codec.encode(&bytes) else { continue };
                let Representation::Bytes(most) = codec.encoded().unwrap() else { panic!() };
                prop_assert!(encoded.len() as u64 <= most.upper());
                prop_assert!(codec.decode(&encoded).is_ok());
            }
        }
    }

    #[test]
    fn any_bytes_are_no_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for configuration in MODES {
            for data_type in [DataType::Int64, DataType::Float32, DataType::Float64, DataType::UInt8] {
                let _ = make(NAME, configuration, &data_type, &[3, 5, 2]).unwrap().decode(&bytes);
            }
        }
    }
}
