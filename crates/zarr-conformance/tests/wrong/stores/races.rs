//! Stores that several callers at once, or futures that are dropped, bring out of step. None of it is luck: whoever could be disturbed waits until it is.

use zarr_store_api::{Bytes, ReadableStore, StoreError, StoreErrorKind, StoreKey, WritableStore};

use super::{Right, Wrong, failure, wrong, wrong_async};

/// The first that comes here and finds others at work; nobody after it.
fn is_first(right: &Right) -> bool {
    right.notes.is_crowded() && right.notes.add("first")
}

/// Writes one half and, once it was read, all; others wait until it was.
fn tear(right: &Right, key: &StoreKey, value: Bytes) -> Result<(), StoreError> {
    if key.name() == "contested" && right.notes.is_crowded() {
        if is_first(right) {
            right.set(key, value.slice(..value.len() / 2))?;
            right.notes.add("torn");
        }
        right.notes.wait_until(|| right.notes.has("seen"));
    }
    right.set(key, value)
}

pub(crate) fn table() -> Vec<Wrong> {
    vec![
        wrong("store/read/concurrent", "all readers share one cursor", |store| {
            store.get = |right, key, range| {
                right.notes.add(key.as_str());
                if is_first(right) {
                    // Where the cursor stood for somebody else: kept, since it may come back before this thread looks.
                    let other = || right.notes.names.lock().unwrap().iter().find(|name| *name != key.as_str() && *name != "first").cloned();
                    right.notes.wait_until(|| other().is_some());
                    return right.get(&other().unwrap_or_else(|| key.to_string()).parse()?, range);
                }
                right.get(key, range)
            };
        }),
        wrong("store/write/atomic", "a value is written in two halves", |store| {
            store.set = tear;
            store.set_vectored = |right, key, parts| tear(right, key, parts.concat().into());
            store.get = |right, key, range| {
                if key.name() == "contested" && right.notes.is_crowded() {
                    right.notes.wait_until(|| right.notes.has("torn"));
                    let read = right.get(key, range);
                    right.notes.add("seen");
                    return read;
                }
                right.get(key, range)
            };
        }),
        wrong_async("store/write/atomic", "a value is removed before the new one is there", |store| {
            store.begin_set = |right, key, _| {
                if key.name() == "contested" {
                    right.erase(key).unwrap();
                }
            };
        }),
        wrong("store/write/concurrent", "a write puts back all values as they were when it began", |store| {
            store.set = |right, key, value| {
                let mut all = right.values.lock().unwrap().clone();
                if is_first(right) {
                    let before = right.values.lock().unwrap().len();
                    right.notes.wait_until(|| right.values.lock().unwrap().len() > before);
                    all.insert(key.clone(), value);
                    let mut values = right.values.lock().unwrap();
                    // What was erased meanwhile stays erased: only new values are lost.
                    all.retain(|other, _| other == key || values.contains_key(other));
                    *values = all;
                    return Ok(());
                }
                right.set(key, value)?;
                right.notes.advance();
                Ok(())
            };
        }),
        wrong("store/write/coming-and-going", "a directory is removed while a key is being written to it", |store| {
            store.set = |right, key, value| {
                let directory = key.parent().as_str().to_owned();
                right.notes.add(&directory);
                let is_there = || right.notes.has(&directory);
                if directory.starts_with("shared/") && is_first(right) {
                    right.notes.wait_until(|| !is_there());
                }
                if !is_there() {
                    return Err(failure(StoreErrorKind::Io));
                }
                right.set(key, value)
            };
            store.erase = |right, key| {
                right.erase(key)?;
                let parent = key.parent();
                if !right.keys().iter().any(|other| parent.contains(other)) {
                    right.notes.names.lock().unwrap().remove(parent.as_str());
                }
                right.notes.advance();
                Ok(())
            };
        }),
        wrong_async("store/cancel/read", "a read that is dropped keeps its place in the queue", |store| {
            store.dropped = |right, method, _| {
                if method.starts_with("get") || method == "size" {
                    right.notes.add("taken");
                }
            };
            store.get = |right, key, range| {
                if right.notes.has("taken") {
                    return Err::<_, StoreError>(failure(StoreErrorKind::Transient));
                }
                right.get(key, range)
            };
        }),
        wrong_async("store/cancel/write", "a write that is dropped leaves its first bytes", |store| {
            store.dropped = |right, method, key| {
                if method.starts_with("set") {
                    right.set(key, "garbage".into()).unwrap();
                }
            };
        }),
        wrong_async("store/cancel/write-erase", "an erasure that is dropped leaves an empty value", |store| {
            store.dropped = |right, method, key| {
                if method == "erase" {
                    right.set(key, "".into()).unwrap();
                }
            };
        }),
    ]
}
