//! What the errors of `object_store` mean.

use std::error::Error;

use object_store::Error as Theirs;
use zarr_store_api::{StoreError, StoreErrorKind};

/// How much of a message is passed on: servers answer with whole pages.
const LONGEST_MESSAGE: usize = 400;

pub(super) fn from_object_store(error: Theirs, what: &str) -> StoreError {
    let kind = match &error {
        Theirs::NotFound { .. } => StoreErrorKind::NotFound,
        Theirs::PermissionDenied { .. } | Theirs::Unauthenticated { .. } => StoreErrorKind::Permission,
        Theirs::NotSupported { .. } | Theirs::NotImplemented { .. } => StoreErrorKind::Unsupported,
        Theirs::InvalidPath { .. } => StoreErrorKind::InvalidKey,
        Theirs::UnknownConfigurationKey { .. } => StoreErrorKind::Parameter,
        // Someone else was at work on the same object.
        Theirs::AlreadyExists { .. } | Theirs::Precondition { .. } => StoreErrorKind::Transient,
        other if is_transient(other) => StoreErrorKind::Transient,
        _ => StoreErrorKind::Io,
    };
    StoreError::new(kind, format!("{what}: {}", one_line(&all_of(&error))))
}

/// The whole chain in one text. It is not handed on as a source: some of its messages repeat deeper ones, and any may hold a secret.
fn all_of(error: &Theirs) -> String {
    let mut text = error.to_string();
    for cause in chain(error).skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn one_line(text: &str) -> String {
    let mut line = hide_signatures(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    if let Some((end, _)) = line.char_indices().nth(LONGEST_MESSAGE) {
        line.truncate(end);
        line.push_str(" ...");
    }
    line
}

/// Takes the signatures of Azure access tokens out of URLs.
fn hide_signatures(line: &str) -> String {
    let mut parts = line.split("sig=");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |shown, secret| {
        let end = secret.find(['&', ' ', ')']).unwrap_or(secret.len());
        format!("{shown}sig=...{}", &secret[end..])
    })
}

fn chain<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error| (*error).source())
}

/// Whether a backend refused the form of a range, not its bounds.
pub(super) fn is_unsupported(error: &Theirs) -> bool {
    matches!(error, Theirs::NotSupported { .. } | Theirs::NotImplemented { .. })
}

/// Whether a server answered a range with the whole value. `object_store` has no kind for
/// this; a test holds the text to what it is.
pub(super) fn is_not_partial(error: &Theirs) -> bool {
    chain(error).any(|cause| cause.to_string() == "Received non-partial response when range requested")
}

#[cfg(feature = "remote")]
fn is_transient(error: &Theirs) -> bool {
    use object_store::client::{HttpError, HttpErrorKind};
    chain(error).any(|cause| match cause.downcast_ref::<HttpError>() {
        Some(error) => {
            matches!(error.kind(), HttpErrorKind::Connect | HttpErrorKind::Request | HttpErrorKind::Timeout | HttpErrorKind::Interrupted)
        }
        None => status(cause).is_some_and(|status| status >= 500 || status == 408 || status == 429),
    })
}

/// The status a server answered with. `object_store` gives it away in text only.
#[cfg(feature = "remote")]
fn status(cause: &(dyn Error + 'static)) -> Option<u16> {
    let text = cause.to_string();
    text.strip_prefix("Server returned non-2xx status code: ")?.get(..3)?.parse().ok()
}

#[cfg(not(feature = "remote"))]
fn is_transient(_: &Theirs) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_cause_is_told_once() {
        let deep = || std::io::Error::other("connection refused by peer");
        let shown = Theirs::Generic { store: "HTTP", source: Box::new(deep()) };
        assert_eq!(from_object_store(shown, "cannot read").message(), "cannot read: Generic HTTP error: connection refused by peer");
        #[derive(Debug)]
        struct Hides(std::io::Error);
        impl std::fmt::Display for Hides {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("error sending request")
            }
        }
        impl Error for Hides {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        let error = from_object_store(Theirs::Generic { store: "HTTP", source: Box::new(Hides(deep())) }, "cannot read");
        assert!(error.message().ends_with("error sending request: connection refused by peer"), "{error}");
        assert!(error.source().is_none());
    }

    #[test]
    fn signatures_are_hidden() {
        let line =
            "GET https://a.blob.core.windows.net/c/k?sv=1&sig=s3cr3t%3D&se=2 failed: https://a.blob.core.windows.net/c/k?sig=s3cr3t%3D";
        let hidden = one_line(line);
        assert!(!hidden.contains("s3cr3t") && hidden.contains("se=2"), "{hidden}");
    }
}
