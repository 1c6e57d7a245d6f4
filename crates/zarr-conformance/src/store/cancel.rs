//! The laws of futures that are dropped before they end.

use std::sync::Arc;
use std::thread;

use zarr_store_api::{AnyStore, AsyncStore, ByteRange, Bytes};

use super::concurrent::{is_uniform, uniform};
use super::face::{Face, cannot, poll_and_drop, show};
use super::fixture::{LONG, LONGEST, THOUSAND, key, value_of};
use super::{StoreCase, on_empty, on_filled};
use crate::suite::{Broken, ensure};

pub(super) fn cases() -> Vec<StoreCase> {
    vec![
        on_filled("cancel/read", "a read that is dropped does no harm: later ones read what they ask for", read),
        on_empty(
            "cancel/write",
            "a write that is dropped leaves the old value or the new one, whole, and a store that can be written to",
            write,
        ),
        on_empty("cancel/write-erase", "an erasure that is dropped leaves the value or none, and nothing else changes", erase),
    ]
}

fn futures(store: &Face) -> Result<&Arc<dyn AsyncStore>, Broken> {
    match &store.0 {
        AnyStore::Async(store) => Ok(store),
        AnyStore::Blocking(_) => Err(Broken::Unsupported("a blocking store has no futures".into())),
    }
}

fn read(store: &Face) -> Result<(), Broken> {
    let inner = futures(store)?;
    let key = key(LONGEST);
    for polls in 0..4 {
        poll_and_drop(inner.get(&key, ByteRange::All), polls);
        poll_and_drop(inner.get_ranges(&key, &[ByteRange::from(0..10), ByteRange::Suffix(10)]), polls);
        poll_and_drop(inner.get_into(&key, ByteRange::All, Box::new(vec![0; LONG])), polls);
        poll_and_drop(inner.size(&key), polls);
        for name in [THOUSAND, LONGEST] {
            let read = store.get(&self::key(name), ByteRange::Suffix(900))?;
            let value = value_of(name);
            ensure!(read.as_deref() == value.get(value.len() - 900..), "dropped after {polls} polls; then `{name}` reads {}", show(&read));
        }
    }
    Ok(())
}

fn write(store: &Face) -> Result<(), Broken> {
    let inner = futures(store)?;
    let writable = inner.as_writable().ok_or_else(|| cannot("written to"))?;
    for polls in 0..6 {
        // A key of its own each time: a write that was dropped may still take place later.
        let key = key(&format!("cancelled/{polls}"));
        store.set(&key, uniform(0, 0))?;
        poll_and_drop(writable.set(&key, uniform(1, 1)), polls);
        poll_and_drop(writable.set_vectored(&key, vec![uniform(2, 0), Bytes::new()]), polls);
        for _ in 0..20 {
            let read = store.get(&key, ByteRange::All)?;
            ensure!(read.as_ref().is_some_and(is_uniform), "dropped after {polls} polls: {}", show(&read));
            thread::yield_now();
        }
    }
    Ok(())
}

fn erase(store: &Face) -> Result<(), Broken> {
    let inner = futures(store)?;
    let writable = inner.as_writable().ok_or_else(|| cannot("written to"))?;
    for polls in 0..6 {
        let (doomed, beside) = (key(&format!("doomed/{polls}/a")), key(&format!("doomed/{polls}/b")));
        store.set(&doomed, uniform(0, 0))?;
        store.set(&beside, uniform(1, 0))?;
        poll_and_drop(writable.erase(&doomed), polls);
        for _ in 0..20 {
            let read = store.get(&doomed, ByteRange::All)?;
            ensure!(read.as_ref().is_none_or(is_uniform), "an erasure dropped after {polls} polls leaves {}", show(&read));
            thread::yield_now();
        }
        let read = store.get(&beside, ByteRange::All)?;
        ensure!(read == Some(uniform(1, 0)), "an erasure dropped after {polls} polls, and what is beside reads {}", show(&read));
    }
    Ok(())
}
