//! The rules of `stream`: who waits for the data before the consumer uses them.

use zarr_buffer_dlpack::Synchronize;

use super::ProducerSubject;
use super::producer::ProducerCase;
use crate::suite::{Broken, Case, Trial, ensure};

const CPU: (i32, i32) = (1, 0);
const CUDA: (i32, i32) = (2, 0);
const ROCM: (i32, i32) = (10, 0);

pub(super) fn cases() -> Vec<ProducerCase> {
    vec![
        case("default", "without a stream, it is the legacy default stream of CUDA, or ROCm's default stream", |subject| {
            expect(subject, CUDA, None, Some(Synchronize::Stream(1)))?;
            expect(subject, ROCM, None, Some(Synchronize::Stream(0)))
        }),
        case("none", "for stream -1, nobody waits", |subject| {
            expect(subject, CUDA, Some(-1), Some(Synchronize::Nothing))?;
            expect(subject, ROCM, Some(-1), Some(Synchronize::Nothing))
        }),
        case("sentinels", "1 and 2 are CUDA's legacy and per-thread default streams, 0 is ROCm's", |subject| {
            expect(subject, CUDA, Some(1), Some(Synchronize::Stream(1)))?;
            expect(subject, CUDA, Some(2), Some(Synchronize::Stream(2)))?;
            expect(subject, ROCM, Some(0), Some(Synchronize::Stream(0)))
        }),
        case("handle", "any greater number is a stream", |subject| {
            expect(subject, CUDA, Some(0x7f00_1234_5678), Some(Synchronize::Stream(0x7f00_1234_5678)))?;
            expect(subject, ROCM, Some(3), Some(Synchronize::Stream(3)))
        }),
        case("ambiguous", "0 is refused on CUDA, 1 and 2 on ROCm", |subject| {
            expect(subject, CUDA, Some(0), None)?;
            expect(subject, ROCM, Some(1), None)?;
            expect(subject, ROCM, Some(2), None)
        }),
        case("negative", "negative numbers other than -1 are refused", |subject| {
            expect(subject, CUDA, Some(-2), None)?;
            expect(subject, ROCM, Some(i64::MIN), None)
        }),
        case("host", "the host has no streams: any is refused, and none is needed", |subject| {
            expect(subject, CPU, Some(5), None)?;
            let answer = ask(subject, CPU, None)?;
            ensure!(matches!(answer, Ok(Synchronize::Host | Synchronize::Nothing)), "on the host, without a stream: {answer:?}");
            Ok(())
        }),
    ]
}

fn case(id: &str, says: &'static str, check: fn(&dyn ProducerSubject) -> Result<(), Broken>) -> ProducerCase {
    Case::new(format!("{}{id}", super::STREAMS), says, move |subject: &(dyn ProducerSubject + 'static), _: &Trial| check(subject))
}

fn ask(subject: &dyn ProducerSubject, device: (i32, i32), stream: Option<i64>) -> Result<Result<Synchronize, String>, Broken> {
    subject.stream(device, stream).ok_or_else(|| Broken::Unsupported("the producer says nothing of streams".into()))
}

/// `None`: a refusal.
fn expect(subject: &dyn ProducerSubject, device: (i32, i32), stream: Option<i64>, expected: Option<Synchronize>) -> Result<(), Broken> {
    let answer = ask(subject, device, stream)?;
    ensure!(answer.clone().ok() == expected, "stream {stream:?} on device type {}: {answer:?}, expected {expected:?}", device.0);
    Ok(())
}
