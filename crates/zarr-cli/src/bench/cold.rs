//! Reading as if for the first time.

use std::path::Path;

/// Puts what the system remembers of the files at and below `path` out of its memory; false where that cannot be done.
#[cfg(target_os = "linux")]
pub(crate) fn evict(path: &Path) -> bool {
    if path.is_dir() {
        let Ok(entries) = std::fs::read_dir(path) else { return false };
        // Every one of them, also behind one that failed.
        let failed = entries.filter(|entry| !entry.as_ref().is_ok_and(|entry| evict(&entry.path()))).count();
        return failed == 0;
    }
    let Ok(file) = std::fs::File::open(path) else { return false };
    // Bytes that are not yet on the disk stay.
    file.sync_data().is_ok() && rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).is_ok()
}

/// Other systems have no call for this.
#[cfg(not(target_os = "linux"))]
pub(crate) fn evict(_: &Path) -> bool {
    false
}
