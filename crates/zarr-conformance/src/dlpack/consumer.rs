//! The laws of consumers.

use zarr_buffer_dlpack::abi::{DLDataType, DLDevice, FLAG_IS_COPIED, FLAG_READ_ONLY, VERSION, code};
use zarr_meta::DataType;

use super::foreign::{Foreign, Recipe};
use super::{ConsumerSubject, Seen, TYPES, pattern, places};
use crate::suite::{Broken, Case, Trial, ensure, ensure_same};

type ConsumerCase = Case<dyn ConsumerSubject>;

/// All cases for consumers.
pub fn cases() -> Vec<ConsumerCase> {
    vec![
        case("contents", "a tensor in C order is read as it is", contents),
        case("strides", "elements are read where the strides say: transposed, apart, backwards, one for many", strides),
        case("null-strides", "a tensor without strides is in C order", null_strides),
        case("byte-offset", "the first element is behind the byte offset", byte_offset),
        case("scalar", "a tensor without axes has one element", scalar),
        case("zero-size", "a tensor without elements has no data, and is taken", zero_size),
        case("data-types", "data types are those of code and bits", data_types),
        case("read-only", "a read-only tensor is known as such, and refused to who writes", read_only),
        case("copied", "a copy is known as such", copied),
        case("newer-minor", "a newer minor version is taken", newer_minor),
        case("refuses-version", "another major version is refused, and given back", refuses_version),
        case("refuses-types", "vectors and codes that are not known are refused, and given back", refuses_types),
        case("refuses-devices", "devices that are not known are refused, and given back", refuses_devices),
        case("refuses-shapes", "negative lengths are refused, and given back", refuses_shapes),
        case("gives-back", "the deleter is called once when the consumer is done with a tensor", gives_back),
        case("any-thread", "a tensor is given back also when the consumer is done with it on another thread", any_thread),
        case("null-deleter", "a tensor without a deleter is taken, and nothing is called", null_deleter),
        case("legacy", "legacy tensors are taken like versioned ones", legacy),
    ]
}

fn case(id: &str, says: &'static str, check: fn(&dyn ConsumerSubject) -> Result<(), Broken>) -> ConsumerCase {
    Case::new(format!("dlpack-consumer/{id}"), says, move |subject: &(dyn ConsumerSubject + 'static), _: &Trial| check(subject))
}

/// Numbers of 32 bits.
fn numbers(count: usize) -> Vec<u8> {
    pattern(4 * count, false)
}

fn recipe(shape: &[i64]) -> Recipe {
    Recipe::new(shape, numbers(shape.iter().product::<i64>().max(1) as usize))
}

/// What a consumer sees of a tensor that it must take, and what then must be dropped last.
fn take(subject: &dyn ConsumerSubject, recipe: Recipe) -> Result<(Seen, Foreign), Broken> {
    let foreign = Foreign::new(recipe, subject)?;
    let seen = foreign.give(subject, false).map_err(Broken::Unsupported)?;
    Ok((seen, foreign))
}

fn ensure_seen(what: &str, seen: &Seen, shape: &[i64], elements: &[u8]) -> Result<(), Broken> {
    ensure!(seen.shape == shape, "{what}: seen as {:?}, of shape {shape:?}", seen.shape);
    ensure_same(what, &seen.elements, elements)
}

fn contents(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    for shape in [&[1][..], &[7], &[2, 3], &[3, 1, 4]] {
        let recipe = recipe(shape);
        let expected = recipe.bytes.clone();
        let (seen, _foreign) = take(subject, recipe)?;
        ensure_seen("a tensor in C order", &seen, shape, &expected)?;
        ensure!(seen.data_type == DataType::Int32, "the type is {}", seen.data_type);
    }
    Ok(())
}

fn strides(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    for (what, shape, strides, first) in [
        ("transposed", [3, 4], [1, 3], 0),
        ("apart", [2, 3], [8, 2], 0),
        ("backwards", [2, 3], [-3, -1], 5),
        ("one for many", [3, 2], [0, 1], 0),
    ] {
        let mut recipe = Recipe::new(&shape, numbers(16));
        (recipe.strides, recipe.data) = (Some(strides.to_vec()), 4 * first);
        let place = |place: i64| recipe.bytes[(place + first as i64) as usize * 4..][..4].to_vec();
        let expected: Vec<u8> = places(&shape, &strides).into_iter().flat_map(place).collect();
        let (seen, _foreign) = take(subject, recipe)?;
        ensure_seen(what, &seen, &shape, &expected)?;
    }
    Ok(())
}

fn null_strides(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    let mut recipe = recipe(&[2, 3]);
    recipe.strides = None;
    let expected = recipe.bytes.clone();
    let (seen, _foreign) = take(subject, recipe)?;
    ensure_seen("a tensor without strides", &seen, &[2, 3], &expected)
}

fn byte_offset(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    for (data, byte_offset) in [(0, 8), (4, 12)] {
        let mut recipe = Recipe::new(&[3], numbers(10));
        (recipe.data, recipe.byte_offset) = (data, byte_offset);
        let expected = recipe.bytes[data + byte_offset as usize..][..12].to_vec();
        let (seen, _foreign) = take(subject, recipe)?;
        ensure_seen("a tensor with an offset", &seen, &[3], &expected)?;
    }
    Ok(())
}

fn scalar(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    let (seen, _foreign) = take(subject, recipe(&[]))?;
    ensure_seen("a tensor without axes", &seen, &[], &numbers(1))
}

fn zero_size(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    for shape in [&[0][..], &[3, 0], &[0, 2, 5]] {
        for null_data in [true, false] {
            let recipe = Recipe { null_data, ..recipe(shape) };
            let (seen, _foreign) = take(subject, recipe)?;
            ensure_seen("a tensor without elements", &seen, shape, &[])?;
        }
    }
    Ok(())
}

fn data_types(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    for (data_type, code, bits) in TYPES {
        let bytes = pattern(2 * usize::from(bits) / 8, data_type == DataType::Bool);
        let mut recipe = Recipe::new(&[2], bytes.clone());
        recipe.dtype = DLDataType { code, bits, lanes: 1 };
        let (seen, _foreign) = take(subject, recipe)?;
        ensure!(seen.data_type == data_type, "{data_type} is seen as {}", seen.data_type);
        ensure_seen(&format!("two of {data_type}"), &seen, &[2], &bytes)?;
    }
    Ok(())
}

fn read_only(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    let flagged = || Recipe { flags: FLAG_READ_ONLY, ..recipe(&[3]) };
    ensure!(!take(subject, recipe(&[3]))?.0.read_only, "what may be written is seen as read-only");
    ensure!(take(subject, flagged())?.0.read_only, "what is read-only is seen as writable");
    let foreign = Foreign::new(flagged(), subject)?;
    ensure!(foreign.give(subject, true).is_err(), "a read-only tensor is taken to be written");
    ensure!(foreign.calls() == 1, "a read-only tensor is refused, and given back {} times", foreign.calls());
    let foreign = Foreign::new(recipe(&[3]), subject)?;
    ensure!(foreign.give(subject, true).is_ok(), "a tensor that may be written is refused to who writes");
    Ok(())
}

fn copied(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    ensure!(!take(subject, recipe(&[3]))?.0.copied, "what is no copy is seen as one");
    ensure!(take(subject, Recipe { flags: FLAG_IS_COPIED, ..recipe(&[3]) })?.0.copied, "what is a copy is not seen as one");
    Ok(())
}

fn newer_minor(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    let (seen, _foreign) = take(subject, Recipe { version: (VERSION.major, 99), ..recipe(&[3]) })?;
    ensure_seen("a tensor of a newer minor version", &seen, &[3], &numbers(3))
}

/// Fails unless the tensor is refused and given back.
fn ensure_refused(subject: &dyn ConsumerSubject, what: &str, recipe: Recipe) -> Result<(), Broken> {
    let foreign = Foreign::new(recipe, subject)?;
    let taken = foreign.give(subject, false);
    ensure!(taken.is_err(), "{what} is taken");
    ensure!(foreign.calls() == 1, "{what} is refused, and given back {} times", foreign.calls());
    Ok(())
}

fn refuses_version(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    for major in [0, VERSION.major + 1, u32::MAX] {
        ensure_refused(subject, &format!("version {major}.0"), Recipe { version: (major, 0), ..recipe(&[3]) })?;
    }
    Ok(())
}

fn refuses_types(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    for (code, bits, lanes) in [(code::INT, 32, 4), (200, 32, 1), (code::FLOAT, 24, 1), (code::OPAQUE_HANDLE, 64, 1), (code::INT, 32, 0)] {
        let what = format!("type code {code} of {bits} bits, {lanes} lanes");
        ensure_refused(subject, &what, Recipe { dtype: DLDataType { code, bits, lanes }, ..Recipe::new(&[2], numbers(16)) })?;
    }
    Ok(())
}

fn refuses_devices(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    for (device_type, device_id) in [(99, 0), (0, 0), (-1, 0), (2, -1)] {
        let what = format!("device type {device_type}, number {device_id}");
        ensure_refused(subject, &what, Recipe { device: Some(DLDevice { device_type, device_id }), ..recipe(&[3]) })?;
    }
    Ok(())
}

fn refuses_shapes(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    for shape in [&[-1][..], &[2, -3]] {
        let recipe = Recipe { shape: shape.to_vec(), ..recipe(&[2, 3][..shape.len()]) };
        ensure_refused(subject, &format!("shape {shape:?}"), recipe)?;
    }
    ensure_refused(subject, "-1 axes", Recipe { ndim: -1, ..recipe(&[3]) })
}

fn gives_back(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    let (seen, foreign) = take(subject, recipe(&[3]))?;
    drop(seen);
    ensure!(foreign.calls() == 1, "a tensor that is done with is given back {} times", foreign.calls());
    Ok(())
}

fn any_thread(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    let (seen, foreign) = take(subject, recipe(&[3]))?;
    let hold = seen.hold;
    let dropped = std::thread::scope(|scope| scope.spawn(move || drop(hold)).join());
    ensure!(dropped.is_ok(), "giving back on another thread panics");
    ensure!(foreign.calls() == 1, "a tensor that is done with on another thread is given back {} times", foreign.calls());
    Ok(())
}

fn null_deleter(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    let (seen, _foreign) = take(subject, Recipe { deleter: false, ..recipe(&[3]) })?;
    ensure_seen("a tensor without a deleter", &seen, &[3], &numbers(3))
}

fn legacy(subject: &dyn ConsumerSubject) -> Result<(), Broken> {
    for strides in [None, Some(vec![1, 2])] {
        let mut recipe = Recipe::new(&[2, 3], numbers(10));
        let order = strides.clone().unwrap_or(vec![3, 1]);
        (recipe.strides, recipe.byte_offset) = (strides, 16);
        let place = |place: i64| recipe.bytes[16 + place as usize * 4..][..4].to_vec();
        let expected: Vec<u8> = places(&[2, 3], &order).into_iter().flat_map(place).collect();
        let foreign = Foreign::new(recipe, subject)?;
        let seen = foreign.give_legacy(subject).map_err(Broken::Unsupported)?;
        ensure_seen("a legacy tensor", &seen, &[2, 3], &expected)?;
        ensure!(!seen.read_only && !seen.copied, "a legacy tensor has flags");
        drop(seen);
        ensure!(foreign.calls() == 1, "a legacy tensor is given back {} times", foreign.calls());
    }
    Ok(())
}
