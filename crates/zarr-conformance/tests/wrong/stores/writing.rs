//! Stores that forget, mix up or take along.

use zarr_store_api::{ByteRange, ReadableStore, StoreErrorKind, Version, WritableStore};

use super::{by_several, failure, wrong};
use crate::idle::Wrong;

pub(crate) fn table() -> Vec<Wrong> {
    vec![
        wrong("store/write/read-after-write", "what was read once is read again", |store| {
            store.get = |right, key, range| {
                if range != ByteRange::All {
                    return right.get(key, range);
                }
                let mut seen = right.notes.values.lock().unwrap();
                Ok(right.value(key).map(|value| seen.entry(key.clone()).or_insert(value).clone()))
            };
            store.erase = |right, key| {
                right.notes.values.lock().unwrap().remove(key);
                right.erase(key)
            };
        }),
        wrong("store/write/read-after-write", "a shorter value leaves the end of the longer one", |store| {
            store.set = |right, key, value| {
                let mut long = right.value(key).filter(|_| key.as_str() == "a/b/c").unwrap_or_default().to_vec();
                long.splice(..value.len().min(long.len()), value);
                right.set(key, long.into())
            };
        }),
        wrong("store/write/pieces", "more than 1024 pieces are too many for one call", |store| {
            store.set_vectored = |right, key, parts| right.set_vectored(key, &parts[..parts.len().min(1024)]);
        }),
        wrong("store/write/version", "values of one length have one version", |store| {
            store.version = |right, key| right.value(key).map(|value| Version::of_numbers([value.len() as u64, 0, 0, 0]));
        }),
        wrong("store/write/made", "the last piece is stored at its full length", |store| {
            store.set_pieces = |right, key, len, piece, make| {
                let mut value = Vec::new();
                for start in (0..len as usize).step_by(piece.len()) {
                    let part = piece.len().min(len as usize - start);
                    make(start as u64, &mut piece[..part]);
                    value.extend_from_slice(piece);
                }
                right.set(key, value.into())
            };
        }),
        wrong("store/write/odd-keys", "keys are decoded as those of URLs", |store| {
            store.set = |right, key, value| right.set(&key.as_str().replace("%2F", "/").parse()?, value);
        }),
        wrong("store/write/odd-keys", "backslashes are slashes", |store| {
            store.set = |right, key, value| match key.as_str().replace('\\', "/").parse() {
                Ok(key) => right.set(&key, value),
                Err(_) => right.set(&"b".parse()?, value),
            };
        }),
        wrong("store/write/erase", "erasing what is not there is an error", |store| {
            store.erase = |right, key| match right.value(key) {
                Some(_) => right.erase(key),
                None => Err(failure(StoreErrorKind::NotFound)),
            };
        }),
        wrong("store/write/erase-prefix", "erasing a prefix takes siblings along", |store| {
            store.erase_prefix = |right, prefix| {
                let letters = prefix.as_str().trim_end_matches('/');
                right.values.lock().unwrap().retain(|key, _| !key.as_str().starts_with(letters));
                Ok(())
            };
        }),
        wrong("store/write/erase-root", "the root is a prefix of nothing", |store| {
            store.erase_prefix = |right, prefix| if prefix.is_root() { Ok(()) } else { right.erase_prefix(prefix) };
        }),
        by_several(
            &[
                "store/read/empty-value",
                "store/read/size",
                "store/list/all",
                "store/list/siblings",
                "store/list/dir",
                "store/write/read-after-write",
                "store/write/pieces",
                "store/write/made",
            ],
            "empty values are dropped",
            |store| {
                store.set = |right, key, value| if value.is_empty() { right.erase(key) } else { right.set(key, value) };
                store.set_vectored = |right, key, parts| match parts.concat() {
                    value if value.is_empty() => right.erase(key),
                    value => right.set(key, value.into()),
                };
                store.set_pieces =
                    |right, key, len, piece, make| if len == 0 { right.erase(key) } else { right.set_pieces(key, len, piece, make) };
            },
        ),
    ]
}
