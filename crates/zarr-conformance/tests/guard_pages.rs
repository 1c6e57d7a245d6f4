//! A codec that reads a byte past its input, and makes nothing of it: no value shows it, but a page that cannot be read does.
#![cfg(unix)]

use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::Arc;

use zarr_codec_api::{ByteLen, BytesToBytes, CodecError, HostProvider, Representation, SimpleCodec};
use zarr_conformance::codec::CodecUnderTest;
use zarr_conformance::{Suite, Trial};
use zarr_meta::Extension;

#[derive(Debug)]
struct Verbatim {
    reads_past: bool,
}

impl BytesToBytes for Verbatim {
    fn encoded_len(&self, decoded: ByteLen) -> ByteLen {
        decoded
    }
    fn decode(&self, encoded: &[u8], decoded: &mut [u8]) -> Result<(), CodecError> {
        if self.reads_past {
            // SAFETY: none; this is the mistake. It hits memory of the suite, or what the allocator keeps behind a block.
            std::hint::black_box(unsafe { encoded.as_ptr().wrapping_add(encoded.len()).read_volatile() });
        }
        if encoded.len() != decoded.len() {
            return Err(CodecError::size("verbatim", decoded.len(), encoded.len()));
        }
        decoded.copy_from_slice(encoded);
        Ok(())
    }
    fn decode_growing(&self, encoded: &[u8], decoded: &mut Vec<u8>, limit: usize) -> Result<(), CodecError> {
        if encoded.len() > limit {
            return Err(CodecError::limit("verbatim", limit));
        }
        decoded.extend_from_slice(encoded);
        Ok(())
    }
    fn encode(&self, decoded: &[u8], encoded: &mut Vec<u8>) -> Result<(), CodecError> {
        encoded.extend_from_slice(decoded);
        Ok(())
    }
}

fn check(reads_past: bool) {
    let provider = HostProvider::new("test").with("verbatim", move |_, _| Ok(SimpleCodec::bytes_to_bytes(Verbatim { reads_past })));
    let subject = CodecUnderTest::new(Arc::new(provider), Extension::new("verbatim"), Representation::Bytes(ByteLen::Exact(100)));
    Suite::from(subject).run(&Trial::default().with_guard_pages()).assert_conforms();
}

#[test]
fn who_does_not_read_past_conforms() {
    check(false);
}

#[test]
#[ignore = "takes its process down; the test below starts one for it"]
fn reads_past() {
    check(true);
}

#[test]
fn who_reads_past_takes_the_process_down() {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).args(["--exact", "reads_past", "--ignored"]).output().unwrap();
    let signal = output.status.signal();
    assert!(matches!(signal, Some(7 | 10 | 11)), "SIGSEGV or SIGBUS was expected: {output:?}");
}
