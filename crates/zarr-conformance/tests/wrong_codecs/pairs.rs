//! Pairs of a reference and another implementation, which is honest or wrong in one way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zarr_buffer_api::Device;
use zarr_codec_api::{ArrayRepresentation, ByteLen, CodecProvider, HostProvider, Representation, SimpleCodec};
use zarr_conformance::Suite;
use zarr_conformance::codec::pair::{Divergence, PairUnderTest, Side};
use zarr_conformance::toy::OpaqueDevice;
use zarr_meta::{DataType, Extension, FillValue};

use crate::Wrong;
use crate::arrays::Floats;
use crate::framed::{Fault, Framed};

fn framed(name: &str, make: impl Fn() -> Framed + Send + Sync + 'static) -> Arc<dyn CodecProvider> {
    Arc::new(HostProvider::new(name).with("framed", move |_, _| Ok(SimpleCodec::bytes_to_bytes(make()))))
}

fn pair(reference: Side, other: Side) -> PairUnderTest {
    PairUnderTest::new(reference, other, vec![Extension::new("framed")], Representation::Bytes(ByteLen::Exact(100))).with_many(50)
}

/// A reference that is right, and one that has a fault of [`Framed`].
fn with_fault(fault: Fault) -> PairUnderTest {
    let reference = Side::on_host(framed("reference", || Framed::new(Fault::None)));
    pair(reference, Side::on_host(framed("other", move || Framed::new(fault))))
}

/// The other one encodes with padding, and so to another size.
fn padded() -> PairUnderTest {
    let reference = Side::on_host(framed("reference", || Framed::new(Fault::None)));
    pair(reference, Side::on_host(framed("other", || Framed::padded(Fault::None))))
}

/// Both pad every other chunk; one begins with the first.
fn padded_at_times() -> PairUnderTest {
    let reference = Side::on_host(framed("reference", || Framed::new(Fault::NotDeterministic)));
    pair(reference, Side::on_host(framed("other", || Framed::padded(Fault::NotDeterministic))))
}

fn floats(fault: Floats) -> Suite {
    let provider = |name: &str, fault| {
        Side::on_host(Arc::new(HostProvider::new(name).with("floats", move |_, _| Ok(SimpleCodec::array_to_bytes(fault)))))
    };
    let fill_value = FillValue::default_for(&DataType::Float32);
    let decoded = Representation::Array(ArrayRepresentation { data_type: DataType::Float32, shape: vec![5, 6], fill_value });
    PairUnderTest::new(provider("reference", Floats::Honest), provider("other", fault), vec![Extension::new("floats")], decoded).into()
}

/// Its own work is never done: what it was to decode is left to somebody else, who does it well.
fn falls_back() -> Suite {
    let work = AtomicU64::new(0);
    let reference = Side::on_host(framed("reference", || Framed::new(Fault::None)));
    let other = Side::on_host(framed("other", || Framed::new(Fault::None))).counting(move || work.load(Ordering::Relaxed));
    pair(reference, other).into()
}

/// Said to be on a device, and on the host.
fn not_on_the_device() -> Suite {
    let reference = Side::on_host(framed("reference", || Framed::new(Fault::None)));
    pair(reference, Side::on_device(framed("other", || Framed::new(Fault::None)), OpaqueDevice::new(3))).into()
}

/// A device beside the host, counted.
fn on_a_device() -> Suite {
    let device = OpaqueDevice::new(4);
    let counted = Arc::clone(&device);
    let host = Side::on_host(Arc::new(zarr_codecs_cpu::provider()));
    let other = Side::on_device(Arc::new(device.provider()), device as Arc<dyn Device>);
    let other = other.counting(move || counted.counters().kernel_launches);
    let fill_value = FillValue::default_for(&DataType::Float32);
    let decoded = Representation::Array(ArrayRepresentation { data_type: DataType::Float32, shape: vec![5, 6], fill_value });
    let codecs = [r#"{"name":"bytes","configuration":{"endian":"little"}}"#, r#"{"name":"zstd","configuration":{"level":1}}"#];
    let codecs = codecs.map(|text| Extension::parse(&zarr_meta::Json::parse(text.as_bytes()).unwrap()).unwrap());
    PairUnderTest::new(host, other, codecs.into(), decoded).with_many(20).into()
}

/// Bytes behind the body, which one side takes.
fn trailing(accepted_by: &str) -> Divergence {
    let body = [&[0, 100, 0, 0, 0][..], &[7; 101]].concat();
    let covers = |bytes: &[u8]| bytes.len() > 105 || bytes.first() == Some(&1);
    Divergence::new("trailing", body, accepted_by, "bytes behind the body", "the head of the codec").wherever(covers)
}

/// Declared to part on what both refuse.
fn stale() -> Suite {
    with_fault(Fault::None).diverging(trailing("other")).into()
}

/// The side that accepts is not the one that was declared to.
fn reversed() -> Suite {
    with_fault(Fault::AcceptsTrailingBytes).diverging(trailing("reference")).into()
}

/// What is declared is true, and not all.
fn covers_too_little() -> Suite {
    let body = trailing("other").input().to_vec();
    let divergence = Divergence::new("trailing", body, "other", "one byte behind the body", "the head of the codec");
    with_fault(Fault::AcceptsTrailingBytes).diverging(divergence).into()
}

pub(crate) fn honest() -> Vec<Suite> {
    vec![
        with_fault(Fault::None).deterministic().into(),
        padded_at_times().into(),
        floats(Floats::Honest),
        on_a_device(),
        with_fault(Fault::AcceptsTrailingBytes).diverging(trailing("other")).into(),
    ]
}

pub(crate) fn wrong() -> Vec<Wrong> {
    let exchange = |fault| Wrong::alone(fault, "pair/exchange", move || floats(fault));
    vec![
        Wrong::alone("FallsBack", "pair/who", falls_back),
        Wrong::found("NotOnTheDevice", "pair/who", not_on_the_device),
        exchange(Floats::LosesNanPayloads),
        exchange(Floats::LosesTheSignOfZero),
        Wrong::alone("PadsOtherChunks", "pair/same-bytes", || padded_at_times().deterministic().into()),
        Wrong::alone("DeclaresLessThanTheOtherEncodesTo", "pair/fits", || padded().into()),
        Wrong::alone("Stale", "pair/divergences", stale),
        Wrong::found("Reversed", "pair/divergences", reversed),
        Wrong::found("Reversed", "pair/verdicts", reversed),
        Wrong::alone("CoversTooLittle", "pair/verdicts", covers_too_little),
        Wrong::alone(Fault::AcceptsTrailingBytes, "pair/verdicts", || with_fault(Fault::AcceptsTrailingBytes).into()),
        Wrong::alone(Fault::ReadsOnePast, "pair/verdicts", || with_fault(Fault::ReadsOnePast).into()),
    ]
}
