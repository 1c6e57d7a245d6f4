//! The laws of producers.
#![expect(unsafe_code, reason = "producers give pointers")]

use zarr_buffer_dlpack::abi::{
    DLManagedTensor, DLManagedTensorVersioned, FLAG_IS_COPIED, FLAG_IS_SUBBYTE_TYPE_PADDED, FLAG_READ_ONLY, VERSION,
};
use zarr_meta::DataType;

use super::taken::Taken;
use super::{ProducerSubject, TYPES, Wanted, c_order, pattern, places, streams};
use crate::suite::{Broken, Case, Trial, ensure, ensure_same};

pub(super) type ProducerCase = Case<dyn ProducerSubject>;

/// All cases for producers.
pub fn cases() -> Vec<ProducerCase> {
    let mut cases = vec![
        case("shape", "a tensor has the axes that were asked for", shape),
        case("contents", "the elements are where data, offset and strides say, in the memory of the subject", contents),
        case("strided", "elements in another order than C's are handed out where they lie", strided),
        case(
            "strides",
            "there are strides, which consumers of version 1.2 and later rely on; in C order where nothing else was asked for",
            strides,
        ),
        case("scalar", "a tensor without axes has one element", scalar),
        case("zero-size", "a tensor without elements has its shape all the same", zero_size),
        case("data-types", "code, bits and lanes are those of the data type", data_types),
        case("alignment", "the first element is aligned to its size, wherever the offset is counted", alignment),
        case("device", "a tensor names the device that it is on; host memory is device 1, number 0", device),
        case("version", "the versioned structure states version 1 and a minor version that exists", version),
        case("read-only", "read-only is flagged if, and only if, it is so", read_only),
        case("copied", "a copy is flagged if, and only if, it is one", copied),
        case("other-flags", "no flag is set that says nothing, or of elements narrower than a byte where they are not", other_flags),
        case("gives-back", "the deleter gives back one tensor, and whatever it holds", gives_back),
        case("any-thread", "the deleter may be called on any thread", any_thread),
        case("apart", "a tensor stays as it is when another of the same bytes is given back", apart),
        case("legacy", "the legacy structure says the same as the versioned one", legacy),
    ];
    cases.extend(streams::cases());
    cases
}

fn case(id: &str, says: &'static str, check: fn(&dyn ProducerSubject) -> Result<(), Broken>) -> ProducerCase {
    Case::new(format!("dlpack-producer/{id}"), says, move |subject: &(dyn ProducerSubject + 'static), _: &Trial| check(subject))
}

fn wanted(shape: &[i64], data_type: DataType) -> Wanted {
    let item_size = data_type.fixed_size().unwrap_or(1);
    let count: i64 = shape.iter().product();
    let bytes = pattern(count as usize * item_size, data_type == DataType::Bool);
    Wanted { data_type, shape: shape.to_vec(), strides: None, bytes, read_only: false, copied: false }
}

fn take(subject: &dyn ProducerSubject, wanted: &Wanted) -> Result<Taken<DLManagedTensorVersioned>, Broken> {
    let pointer = subject.versioned(wanted).map_err(Broken::Unsupported)?;
    // SAFETY: the subject's promise.
    unsafe { Taken::new(pointer, subject.memory()) }
}

fn take_legacy(subject: &dyn ProducerSubject, wanted: &Wanted) -> Result<Taken<DLManagedTensor>, Broken> {
    let pointer = subject.legacy(wanted).map_err(Broken::Unsupported)?;
    // SAFETY: the subject's promise.
    unsafe { Taken::new(pointer, subject.memory()) }
}

fn shape(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    for shape in [&[5][..], &[2, 3], &[3, 1, 4], &[1, 1, 1, 1]] {
        let tensor = take(subject, &wanted(shape, DataType::Int16))?;
        ensure!(tensor.shape()? == shape, "asked for {shape:?}, given {:?}", tensor.shape()?);
    }
    Ok(())
}

fn contents(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    for shape in [&[1][..], &[5], &[2, 3], &[3, 1, 4]] {
        let wanted = wanted(shape, DataType::Int32);
        ensure_same(&format!("the elements of {shape:?}"), &take(subject, &wanted)?.elements(4)?, &wanted.bytes)?;
    }
    Ok(())
}

fn strided(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    // A transposed tensor, and every other element.
    for (shape, strides) in [([4, 3], [1, 4]), ([2, 3], [6, 2])] {
        let mut wanted = wanted(&[12], DataType::Int32);
        (wanted.shape, wanted.strides) = (shape.to_vec(), Some(strides.to_vec()));
        let expected: Vec<u8> =
            places(&shape, &strides).into_iter().flat_map(|place| wanted.bytes[place as usize * 4..][..4].to_vec()).collect();
        let tensor = take(subject, &wanted)?;
        ensure_same(&format!("the elements of {shape:?} with strides {strides:?}"), &tensor.elements(4)?, &expected)?;
    }
    Ok(())
}

fn strides(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    for shape in [&[5][..], &[2, 3], &[3, 2, 4]] {
        let tensor = take(subject, &wanted(shape, DataType::Float64))?;
        let strides = tensor.strides()?;
        ensure!(strides.as_ref() == Some(&c_order(shape)), "{shape:?} has the strides {strides:?}");
    }
    Ok(())
}

fn scalar(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    let wanted = wanted(&[], DataType::Float64);
    let tensor = take(subject, &wanted)?;
    ensure!(tensor.axes()? == 0, "{} axes", tensor.axes()?);
    ensure_same("the element", &tensor.elements(8)?, &wanted.bytes)
}

fn zero_size(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    for shape in [&[0][..], &[3, 0], &[0, 4, 2]] {
        let tensor = take(subject, &wanted(shape, DataType::UInt16))?;
        ensure!(tensor.shape()? == shape, "asked for {shape:?}, given {:?}", tensor.shape()?);
        ensure!(tensor.elements(2)?.is_empty(), "{shape:?} has elements");
    }
    Ok(())
}

fn data_types(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    for (data_type, code, bits) in TYPES {
        let found = take(subject, &wanted(&[2], data_type.clone()))?.data_type();
        let same = (found.code, found.bits, found.lanes) == (code, bits, 1);
        ensure!(same, "{data_type} is code {}, {} bits, {} lanes", found.code, found.bits, found.lanes);
    }
    Ok(())
}

fn alignment(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    for (data_type, _, bits) in TYPES {
        let tensor = take(subject, &wanted(&[3], data_type.clone()))?.tensor();
        let first = tensor.data.addr() as u64 + tensor.byte_offset;
        // Of a complex number, each half.
        let align = u64::from(bits / 8).min(8);
        ensure!(first.is_multiple_of(align), "the first {data_type} is at {first:#x}");
    }
    Ok(())
}

fn device(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    let device = take(subject, &wanted(&[3], DataType::Int8))?.device();
    let expected = subject.memory().device();
    ensure!(device == expected, "a tensor on {expected:?} names {device:?}");
    Ok(())
}

fn version(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    let version = take(subject, &wanted(&[3], DataType::Int8))?.version();
    let known = version.is_some_and(|version| version.major == VERSION.major && version.minor <= VERSION.minor);
    ensure!(known, "the structure states {version:?}");
    Ok(())
}

fn flag(subject: &dyn ProducerSubject, what: &str, flag: u64, set: fn(&mut Wanted)) -> Result<(), Broken> {
    let mut wanted = wanted(&[3], DataType::Int8);
    ensure!(take(subject, &wanted)?.flags() & flag == 0, "it is flagged as {what}, and is not");
    set(&mut wanted);
    ensure!(take(subject, &wanted)?.flags() & flag != 0, "it is not flagged as {what}");
    Ok(())
}

fn read_only(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    flag(subject, "read-only", FLAG_READ_ONLY, |wanted| wanted.read_only = true)
}

fn copied(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    flag(subject, "a copy", FLAG_IS_COPIED, |wanted| wanted.copied = true)
}

fn other_flags(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    let flags = take(subject, &wanted(&[3], DataType::Int8))?.flags();
    let others = flags & !(FLAG_READ_ONLY | FLAG_IS_COPIED);
    let padded = if others & FLAG_IS_SUBBYTE_TYPE_PADDED != 0 { ", padded elements among them" } else { "" };
    ensure!(others == 0, "the flags {others:#x} are set{padded}");
    Ok(())
}

/// Fails unless as many tensors are live as there were, and `more`.
fn ensure_live(subject: &dyn ProducerSubject, before: usize, more: usize, when: &str) -> Result<(), Broken> {
    let live = subject.live();
    ensure!(live == before + more, "{when}, {live} tensors are live, {} were expected", before + more);
    Ok(())
}

fn gives_back(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    let wanted = wanted(&[3], DataType::Int32);
    let before = subject.live();
    let (first, second) = (take(subject, &wanted)?, take(subject, &wanted)?);
    ensure!(first.has_deleter(), "there is no deleter");
    ensure_live(subject, before, 2, "once two are handed out")?;
    drop(first);
    ensure_live(subject, before, 1, "once one is given back")?;
    drop(second);
    ensure_live(subject, before, 0, "once both are given back")
}

fn any_thread(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    let before = subject.live();
    let tensors = (0..8).map(|_| take(subject, &wanted(&[3], DataType::Int32))).collect::<Result<Vec<_>, _>>()?;
    std::thread::scope(|scope| tensors.into_iter().for_each(|tensor| drop(scope.spawn(move || drop(tensor)))));
    ensure_live(subject, before, 0, "once all are given back on other threads")
}

fn apart(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    let wanted = wanted(&[100], DataType::Int32);
    let (first, second) = (take(subject, &wanted)?, take(subject, &wanted)?);
    drop(first);
    ensure!(second.shape()? == [100], "once another is given back, the shape is {:?}", second.shape()?);
    ensure_same("once another is given back, the elements", &second.elements(4)?, &wanted.bytes)
}

fn legacy(subject: &dyn ProducerSubject) -> Result<(), Broken> {
    for shape in [&[][..], &[5], &[2, 3], &[3, 0]] {
        let wanted = wanted(shape, DataType::Int32);
        let before = subject.live();
        let (old, new) = (take_legacy(subject, &wanted)?, take(subject, &wanted)?);
        ensure!(old.shape()? == new.shape()? && old.strides()? == new.strides()?, "shape or strides of {shape:?} differ");
        ensure!(old.data_type() == new.data_type() && old.device() == new.device(), "data type or device differ");
        ensure_same("the elements", &old.elements(4)?, &new.elements(4)?)?;
        drop((old, new));
        ensure_live(subject, before, 0, "once a legacy tensor and another are given back")?;
    }
    Ok(())
}
