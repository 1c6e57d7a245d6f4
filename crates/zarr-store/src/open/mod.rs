//! From a URL or a path to a store.

use zarr_store_api::{AnyStore, StoreError, StoreErrorKind};

use crate::ReadOnly;

/// What a store is opened for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Access {
    /// To read what is there; the store cannot be written to.
    #[default]
    Read,
    /// To read and write. A directory is created with its first key. An existing zip archive is
    /// appended to, a missing one created; it is closed with the last handle on the store, and an
    /// error then is an event of `tracing` alone. Who has to know opens a `ZipStore` and calls its `close`.
    Write,
}

/// How a store is opened.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct OpenOptions {
    /// What it is opened for.
    pub access: Access,
    /// Settings of object stores, by the names that the `object_store` crate gives them
    /// (`region`, `endpoint`, `skip_signature`, `allow_http`, ...). They override the environment
    /// (`AWS_REGION`, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_KEY`, ...).
    pub settings: Vec<(String, String)>,
}

impl OpenOptions {
    /// To read, with the settings of the environment.
    #[must_use]
    pub fn read() -> Self {
        Self::default()
    }

    /// To read and write, with the settings of the environment.
    #[must_use]
    pub fn write() -> Self {
        Self { access: Access::Write, ..Self::default() }
    }

    /// Adds a setting.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.push((name.into(), value.into()));
        self
    }
}

/// Opens the store at a URL or path.
///
/// | form | store | feature |
/// |---|---|---|
/// | `path`, `file:///path` | a directory | `filesystem` |
/// | `path.zip`, `file:///path.zip`, `zip://path` | a zip archive | `zip` |
/// | `memory://` | a new store in memory | `memory` |
/// | `s3://bucket/prefix`, `s3a://..` | S3 and what speaks like it | `s3` |
/// | `gs://bucket/prefix`, `gcs://..` | Google Cloud Storage | `gcs` |
/// | `az://container/prefix`, `abfs[s]://..`, `azure://..` | Azure Blob Storage | `azure` |
/// | `http://..`, `https://..` | a web server, to read | `http` |
/// | any of the last four, ending in `.zip` | a zip archive there, to read | and `zip` |
///
/// A path that exists is a path, whatever it looks like.
///
/// Object stores take credentials from the environment or the settings. Where there are none,
/// requests are not signed, as suits public buckets; set `skip_signature` to `false` to have
/// credentials fetched from the metadata service of the machine, as for the role of an EC2 instance
/// (those of ECS and EKS are in the environment). `~/.aws/config` and `~/.aws/credentials` are not
/// read. The region of a bucket, if not `us-east-1`, must be named.
///
/// A zip archive behind a URL is opened by reading its directory: this call does that, and blocks. All other stores do no network I/O here.
///
/// Their clients are async, and run on a tokio runtime that they share (`OnRuntime`): callers need none, whether they wait or block.
///
/// # Errors
///
/// [`StoreErrorKind::NotFound`] if a local path is not there (for reading);
/// [`StoreErrorKind::Unsupported`] if the crate was built without the feature for the scheme, which
/// the message names; [`StoreErrorKind::Parameter`] for unknown schemes and settings; and whatever the
/// medium gives. Whether a remote store can be reached shows when it is first used.
///
/// ```
/// use zarr_store::{OpenOptions, open_url};
///
/// let store = open_url("memory://", &OpenOptions::write())?;
/// assert!(store.is_writable());
///
/// let error = open_url("gopher://example.org/data", &OpenOptions::read()).unwrap_err();
/// assert!(error.to_string().contains("gopher"));
/// # Ok::<(), zarr_store_api::StoreError>(())
/// ```
pub fn open_url(url: &str, options: &OpenOptions) -> Result<AnyStore, StoreError> {
    let Some((scheme, rest)) = scheme(url) else { return local(url, options) };
    let store = match scheme.as_str() {
        "file" => return local(&file_path(rest)?, options),
        "zip" => return archive(rest, options),
        "memory" => memory()?,
        "s3" | "s3a" => remote::s3(url, options)?,
        "gs" | "gcs" => remote::gcs(&format!("gs://{rest}"), options)?,
        "az" | "azure" | "adl" | "abfs" | "abfss" => remote::azure(url, options)?,
        "http" | "https" => remote::http(url, options)?,
        _ => {
            return Err(StoreError::new(StoreErrorKind::Parameter, format!("`{scheme}` is not a scheme that stores are known by")));
        }
    };
    Ok(match options.access {
        Access::Read => ReadOnly::any(store),
        Access::Write => store,
    })
}

/// The local zip archive that a URL or path names, or in which it names a node: the path of the archive, and that of the node inside, `/` for the root. `None` where it
/// means another store.
///
/// An archive is known by its name, which ends in `.zip` (or `.ZIP`), unless there is a directory of that name, or by the scheme `zip`; it need not be there. What
/// [`open_url`] opens as a local archive has the path `/` here.
///
/// ```
/// use zarr_store::local_archive;
///
/// let found = |url| local_archive(url).unwrap();
/// assert_eq!(found("data/a.zip/temperature"), Some(("data/a.zip".to_owned(), "/temperature".to_owned())));
/// assert_eq!(found("file:///data/a%20b.ZIP"), Some(("/data/a b.ZIP".to_owned(), "/".to_owned())));
/// assert_eq!(found("zip:///data/archive"), Some(("/data/archive".to_owned(), "/".to_owned())));
/// assert_eq!(found("s3://bucket/a.zip"), None);
/// ```
///
/// # Errors
///
/// [`StoreErrorKind::Parameter`] for a `file` URL that is none.
pub fn local_archive(url: &str) -> Result<Option<(String, String)>, StoreError> {
    let scheme = scheme(url);
    let (path, named) = match &scheme {
        None => (url.to_owned(), false),
        Some((scheme, rest)) if scheme == "file" => (file_path(rest)?, false),
        Some((scheme, rest)) if scheme == "zip" => ((*rest).to_owned(), true),
        Some(_) => return Ok(None),
    };
    let is_one = |&end: &usize| {
        let file = std::path::Path::new(&path[..end]);
        is_archive(&path[..end]) && !file.is_dir() || named && file.is_file()
    };
    let mut ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    Ok(ends.find(is_one).or(named.then_some(path.len())).map(|end| {
        let (archive, inside) = path.split_at(end);
        let inside = inside.trim_end_matches('/');
        (archive.to_owned(), if inside.is_empty() { "/" } else { inside }.to_owned())
    }))
}

/// The scheme of a URL, in lower case, and what is behind `://`.
fn scheme(url: &str) -> Option<(String, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    let valid = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c));
    (valid && !std::path::Path::new(url).exists()).then(|| (scheme.to_ascii_lowercase(), rest))
}

/// The path in a `file` URL, behind `file://`.
fn file_path(rest: &str) -> Result<String, StoreError> {
    let bad = |why: &str| StoreError::new(StoreErrorKind::Parameter, format!("file://{rest}: {why}"));
    let path = rest.strip_prefix("localhost").filter(|path| path.starts_with('/')).unwrap_or(rest);
    if !path.starts_with('/') {
        return Err(bad("the path in a file URL is absolute, with three slashes in all"));
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut todo = path.bytes();
    while let Some(byte) = todo.next() {
        let hex = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        bytes.push(match byte {
            b'%' => match (hex(todo.next()), hex(todo.next())) {
                // Two hexadecimal digits make a byte.
                (Some(high), Some(low)) => (high * 16 + low) as u8,
                _ => return Err(bad("`%` without two hexadecimal digits behind it")),
            },
            byte => byte,
        });
    }
    let path = String::from_utf8(bytes).map_err(|_| bad("the path is not UTF-8"))?;
    // `/C:/data` is `C:/data`.
    let drive = cfg!(windows) && path.as_bytes().get(2) == Some(&b':');
    Ok(if drive { path[1..].to_owned() } else { path })
}

fn is_archive(path: &str) -> bool {
    path.len() > 4 && path.as_bytes()[path.len() - 4..].eq_ignore_ascii_case(b".zip")
}

fn local(path: &str, options: &OpenOptions) -> Result<AnyStore, StoreError> {
    let found = std::fs::metadata(path);
    if is_archive(path) && !found.as_ref().is_ok_and(std::fs::Metadata::is_dir) {
        return archive(path, options);
    }
    match (found, options.access) {
        (Err(error), Access::Read) => Err(StoreError::from_io(error, format!("cannot open {path}"))),
        _ => directory(path, options),
    }
}

#[cfg_attr(
    all(feature = "memory", feature = "filesystem", feature = "zip", feature = "s3", feature = "gcs", feature = "azure", feature = "http"),
    expect(dead_code, reason = "with every feature nothing is missing")
)]
fn missing(what: &str, feature: &str) -> StoreError {
    StoreError::unsupported(format!("{what}: built without the feature `{feature}`"))
}

fn memory() -> Result<AnyStore, StoreError> {
    #[cfg(feature = "memory")]
    return Ok(crate::MemoryStore::new().into());
    #[cfg(not(feature = "memory"))]
    return Err(missing("memory://", "memory"));
}

#[cfg(feature = "filesystem")]
fn directory(path: &str, options: &OpenOptions) -> Result<AnyStore, StoreError> {
    let store = AnyStore::from(crate::FilesystemStore::new(path)?);
    Ok(match options.access {
        Access::Read => ReadOnly::any(store),
        Access::Write => store,
    })
}

#[cfg(not(feature = "filesystem"))]
fn directory(path: &str, _: &OpenOptions) -> Result<AnyStore, StoreError> {
    Err(missing(path, "filesystem"))
}

#[cfg(feature = "zip")]
fn archive(path: &str, options: &OpenOptions) -> Result<AnyStore, StoreError> {
    use crate::{ZipStore, ZipWriteOptions};
    Ok(match options.access {
        Access::Read => ZipStore::open(path)?.into(),
        Access::Write if std::path::Path::new(path).exists() => ZipStore::append(path, ZipWriteOptions::default())?.into(),
        Access::Write => ZipStore::create(path)?.into(),
    })
}

#[cfg(not(feature = "zip"))]
fn archive(path: &str, _: &OpenOptions) -> Result<AnyStore, StoreError> {
    Err(missing(path, "zip"))
}

#[cfg(not(feature = "remote"))]
mod remote {
    use super::*;

    pub(super) fn s3(url: &str, _: &OpenOptions) -> Result<AnyStore, StoreError> {
        Err(missing(url, "s3"))
    }

    pub(super) fn gcs(url: &str, _: &OpenOptions) -> Result<AnyStore, StoreError> {
        Err(missing(url, "gcs"))
    }

    pub(super) fn azure(url: &str, _: &OpenOptions) -> Result<AnyStore, StoreError> {
        Err(missing(url, "azure"))
    }

    pub(super) fn http(url: &str, _: &OpenOptions) -> Result<AnyStore, StoreError> {
        Err(missing(url, "http"))
    }
}

#[cfg(feature = "remote")]
mod per_process;
#[cfg(feature = "remote")]
mod remote;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_urls() {
        assert_eq!(file_path("/a/b%20c/%C3%A9").unwrap(), "/a/b c/é");
        assert_eq!(file_path("localhost/a").unwrap(), "/a");
        for bad in ["a/b", "host/a", "/a%2", "/a%zz", "/%ff"] {
            assert!(file_path(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn archives_by_name() {
        assert!(is_archive("a.zip") && is_archive("/x/A.ZIP"));
        assert!(!is_archive(".zip") && !is_archive("a.zarr") && !is_archive("é"));
    }

    #[test]
    fn archives_and_nodes_in_them() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(at("folder.zip")).unwrap();
        std::fs::write(at("file"), "").unwrap();
        for (url, expected) in [
            (at("a.zip"), Some(("a.zip", "/"))),
            (at("A.Zip/b/c/"), Some(("A.Zip", "/b/c"))),
            (at("a.zip/b.zip/c"), Some(("a.zip", "/b.zip/c"))),
            (at("folder.zip/b.zip/c"), Some(("folder.zip/b.zip", "/c"))),
            (at("folder.zip/b"), None),
            (at("a.zipper/b"), None),
            (at("file/b"), None),
            (format!("File://localhost{}", at("a%20b.zip/%C3%A9")), Some(("a b.zip", "/é"))),
            (format!("zip://{}", at("a%20b.zip/b")), Some(("a%20b.zip", "/b"))),
            (format!("ZIP://{}", at("other/b")), Some(("other/b", "/"))),
            (format!("zip://{}", at("file/b")), Some(("file", "/b"))),
        ] {
            let expected = expected.map(|(archive, inside)| (at(archive), inside.to_owned()));
            assert_eq!(local_archive(&url).unwrap(), expected, "{url}");
        }
        assert_eq!(local_archive("https://host/a.zip/b").unwrap(), None);
        assert_eq!(local_archive("file:///a%2.zip").unwrap_err().kind(), StoreErrorKind::Parameter);
    }

    #[test]
    fn what_is_not_there_is_not_found() {
        let error = open_url("/no/such/place.zarr", &OpenOptions::read()).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::NotFound);
        assert!(open_url("s3://", &OpenOptions::read()).is_err());
    }

    #[cfg(all(feature = "s3", feature = "gcs", feature = "azure"))]
    #[test]
    fn a_place_that_is_none_is_refused_before_it_is_asked() {
        for url in ["s3://", "gs:///path", "az://"] {
            let error = open_url(url, &OpenOptions::read()).unwrap_err();
            assert!(error.message().ends_with("the URL names no bucket, container or server behind its scheme"), "{error}");
        }
        for (url, setting) in [("s3://b/x", "endpoint"), ("gs://b/x", "base_url"), ("az://c/x", "endpoint")] {
            for wrong in ["nowhere", "localhost:9000", "ftp://host"] {
                let error = open_url(url, &OpenOptions::read().with(setting, wrong)).unwrap_err();
                assert!(error.message().contains(&format!("the {setting} `{wrong}` is no URL of a server")), "{error}");
            }
        }
        open_url("s3://b/x", &OpenOptions::read().with("endpoint", "http://127.0.0.1:9")).unwrap();
        let error = open_url("s3://b/x", &OpenOptions::read().with("endpiont", "x")).unwrap_err();
        assert_eq!(error.to_string(), "bad parameter: there is no setting `endpiont` for this kind of store");
    }
}
