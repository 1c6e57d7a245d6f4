//! What somebody may have meant.

use std::path::Path;

use zarr::store::local_archive;
use zarr::store_api::{AnyStore, StoreKey, StorePrefix};

use crate::store;

/// The names that are close to what was written, closest first.
pub(crate) fn close<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut found: Vec<(usize, &str)> = names
        .into_iter()
        .filter_map(|name| {
            let distance = distance(written, name);
            let near = distance <= 1 + written.chars().count() / 4 || (written.len() >= 3 && name.starts_with(written));
            near.then_some((distance, name))
        })
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(_, name)| name).collect()
}

/// What to say about a local path that does not exist, or holds no Zarr.
pub(crate) fn for_path(path: &str) -> Option<String> {
    if let Ok(Some((file, inside))) = local_archive(path)
        && let Some(mut nodes) = nodes_in_archive(&file)
    {
        if nodes.is_empty() {
            return Some(format!("{file} holds no Zarr"));
        }
        nodes.retain(|path| !path.is_empty());
        let close = close(inside.trim_start_matches('/'), nodes.iter().map(String::as_str));
        return match (close.first(), nodes.as_slice()) {
            (_, []) => None,
            (Some(name), _) => Some(format!("did you mean {file}/{name}?")),
            (None, _) => Some(format!("{file} holds {}", list(&nodes))),
        };
    }
    let path = Path::new(path.strip_prefix("file://").unwrap_or(path));
    if path.is_dir() {
        if path.join(crate::copy::MARKER).is_file() {
            return Some(format!("a copy to {} was interrupted, or is under way: `zarr copy --resume` goes on with it", path.display()));
        }
        let inside = nodes_in(path);
        return Some(match inside.as_slice() {
            [] => format!("{} has no zarr.json, .zarray or .zgroup", path.display()),
            _ => format!("{} is no Zarr itself, but holds {}", path.display(), list(&inside)),
        });
    }
    let parent = match path.parent()? {
        parent if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    };
    if !parent.is_dir() {
        let existing = parent.ancestors().find(|above| above.is_dir() && !above.as_os_str().is_empty())?;
        return Some(format!("{} is the last directory on the way that exists", existing.display()));
    }
    let names = nodes_in(parent);
    let written = path.file_name()?.to_str()?;
    let close = close(written, names.iter().map(String::as_str));
    match (close.first(), names.as_slice()) {
        (Some(name), _) => {
            let path = if parent == Path::new(".") { name.into() } else { parent.join(name) };
            Some(format!("did you mean {}?", path.display()))
        }
        (None, []) => None,
        (None, _) => Some(format!("{} holds {}", parent.display(), list(&names))),
    }
}

/// What to say about a file that belongs to a node.
pub(crate) fn for_file(path: &str) -> Option<String> {
    let file = Path::new(path.strip_prefix("file://").unwrap_or(path));
    let node = file.ancestors().skip(1).find(|above| is_node(above)).filter(|_| file.is_file())?;
    Some(format!("a node is named by its directory: {}", node.display()))
}

/// The keys that make a node.
pub(crate) const DOCUMENTS: [&str; 3] = ["zarr.json", ".zarray", ".zgroup"];

pub(crate) fn is_node(directory: &Path) -> bool {
    DOCUMENTS.iter().any(|document| directory.join(document).is_file())
}

/// The names of the nodes directly in a directory.
fn nodes_in(directory: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let is_node = |path: &Path| is_node(path) || path.extension().is_some_and(|extension| extension == "zip" || extension == "zarr");
    let mut names: Vec<String> =
        entries.flatten().filter(|entry| is_node(&entry.path())).filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

/// The paths of the nodes in a zip archive, that of its root empty; `None` if it is no archive.
fn nodes_in_archive(file: &str) -> Option<Vec<String>> {
    let archive = AnyStore::from(zarr::store::ZipStore::open(file).ok()?);
    let keys = store::list(&archive, &StorePrefix::default()).ok()?;
    let path = |key: &StoreKey| {
        let (path, document) = key.as_str().rsplit_once('/').unwrap_or(("", key.as_str()));
        ["zarr.json", ".zarray", ".zgroup"].contains(&document).then(|| path.to_owned())
    };
    let mut paths: Vec<String> = keys.iter().filter_map(path).collect();
    paths.sort_unstable();
    Some(paths)
}

pub(crate) fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

/// Insertions, removals, replacements and swaps of neighbours that turn one word into the other.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<usize>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_names() {
        let names = ["air_temperature", "height", "latitude", "longitude"];
        assert_eq!(close("air_temprature", names), ["air_temperature"]);
        assert_eq!(close("air", names), ["air_temperature"]);
        assert_eq!(close("longitud", names), ["longitude"]);
        assert!(close("pressure", names).is_empty());
        assert_eq!(distance("ab", "ba"), 1);
    }
}
