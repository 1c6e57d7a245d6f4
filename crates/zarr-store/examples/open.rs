//! Lists what lies at a path or URL: directories, zip archives, and with the features for them
//! `s3://`, `gs://`, `az://` and `http(s)://`.
//!
//! Run with `cargo run -p zarr-store --example open -- examples/data`.

use zarr_store::{OpenOptions, open_url};
use zarr_store_api::{AnyStore, StoreError, StorePrefix};

fn main() -> Result<(), StoreError> {
    let url = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let store = open_url(&url, &OpenOptions::read())?;
    println!("{}", store.name());
    let AnyStore::Blocking(blocking) = &store else {
        println!("  an async store; wrap it in AsyncToBlocking, or call it from async code");
        return Ok(());
    };
    let Some(listable) = blocking.as_listable() else { return Ok(()) };
    let listing = listable.list_dir(&StorePrefix::root())?;
    for prefix in listing.prefixes {
        println!("  {prefix}");
    }
    for key in listing.keys {
        println!("  {key}  {} bytes", blocking.size(&key)?.unwrap_or(0));
    }
    Ok(())
}
