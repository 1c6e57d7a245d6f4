//! The law of wrappers: every method is forwarded as itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use zarr_buffer_api::{Buffer, BufferError, Device, DeviceId, HostDevice};
use zarr_store_api::{AnyStore, ByteRange, Bytes, StoreError};

use super::face::Face;
use super::recorder::{self, DIRECT, Recorder};
use super::{Broken, Outcome, Verdict, key, prefix};

/// A call of a method of a store, as [`check_forwarding`] reports it.
pub(super) type Calls = BTreeMap<&'static str, usize>;

/// Holds a wrapper to forwarding every method as it is, those with defaults included: `wrap` puts
/// it over a store that notes what it is asked. Says which methods do not arrive as themselves.
///
/// Wrappers that hide the writing half pass `writes: false`.
pub fn check_forwarding(wrap: impl Fn(AnyStore) -> AnyStore, writes: bool) -> Vec<Outcome> {
    let forms = [AnyStore::blocking(Recorder::default()), AnyStore::asynchronous(Recorder::default())];
    let mut outcomes = Vec::new();
    for (form, bare) in ["forward/blocking", "forward/async"].into_iter().zip(forms) {
        let verdict = match compare_calls(&Face(wrap(bare.clone())), writes) {
            Ok(()) => Verdict::Held,
            Err(Broken(how)) => Verdict::Broken(how),
        };
        outcomes.push(Outcome { id: form, verdict });
    }
    outcomes
}

fn compare_calls(face: &Face, writes: bool) -> Result<(), Broken> {
    require!(face.0.is_listable(), "listing is hidden");
    require!(face.0.is_writable() == writes, "writing is hidden, or is not");
    let key = key("k");
    // The recorder answers with what it was asked: the name of the method, and how often.
    let answers: [(&str, Result<Calls, StoreError>); 5] = [
        ("get", face.get(&key, ByteRange::All).map(recorder::decode)),
        ("get_ranges", face.get_ranges(&key, &[ByteRange::All]).map(|all| recorder::decode(all.unwrap_or_default().pop()))),
        ("size", face.size(&key).and_then(|_| face.get(&key, ByteRange::All)).map(recorder::decode)),
        ("get_into", {
            let mut dst = [0; 512];
            face.get_into(&key, ByteRange::All, &mut dst)
                .map(|length| recorder::decode(length.map(|length| Bytes::copy_from_slice(dst.get(..length).unwrap_or_default()))))
        }),
        ("get_into_buffer", into_buffer(face)?),
    ];
    for (method, answer) in answers {
        require!(answer?.contains_key(method), "`{method}` does not arrive as itself");
    }
    require!(face.reads_to_device(DIRECT), "`reads_to_device` is not forwarded");
    require!(!face.reads_to_device(DeviceId::CPU), "`reads_to_device` claims more than the store below");
    if writes {
        face.set(&key, Bytes::new())?;
        face.set_vectored(&key, vec![Bytes::new(), Bytes::new()])?;
        face.erase(&key)?;
        face.erase_prefix(&prefix("p"))?;
    }
    face.list(&prefix("p"))?;
    face.list_dir(&prefix("p"))?;
    let calls = recorder::decode(face.get(&key, ByteRange::All)?);
    let mut want: Calls =
        [("get", 3), ("get_ranges", 1), ("size", 1), ("get_into", 1), ("get_into_buffer", 1), ("list", 1), ("list_dir", 1)].into();
    if writes {
        want.extend([("set", 1), ("set_vectored", 1), ("erase", 1), ("erase_prefix", 1)]);
    }
    require!(calls == want, "arrived: {calls:?}; asked: {want:?}");
    Ok(())
}

/// The answer to a read into a buffer, which the host sees.
fn into_buffer(face: &Face) -> Result<Result<Calls, StoreError>, BufferError> {
    let device: Arc<dyn Device> = Arc::new(HostDevice);
    let queue = device.create_queue()?;
    let dst = Buffer::from_vec(vec![0; 512]);
    let read = face.get_into_buffer(&key("k"), ByteRange::All, &dst, &device, &queue);
    let memory = dst.host_read()?;
    Ok(read.map(|length| recorder::decode(length.map(|length| Bytes::copy_from_slice(memory.get(..length).unwrap_or_default())))))
}
