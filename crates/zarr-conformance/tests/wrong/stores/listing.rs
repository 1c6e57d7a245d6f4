//! Stores that list what is not there, or not what is.

use zarr_store_api::{ListableStore, WritableStore};

use super::wrong;
use crate::idle::Wrong;

pub(crate) fn table() -> Vec<Wrong> {
    vec![
        wrong("store/list/all", "empty values are not listed", |store| {
            store.list = |right, prefix| {
                let mut keys = right.list(prefix)?;
                if prefix.is_root() {
                    keys.retain(|key| right.value(key).is_some_and(|value| !value.is_empty()));
                }
                Ok(keys)
            };
        }),
        wrong("store/list/siblings", "whatever begins with the same letters is listed", |store| {
            store.list = |right, prefix| {
                let letters = prefix.as_str().trim_end_matches('/');
                Ok(right.keys().into_iter().filter(|key| key.as_str().starts_with(letters) && key.as_str() != letters).collect())
            };
        }),
        wrong("store/list/dir", "prefixes are sorted without their slashes", |store| {
            store.list_dir = |right, prefix| {
                let mut listing = right.list_dir(prefix)?;
                listing.prefixes.sort_by(|a, b| a.as_str().trim_end_matches('/').cmp(b.as_str().trim_end_matches('/')));
                Ok(listing)
            };
        }),
        wrong("store/list/missing", "a key is listed below itself", |store| {
            store.list_dir = |right, prefix| {
                let mut listing = right.list_dir(prefix)?;
                let letters = prefix.as_str().trim_end_matches('/');
                listing.keys.extend(right.keys().into_iter().filter(|key| key.as_str() == letters));
                Ok(listing)
            };
        }),
        wrong("store/write-then-list/written", "listings are stale until something is erased", |store| {
            store.list = |right, prefix| {
                let listed = right.list(prefix)?;
                Ok(right.notes.listings.lock().unwrap().entry(prefix.clone()).or_insert(listed).clone())
            };
            store.erase = |right, key| {
                right.notes.listings.lock().unwrap().clear();
                right.erase(key)
            };
        }),
        wrong("store/write-then-list/erased", "listings are stale until something is written", |store| {
            store.list = |right, prefix| {
                let listed = right.list(prefix)?;
                Ok(right.notes.listings.lock().unwrap().entry(prefix.clone()).or_insert(listed).clone())
            };
            store.set = |right, key, value| {
                right.notes.listings.lock().unwrap().clear();
                right.set(key, value)
            };
        }),
        wrong("store/write-then-list/erased", "a prefix whose keys are erased is still listed, as a directory would be", |store| {
            store.set = |right, key, value| {
                right.notes.names.lock().unwrap().insert(key.parent().as_str().to_owned());
                right.set(key, value)
            };
            store.list_dir = |right, prefix| {
                let mut listing = right.list_dir(prefix)?;
                for name in &*right.notes.names.lock().unwrap() {
                    let child: zarr_store_api::StorePrefix = name.parse()?;
                    if !child.is_root() && child.parent().as_ref() == Some(prefix) {
                        listing.prefixes.push(child);
                    }
                }
                listing.sort();
                Ok(listing)
            };
        }),
    ]
}
