//! zarrs behind the command line of the conformance suite.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use zarr_conformance::implementation::{Implementation, ReadJob, Trouble, WriteJob, serve};
use zarr_conformance::vectors::Element;

use zarrs::array::{Array, ArrayBytes, ArrayBytesOffsets, ArrayMetadata, ArraySubset};
use zarrs::filesystem::FilesystemStore;

#[cfg(target_endian = "big")]
compile_error!("what zarrs gives is in native byte order, and what is wanted little-endian");

struct Zarrs;

impl Implementation for Zarrs {
    fn name(&self) -> String {
        "zarrs".into()
    }

    fn identity(&self) -> Result<String, Trouble> {
        Ok(format!("zarrs {}", zarrs::version::version_str()))
    }

    fn read(&self, job: &ReadJob<'_>) -> Result<Vec<u8>, Trouble> {
        read(job).map_err(refused)
    }

    fn write(&self, job: &WriteJob<'_>) -> Result<(), Trouble> {
        write(job).map_err(refused)
    }
}

fn store(path: &Path) -> Result<Arc<FilesystemStore>, Box<dyn Error>> {
    Ok(Arc::new(FilesystemStore::new(path)?))
}

fn read(job: &ReadJob<'_>) -> Result<Vec<u8>, Box<dyn Error>> {
    let array = Array::open(store(job.store)?, &format!("/{}", job.node))?;
    let subset = job.part.map_or_else(|| array.subset_all(), |part| ArraySubset::new_with_ranges(part));
    let kind = kind(job)?;
    if kind == "string" {
        // As strings: bytes alone are not checked to be UTF-8.
        let texts: Vec<String> = array.retrieve_array_subset(&subset)?;
        let mut out = Vec::new();
        for text in texts {
            out.extend_from_slice(&u32::try_from(text.len())?.to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
        return Ok(out);
    }
    let bytes: ArrayBytes<'static> = array.retrieve_array_subset(&subset)?;
    match bytes {
        ArrayBytes::Fixed(bytes) => Ok(match kind.as_str() {
            "int2" => bytes.iter().map(|byte| sign_extended(*byte, 2)).collect(),
            "int4" => bytes.iter().map(|byte| sign_extended(*byte, 4)).collect(),
            _ => bytes.into_owned(),
        }),
        ArrayBytes::Variable(elements) => {
            let (bytes, offsets) = elements.into_parts();
            let mut out = Vec::new();
            for pair in offsets.windows(2) {
                let element = bytes.get(pair[0]..pair[1]).ok_or("offsets out of order")?;
                out.extend_from_slice(&u32::try_from(element.len())?.to_le_bytes());
                out.extend_from_slice(element);
            }
            Ok(out)
        }
        ArrayBytes::Optional(_) => Err("no form is agreed on for optional elements".into()),
    }
}

/// The data type of the array by its name, where a name is all it has; a string of format 2 shows by its filter.
fn kind(job: &ReadJob<'_>) -> Result<String, Box<dyn Error>> {
    let node = job.store.join(job.node);
    let text = std::fs::read(node.join("zarr.json")).or_else(|_| std::fs::read(node.join(".zarray")))?;
    let document: serde_json::Value = serde_json::from_slice(&text)?;
    let text_filter = document["filters"].as_array().is_some_and(|filters| filters.iter().any(|filter| filter["id"] == "vlen-utf8"));
    Ok(if text_filter { "string".into() } else { document["data_type"].as_str().unwrap_or_default().into() })
}

/// Of integers narrower than a byte, zarrs gives the bits alone.
fn sign_extended(byte: u8, bits: u32) -> u8 {
    let shift = 8 - bits;
    (((byte << shift) as i8) >> shift) as u8
}

fn write(job: &WriteJob<'_>) -> Result<(), Box<dyn Error>> {
    let metadata = ArrayMetadata::try_from(job.metadata)?;
    let array = Array::new_with_metadata(store(job.store)?, "/", metadata)?;
    array.store_metadata()?;
    let data = match job.element {
        Element::Size(_) => ArrayBytes::new_flen(job.data),
        Element::Variable => {
            let (mut bytes, mut offsets, mut left) = (Vec::new(), vec![0], job.data);
            while let Some((len, rest)) = left.split_first_chunk() {
                let (element, rest) = rest.split_at_checked(usize::try_from(u32::from_le_bytes(*len))?).ok_or("the data end within an element")?;
                bytes.extend_from_slice(element);
                offsets.push(bytes.len());
                left = rest;
            }
            ArrayBytes::new_vlen(bytes, ArrayBytesOffsets::new(offsets)?)?
        }
    };
    Ok(array.store_array_subset(&array.subset_all(), data)?)
}

fn refused(error: Box<dyn Error>) -> Trouble {
    Trouble::Refused(error.to_string())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match serve(&Zarrs, &args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}
