//! Which names a file system can hold, and which mean the same to it.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use crate::file::TEMPORARY;

/// Says what is wrong with a key or prefix, if a file cannot have that name.
pub(super) fn check(path: &str) -> Result<(), String> {
    for segment in path.split('/') {
        if segment.starts_with(TEMPORARY) {
            return Err(format!("names that begin with `{TEMPORARY}` are kept for unfinished writes"));
        }
        if cfg!(windows) {
            check_windows(segment)?;
        }
    }
    Ok(())
}

fn check_windows(segment: &str) -> Result<(), String> {
    let forbidden = |c: char| c.is_ascii_control() || r#"\:*?"<>|"#.contains(c);
    if let Some(c) = segment.chars().find(|c| forbidden(*c)) {
        return Err(format!("file names cannot hold `{}` here", c.escape_debug()));
    }
    if segment.ends_with(['.', ' ']) {
        return Err("file names cannot end with a dot or a space here".to_owned());
    }
    let stem = segment.split('.').next().unwrap_or(segment).to_ascii_uppercase();
    let numbered = |name: &str| stem.strip_prefix(name).is_some_and(|n| n.len() == 1 && n.as_bytes()[0].is_ascii_digit());
    if ["CON", "PRN", "AUX", "NUL"].contains(&stem.as_str()) || numbered("COM") || numbered("LPT") {
        return Err(format!("`{stem}` is the name of a device here"));
    }
    Ok(())
}

/// Finds out, without writing, whether the file system takes names that differ in case for one.
pub(super) fn probe_case_insensitive(root: &Path) -> bool {
    for existing in root.ancestors() {
        let Some(name) = existing.file_name().and_then(OsStr::to_str) else { break };
        let Ok(here) = fs::symlink_metadata(existing) else { continue };
        let swapped: String =
            name.chars().map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() }).collect();
        if swapped != name {
            let other = existing.with_file_name(swapped);
            return fs::symlink_metadata(&other).is_ok_and(|there| same_file(existing, &here, &other, &there));
        }
    }
    cfg!(any(windows, target_os = "macos"))
}

#[cfg(unix)]
fn same_file(_: &Path, a: &fs::Metadata, _: &Path, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn same_file(a: &Path, _: &fs::Metadata, b: &Path, _: &fs::Metadata) -> bool {
    matches!((fs::canonicalize(a), fs::canonicalize(b)), (Ok(a), Ok(b)) if a == b)
}

/// The name that stands in the way of a key because it differs only in case from one of the key's
/// segments, if there is one. Looks through each directory on the way, so it is only called where
/// case is not told apart.
pub(super) fn real_name_differs(root: &Path, key: &str) -> Option<String> {
    let mut dir = root.to_owned();
    for segment in key.split('/') {
        let mut clash = None;
        for entry in fs::read_dir(&dir).ok()?.flatten() {
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            if name == segment {
                clash = None;
                break;
            }
            if name.to_lowercase() == segment.to_lowercase() {
                clash = Some(name.to_owned());
            }
        }
        if clash.is_some() {
            return clash;
        }
        dir.push(segment);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_windows_cannot_hold() {
        for bad in ["a\\b", "a:b", "nul", "NUL.txt", "com1", "a.", "a ", "a\tb"] {
            assert!(check_windows(bad).is_err(), "{bad}");
        }
        for good in ["zarr.json", ".zarray", "0.0", "console", "com10", "é"] {
            assert!(check_windows(good).is_ok(), "{good}");
        }
    }
}
