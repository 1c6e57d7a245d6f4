//! Ranges for NVIDIA's profilers, on the calling thread's time line.
//!
//! The library that takes them (`libnvToolsExt`) comes with profilers and toolkits, not with the driver. It is opened at the first range; where it is
//! not there, a range costs one look at a flag.
//!
//! ```
//! let _range = zarr_buffer_cuda::nvtx::range("fetch");
//! ```

use std::ffi::{CString, c_char, c_int};
use std::marker::PhantomData;
use std::sync::OnceLock;

use libloading::Library;

const NAMES: [&str; 4] = ["libnvToolsExt.so.1", "libnvToolsExt.so", "libnvtx3interop.so.1", "libnvtx3interop.so"];

struct Tools {
    push: unsafe extern "C" fn(*const c_char) -> c_int,
    pop: unsafe extern "C" fn() -> c_int,
    /// What the functions are in: never closed.
    _library: Library,
}

fn tools() -> Option<&'static Tools> {
    static TOOLS: OnceLock<Option<Tools>> = OnceLock::new();
    TOOLS.get_or_init(|| NAMES.into_iter().find_map(open)).as_ref()
}

fn open(name: &str) -> Option<Tools> {
    // SAFETY: the library's initialisers are fit to be run at any time.
    let library = unsafe { Library::new(name) }.ok()?;
    // SAFETY: `int nvtxRangePushA(const char*)`, in every version of the library.
    let push = *unsafe { library.get::<unsafe extern "C" fn(*const c_char) -> c_int>("nvtxRangePushA") }.ok()?;
    // SAFETY: `int nvtxRangePop(void)`, likewise.
    let pop = *unsafe { library.get::<unsafe extern "C" fn() -> c_int>("nvtxRangePop") }.ok()?;
    Some(Tools { push, pop, _library: library })
}

/// Whether ranges reach a profiler's library.
pub fn is_available() -> bool {
    tools().is_some()
}

/// A range that ends when the value is dropped, on the thread that began it.
#[derive(Debug)]
#[must_use = "the range ends when this is dropped"]
pub struct Range {
    pushed: bool,
    /// Ranges nest on one thread.
    thread: PhantomData<*const ()>,
}

/// Begins a range. A name with a zero byte is cut there.
pub fn range(name: &str) -> Range {
    let pushed = tools().is_some_and(|tools| {
        let name = name.split('\0').next().unwrap_or_default();
        CString::new(name).is_ok_and(|name| {
            // SAFETY: the name ends with a zero, and is copied during this call.
            unsafe { (tools.push)(name.as_ptr()) };
            true
        })
    });
    Range { pushed, thread: PhantomData }
}

impl Drop for Range {
    fn drop(&mut self) {
        if let (true, Some(tools)) = (self.pushed, tools()) {
            // SAFETY: ends the range that this thread began last: guards are dropped in the reverse order, or names get mixed up and nothing else.
            unsafe { (tools.pop)() };
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn ranges_nest_with_and_without_the_library() {
        let _outer = super::range("outer");
        let _inner = super::range("inner\0cut");
    }
}
