//! The laws of wrappers: every method arrives as itself, once, and its answer comes back.

use std::fmt;
use std::sync::Arc;

use zarr_buffer_api::{Buffer, Device, DeviceId, HostDevice};
use zarr_store_api::{AnyStore, AsyncStore, ByteRange, Bytes, Listing, Store, StoreError, ValueReader, Version};

use super::face::{Face, block_on, cannot};
use super::fixture::{key, prefix};
use super::recorder::{DIRECT, LISTED, Recorder, SIZE, VERSION, answer, show_ranges};
use crate::suite::{Broken, Case, Subject, Suite, Trial, ensure, ensure_same};

/// A wrapper around stores, to be checked for forwarding every method as it is, those with defaults included.
pub trait WrapperSubject: Subject {
    /// The wrapper over `store`.
    fn wrap(&self, store: AnyStore) -> AnyStore;
}

/// A wrapper around stores as it comes, with what it does not support.
///
/// ```
/// use zarr_conformance::store::WrapperUnderTest;
/// use zarr_store_api::AnyStore;
///
/// // A box around a store is a store.
/// let boxed = |store| match store {
///     AnyStore::Blocking(store) => AnyStore::blocking(Box::new(store)),
///     AnyStore::Async(store) => AnyStore::asynchronous(Box::new(store)),
/// };
/// zarr_conformance::assert_conforms(WrapperUnderTest::new("box", boxed));
/// ```
pub struct WrapperUnderTest {
    name: String,
    wrap: Box<dyn Fn(AnyStore) -> AnyStore + Send + Sync>,
    unsupported: Vec<String>,
}

impl fmt::Debug for WrapperUnderTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WrapperUnderTest").field("name", &self.name).field("unsupported", &self.unsupported).finish_non_exhaustive()
    }
}

impl WrapperUnderTest {
    /// A wrapper for blocking stores and for async ones, that gives the form it is given.
    pub fn new(name: impl Into<String>, wrap: impl Fn(AnyStore) -> AnyStore + Send + Sync + 'static) -> Self {
        Self { name: name.into(), wrap: Box::new(wrap), unsupported: Vec::new() }
    }

    /// Declares that the wrapper hides the writing half of stores.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        for form in ["blocking", "async"] {
            self.unsupported.extend(["as_writable", "set", "erase"].map(|method| format!("wrapper/{form}/{method}")));
        }
        self
    }

    /// Declares that cases whose ids begin with `start` are not supported.
    #[must_use]
    pub fn without(mut self, start: impl Into<String>) -> Self {
        self.unsupported.push(start.into());
        self
    }
}

impl Subject for WrapperUnderTest {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn unsupported(&self) -> &[String] {
        &self.unsupported
    }
}

impl WrapperSubject for WrapperUnderTest {
    fn wrap(&self, store: AnyStore) -> AnyStore {
        (self.wrap)(store)
    }
}

impl From<WrapperUnderTest> for Suite {
    fn from(subject: WrapperUnderTest) -> Self {
        Self::new(Arc::new(subject) as Arc<dyn WrapperSubject>, wrapper_cases())
    }
}

type WrapperCase = Case<dyn WrapperSubject>;

/// All cases for wrappers around stores: one for each method of each form.
pub fn wrapper_cases() -> Vec<WrapperCase> {
    let mut cases = Vec::new();
    for form in [Form::Blocking, Form::Async] {
        cases.extend(COMMON.iter().map(|(method, check)| call(form, method, *check)));
        cases.push(capability(form, "as_writable", AnyStore::is_writable, |claims| Recorder::new(claims, true)));
        cases.push(capability(form, "as_listable", AnyStore::is_listable, |claims| Recorder::new(true, claims)));
    }
    cases.extend(ASYNC.iter().map(|(method, check)| call(Form::Async, method, *check)));
    cases.extend(BLOCKING.iter().map(|(method, check)| call(Form::Blocking, method, *check)));
    cases
}

#[derive(Clone, Copy)]
enum Form {
    Blocking,
    Async,
}

impl Form {
    fn name(self) -> &'static str {
        match self {
            Self::Blocking => "blocking",
            Self::Async => "async",
        }
    }

    fn wrap(self, subject: &dyn WrapperSubject, recorder: Arc<Recorder>) -> Result<Face, Broken> {
        let wrapped = subject.wrap(match self {
            Self::Blocking => AnyStore::from(recorder as Arc<dyn Store>),
            Self::Async => AnyStore::from(recorder as Arc<dyn AsyncStore>),
        });
        match (self, &wrapped) {
            (Self::Blocking, AnyStore::Blocking(_)) | (Self::Async, AnyStore::Async(_)) => Ok(Face(wrapped)),
            _ => Err(Broken::Unsupported(format!("the wrapper over a store of the {} form is of the other", self.name()))),
        }
    }
}

/// Calls a method, looks at the answer, and says with what it must arrive.
type Check = fn(&Face) -> Result<String, Broken>;

fn call(form: Form, method: &'static str, check: Check) -> WrapperCase {
    let says = "the method arrives as itself, once, with what it was given, and its answer comes back as it is";
    Case::new(format!("wrapper/{}/{method}", form.name()), says, move |subject: &(dyn WrapperSubject + 'static), _: &Trial| {
        let recorder = Arc::new(Recorder::new(true, true));
        let given = check(&form.wrap(subject, Arc::clone(&recorder))?);
        let calls = recorder.calls();
        // What arrived tells more than what then went wrong.
        if !calls.is_empty() || given.is_ok() {
            let silent = matches!(method, "reads_to_device" | "reader.version" | "reader.is_parallel");
            let others: Vec<_> = calls.iter().map(|(arrived, _)| *arrived).filter(|arrived| *arrived != method).collect();
            if !others.is_empty() {
                return Err(Broken::Unsupported(format!("`{method}` arrives as {others:?}")));
            }
            ensure!(calls.len() == usize::from(!silent), "`{method}` arrives {} times", calls.len());
        }
        let given = given?;
        for (_, arrived) in calls {
            ensure!(arrived == given, "`{method}` arrives with {arrived}, called with {given}");
        }
        Ok(())
    })
}

fn capability(form: Form, method: &'static str, claims: fn(&AnyStore) -> bool, recorder: fn(bool) -> Recorder) -> WrapperCase {
    let says = "the wrapper claims what the store below it claims, and no more";
    Case::new(format!("wrapper/{}/{method}", form.name()), says, move |subject: &(dyn WrapperSubject + 'static), _: &Trial| {
        let without = form.wrap(subject, Arc::new(recorder(false)))?;
        ensure!(!claims(&without.0), "`{method}` claims what the store below cannot do");
        let with = form.wrap(subject, Arc::new(recorder(true)))?;
        if claims(&with.0) { Ok(()) } else { Err(Broken::Unsupported(format!("`{method}` hides what the store below can do"))) }
    })
}

/// Methods of both forms.
const COMMON: [(&str, Check); 12] = [
    ("get", |face| {
        ensure!(face.get(&key("k"), RANGE)? == Some(answer("get")), "another value comes back");
        Ok(RANGE.to_string())
    }),
    ("size", |face| {
        ensure!(face.size(&key("k"))? == Some(SIZE), "another size comes back");
        Ok(String::new())
    }),
    ("get_ranges", |face| {
        let read = face.get_ranges(&key("k"), &[RANGE, ByteRange::All])?;
        ensure!(read == Some(vec![answer("get_ranges"); 2]), "other values come back");
        Ok(show_ranges(&[RANGE, ByteRange::All]))
    }),
    ("get_into", |face| filled("get_into", |dst| face.get_into(&key("k"), RANGE, dst))),
    ("get_into_buffer", |face| {
        let device: Arc<dyn Device> = Arc::new(HostDevice);
        let queue = device.create_queue()?;
        filled("get_into_buffer", |dst| {
            let buffer = Buffer::from_vec(dst.to_vec());
            let read = face.get_into_buffer(&key("k"), RANGE, &buffer, &device, &queue)?;
            if let Ok(memory) = buffer.host_read() {
                dst.copy_from_slice(&memory);
            }
            Ok(read)
        })
    }),
    ("reads_to_device", |face| {
        let claims = |device: DeviceId| match &face.0 {
            AnyStore::Blocking(store) => store.reads_to_device(device),
            AnyStore::Async(store) => store.reads_to_device(device),
        };
        ensure!(claims(DIRECT), "a device that the store below reads straight to is denied");
        ensure!(!claims(DeviceId::CPU), "a device that the store below does not read straight to is claimed");
        Ok(String::new())
    }),
    ("set", |face| {
        face.set(&key("k"), Bytes::from_static(b"value"))?;
        Ok("5".to_owned())
    }),
    ("set_vectored", |face| {
        face.set_vectored(&key("k"), vec![Bytes::from_static(b"one"), Bytes::new(), Bytes::from_static(b"other")])?;
        Ok("[3, 0, 5]".to_owned())
    }),
    ("erase", |face| {
        face.erase(&key("k"))?;
        Ok(String::new())
    }),
    ("erase_prefix", |face| {
        face.erase_prefix(&prefix("p"))?;
        Ok(String::new())
    }),
    ("list", |face| {
        let listed = face.list(&prefix("p"))?;
        ensure!(listed == [prefix("p").key(LISTED)?], "another listing comes back: {listed:?}");
        Ok(String::new())
    }),
    ("list_dir", |face| {
        let listed = face.list_dir(&prefix("p"))?;
        let want = Listing { keys: vec![prefix("p").key(LISTED)?], prefixes: vec![prefix("p").join(LISTED)?] };
        ensure!(listed == want, "another listing comes back: {listed:?}");
        Ok(String::new())
    }),
];

/// Methods of the async form.
const ASYNC: [(&str, Check); 1] = [("get_versioned", |face| {
    let AnyStore::Async(store) = &face.0 else { return Err(cannot("called so").into()) };
    let (ranges, given) = ([RANGE, ByteRange::All], Some(Version::new("given")));
    let read = block_on(store.get_versioned(&key("k"), &ranges, given.as_ref()))?;
    let want = (vec![answer("get_versioned"); 2], Some(Version::new(VERSION)));
    ensure!(read == Some(want), "other values, or another version, come back: {read:?}");
    Ok(format!("{} of {:?}", show_ranges(&ranges), given.as_ref()))
})];

/// Methods of the blocking form, and those of the readers that it gives.
const BLOCKING: [(&str, Check); 8] = [
    ("get_pieces", |face| lent("get_pieces", |piece, each| blocking(face)?.get_pieces(&key("k"), RANGE, piece, each))),
    ("set_pieces", |face| {
        let writable = blocking(face)?.as_writable().ok_or_else(|| cannot("written to"))?;
        writable.set_pieces(&key("k"), 4, &mut [0; 3], &mut |start, piece| piece.fill(start as u8 + 7))?;
        Ok("[7, 7, 7, 7] by 3".to_owned())
    }),
    ("reader.get", |face| {
        ensure!(reader(face)?.get(RANGE)? == Some(answer("reader.get")), "another value comes back");
        Ok(RANGE.to_string())
    }),
    ("reader.get_ranges", |face| {
        let read = reader(face)?.get_ranges(&[RANGE, ByteRange::All])?;
        ensure!(read == Some(vec![answer("reader.get_ranges"); 2]), "other values come back");
        Ok(show_ranges(&[RANGE, ByteRange::All]))
    }),
    ("reader.get_into", |face| filled("reader.get_into", |dst| reader(face)?.get_into(RANGE, dst))),
    ("reader.get_pieces", |face| lent("reader.get_pieces", |piece, each| reader(face)?.get_pieces(RANGE, piece, each))),
    ("reader.version", |face| match reader(face)?.version() {
        Some(version) if version == Version::new("reader.version") => Ok(String::new()),
        Some(other) => Err(Broken::Failed(format!("the version is another one, {other:?}"))),
        None => Err(Broken::Unsupported("which version it is of is not said".into())),
    }),
    ("reader.is_parallel", |face| match reader(face)?.is_parallel() {
        true => Ok(String::new()),
        false => Err(Broken::Unsupported("that several threads read it faster is denied".into())),
    }),
];

const RANGE: ByteRange = ByteRange::Suffix(1234);

fn blocking(face: &Face) -> Result<&dyn Store, StoreError> {
    match &face.0 {
        AnyStore::Blocking(store) => Ok(&**store),
        AnyStore::Async(_) => Err(cannot("called so")),
    }
}

fn reader(face: &Face) -> Result<Box<dyn ValueReader + '_>, StoreError> {
    blocking(face)?.reader(&key("k"))
}

fn filled(method: &str, read: impl FnOnce(&mut [u8]) -> Result<Option<usize>, StoreError>) -> Result<String, Broken> {
    let mut dst = [0; 64];
    let length = read(&mut dst)?;
    let want = answer(method);
    ensure!(length == Some(want.len()), "another length comes back: {length:?}");
    ensure_same("what comes back", dst.get(..want.len()).unwrap_or_default(), &want)?;
    Ok(RANGE.to_string())
}

fn lent(
    method: &str,
    read: impl FnOnce(&mut [u8], &mut dyn FnMut(u64, &[u8])) -> Result<Option<u64>, StoreError>,
) -> Result<String, Broken> {
    let mut all = Vec::new();
    let length = read(&mut [0; 9], &mut |_, piece| all.extend_from_slice(piece))?;
    let want = answer(method);
    ensure!(length == Some(want.len() as u64), "another length comes back: {length:?}");
    ensure_same("what comes back", &all, &want)?;
    Ok(format!("{RANGE} by 9"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// Methods of the contract that no wrapper has to forward: the name is its own, and a store that says it is only the face of another would be
    /// taken for that.
    const OWN: [&str; 3] = ["name", "native_async", "native_blocking"];

    /// The names of the methods of a trait, in the text of the file that defines it.
    fn methods(source: &str, name: &str) -> BTreeSet<String> {
        let starts = [":", "<", " "].map(|end| format!("pub trait {name}{end}"));
        let body = source.lines().skip_while(|line| !starts.iter().any(|start| line.starts_with(start.as_str())));
        let body = body.skip(1).take_while(|line| *line != "}");
        let names = body.filter_map(|line| line.strip_prefix("    ")?.trim_start_matches("async ").strip_prefix("fn "));
        names.map(|rest| rest.split(['(', '<']).next().unwrap_or(rest).to_owned()).collect()
    }

    #[test]
    fn every_method_of_the_contract_has_a_case() {
        let contract = Path::new(env!("CARGO_MANIFEST_DIR")).join("../zarr-store-api/src");
        let Ok(blocking) = std::fs::read_to_string(contract.join("blocking.rs")) else {
            eprintln!("skipped: the source of zarr-store-api is not beside this crate");
            return;
        };
        let asynchronous = std::fs::read_to_string(contract.join("asynchronous.rs")).unwrap();
        let value = std::fs::read_to_string(contract.join("value.rs")).unwrap();
        let mut want = BTreeSet::new();
        for (form, source, traits) in [
            ("blocking", &blocking, ["ReadableStore", "WritableStore", "ListableStore", "Store"]),
            ("async", &asynchronous, ["AsyncReadableStore", "AsyncWritableStore", "AsyncListableStore", "AsyncStore"]),
        ] {
            for name in traits {
                let methods = methods(source, name);
                assert!(!methods.is_empty(), "no trait {name} is found");
                let forwarded = methods.iter().filter(|method| !OWN.contains(&method.as_str()));
                want.extend(forwarded.map(|method| format!("wrapper/{form}/{method}")));
            }
        }
        // A reader is forwarded as the methods that it has.
        assert!(want.remove("wrapper/blocking/reader"));
        want.extend(methods(&value, "ValueReader").iter().map(|method| format!("wrapper/blocking/reader.{method}")));
        let cases: BTreeSet<String> = wrapper_cases().iter().map(|case| case.id().to_owned()).collect();
        assert_eq!(cases, want);
    }
}
