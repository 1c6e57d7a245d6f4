//! Object stores by their URLs.

use std::sync::Arc;

use object_store::ClientConfigKey;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreScheme};
use url::Url;
use zarr_store_api::{AnyStore, AsyncStore, StoreError, StoreErrorKind};

use super::per_process::PerProcess;
use super::{OpenOptions, is_archive};
use crate::{ObjectStoreAdapter, OnRuntime};

/// What a URL names: the scheme and host (or bucket), and the path below.
fn parse(url: &str) -> Result<(Url, Path), StoreError> {
    let bad = |why: String| StoreError::new(StoreErrorKind::Parameter, format!("{url}: {why}"));
    let parsed = Url::parse(url).map_err(|error| bad(error.to_string()))?;
    if parsed.query().is_some() || parsed.fragment().is_some() {
        return Err(bad("`?` and `#` have no meaning in the URL of a store".to_owned()));
    }
    if parsed.host_str().is_none_or(str::is_empty) {
        return Err(bad("the URL names no bucket, container or server behind its scheme".to_owned()));
    }
    let (_, path) = ObjectStoreScheme::parse(&parsed).map_err(|error| bad(error.to_string()))?;
    Ok((parsed, path))
}

/// The client that `build` gives, in every process that a fork makes of this one.
fn built<S: ObjectStore>(
    url: &str,
    build: impl Fn() -> Result<S, object_store::Error> + Send + Sync + 'static,
) -> Result<Arc<dyn ObjectStore>, StoreError> {
    match PerProcess::new(build) {
        Ok(store) => Ok(Arc::new(store)),
        Err(error) => Err(StoreError::new(StoreErrorKind::Parameter, format!("{url}: {error}"))),
    }
}

/// Refuses an address of a server that is no URL, which the clients take for a mistake of the program.
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
fn check_endpoint(url: &str, setting: &str, endpoint: Option<String>) -> Result<(), StoreError> {
    match endpoint {
        Some(text) if !Url::parse(&text).is_ok_and(|parsed| ["http", "https"].contains(&parsed.scheme()) && parsed.has_host()) => {
            let message = format!("{url}: the {setting} `{text}` is no URL of a server, such as `https://host:9000`");
            Err(StoreError::new(StoreErrorKind::Parameter, message))
        }
        _ => Ok(()),
    }
}

/// The network clients need a TLS implementation. Whoever has installed one keeps it.
fn install_tls() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may just have installed one, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Sets all settings on a builder, by name.
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure", feature = "http"))]
macro_rules! configure {
    ($builder:expr, $options:expr) => {{
        let mut builder = $builder;
        for (name, value) in &$options.settings {
            let key = name.to_ascii_lowercase().parse().map_err(|_: object_store::Error| {
                StoreError::new(StoreErrorKind::Parameter, format!("there is no setting `{name}` for this kind of store"))
            })?;
            builder = builder.with_config(key, value);
        }
        builder
    }};
}

/// A server is given up when it sends nothing for this long (in which a request goes out, too), not when all of an answer takes long: large values over slow lines
/// do. Settings and environment variables say otherwise.
const SILENCE: &str = "2 minutes";
/// As long as nobody waits.
const NEVER: &str = "1 day";

/// Sets that on a builder, unless the environment has a word on it.
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
macro_rules! patient {
    ($builder:expr, $key:expr, $environment:literal) => {{
        let mut builder = $builder;
        if std::env::var_os(concat!($environment, "_TIMEOUT")).is_none() {
            builder = builder.with_config($key(ClientConfigKey::Timeout), NEVER);
        }
        if std::env::var_os(concat!($environment, "_READ_TIMEOUT")).is_none() {
            builder = builder.with_config($key(ClientConfigKey::ReadTimeout), SILENCE);
        }
        builder
    }};
}

/// The store below the path, or the zip archive there.
fn finish(
    url: &str,
    store: Arc<dyn ObjectStore>,
    path: Path,
    adjust: impl Fn(ObjectStoreAdapter) -> ObjectStoreAdapter,
) -> Result<AnyStore, StoreError> {
    let name = url.trim_end_matches('/');
    if !is_archive(path.as_ref()) {
        let store = adjust(ObjectStoreAdapter::new(store, name).with_prefix(path));
        return Ok(OnRuntime::new(store)?.into());
    }
    let file = path.filename().unwrap_or_default().to_owned();
    let above = path.parent().unwrap_or_default();
    let name = name.rsplit_once('/').map_or(name, |(above, _)| above);
    archive(adjust(ObjectStoreAdapter::new(store, name).with_prefix(above)), &file)
}

#[cfg(feature = "zip")]
fn archive(store: impl AsyncStore, file: &str) -> Result<AnyStore, StoreError> {
    let store = Arc::new(crate::AsyncToBlocking::new(store)?);
    let key = zarr_store_api::StoreKey::new(file)?;
    Ok(crate::ZipStore::open_in(store, key, crate::ZipLimits::default())?.into())
}

#[cfg(not(feature = "zip"))]
fn archive(_: impl AsyncStore, file: &str) -> Result<AnyStore, StoreError> {
    Err(super::missing(file, "zip"))
}

#[cfg(feature = "s3")]
pub(super) fn s3(url: &str, options: &OpenOptions) -> Result<AnyStore, StoreError> {
    use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey as Key};
    install_tls();
    let (_, path) = parse(url)?;
    let mut builder = configure!(patient!(AmazonS3Builder::from_env().with_url(url), Key::Client, "AWS"), options);
    check_endpoint(url, "endpoint", builder.get_config_value(&Key::Endpoint))?;
    let credentials = [
        Key::AccessKeyId,
        Key::SecretAccessKey,
        Key::WebIdentityTokenFile,
        Key::ContainerCredentialsRelativeUri,
        Key::ContainerCredentialsFullUri,
    ];
    let asked = is_set(options, "AWS_SKIP_SIGNATURE", "skip_signature");
    if !asked && credentials.iter().all(|key| builder.get_config_value(key).is_none()) {
        builder = builder.with_skip_signature(true);
    }
    finish(url, built(url, move || builder.clone().build())?, path, |store| store)
}

#[cfg(feature = "gcs")]
pub(super) fn gcs(url: &str, options: &OpenOptions) -> Result<AnyStore, StoreError> {
    use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey as Key};
    install_tls();
    let (_, path) = parse(url)?;
    let mut builder = configure!(patient!(GoogleCloudStorageBuilder::from_env().with_url(url), Key::Client, "GOOGLE"), options);
    check_endpoint(url, "base_url", builder.get_config_value(&Key::BaseUrl))?;
    let credentials = [Key::ServiceAccount, Key::ServiceAccountKey, Key::ApplicationCredentials];
    let asked = is_set(options, "GOOGLE_SKIP_SIGNATURE", "skip_signature");
    let by_gcloud =
        std::env::home_dir().map(|home| home.join(".config/gcloud/application_default_credentials.json")).is_some_and(|file| file.exists());
    let found = credentials.iter().any(|key| builder.get_config_value(key).is_some());
    if !asked && !found && !by_gcloud {
        builder = builder.with_skip_signature(true);
    }
    finish(url, built(url, move || builder.clone().build())?, path, |store| store)
}

#[cfg(feature = "azure")]
pub(super) fn azure(url: &str, options: &OpenOptions) -> Result<AnyStore, StoreError> {
    use object_store::azure::{AzureConfigKey as Key, MicrosoftAzureBuilder};
    install_tls();
    let (_, path) = parse(url)?;
    let mut builder = configure!(patient!(MicrosoftAzureBuilder::from_env().with_url(url), Key::Client, "AZURE"), options);
    check_endpoint(url, "endpoint", builder.get_config_value(&Key::Endpoint))?;
    let credentials = [Key::AccessKey, Key::SasKey, Key::Token, Key::ClientSecret, Key::FederatedTokenFile, Key::MsiEndpoint];
    let asked = is_set(options, "AZURE_SKIP_SIGNATURE", "skip_signature") || is_set(options, "AZURE_USE_AZURE_CLI", "use_azure_cli");
    if !asked && credentials.iter().all(|key| builder.get_config_value(key).is_none()) {
        builder = builder.with_skip_signature(true);
    }
    finish(url, built(url, move || builder.clone().build())?, path, |store| store)
}

#[cfg(feature = "http")]
pub(super) fn http(url: &str, options: &OpenOptions) -> Result<AnyStore, StoreError> {
    use object_store::http::HttpBuilder;
    install_tls();
    let (parsed, _) = parse(url)?;
    let path = Path::from_url_path(parsed.path()).map_err(|error| StoreError::new(StoreErrorKind::Parameter, format!("{url}: {error}")))?;
    let builder = HttpBuilder::new()
        .with_url(&parsed[..url::Position::BeforePath])
        .with_config(ClientConfigKey::Timeout, NEVER)
        .with_config(ClientConfigKey::ReadTimeout, SILENCE)
        .with_config(ClientConfigKey::AllowHttp, (parsed.scheme() == "http").to_string());
    let builder = configure!(builder, options);
    finish(url, built(url, move || builder.clone().build())?, path, |store| store.without_writes().without_listing())
}

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
fn is_set(options: &OpenOptions, variable: &str, setting: &str) -> bool {
    std::env::var_os(variable).is_some()
        || options.settings.iter().any(|(name, _)| {
            let name = name.to_ascii_lowercase();
            name == setting || name == variable.to_ascii_lowercase()
        })
}

/// Schemes of which the feature is off.
macro_rules! missing {
    ($($feature:literal $name:ident),*) => {$(
        #[cfg(not(feature = $feature))]
        pub(super) fn $name(url: &str, _: &OpenOptions) -> Result<AnyStore, StoreError> {
            Err(super::missing(url, $feature))
        }
    )*};
}

missing!("s3" s3, "gcs" gcs, "azure" azure, "http" http);
