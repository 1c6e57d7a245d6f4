//! The rules of `__dlpack__(stream, max_version, dl_device, copy)`, as the Python array API standard has them.

use zarr_buffer_api::{DeviceId, DeviceKind};

use crate::abi::{DLDevice, VERSION};
use crate::{DlpackError, device_from_raw};

/// What a consumer passes to `__dlpack__`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// `stream`: the consumer's stream, as a number.
    pub stream: Option<i64>,
    /// `max_version`: the newest version that the consumer knows. Without it, the consumer knows the legacy structure only.
    pub max_version: Option<(u32, u32)>,
    /// `dl_device`: where the consumer wants the data, as kind and number.
    pub dl_device: Option<(i32, i32)>,
    /// `copy`: whether there must be, or must not be, a copy.
    pub copy: Option<bool>,
}

/// What the producer must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// Which structure to hand out.
    pub format: Format,
    /// On which device.
    pub device: DeviceId,
    /// Whether the bytes must be copied (and [`crate::Export::copied`] said).
    pub copy: bool,
    /// Who must wait for the data, the producer's copy included.
    pub synchronize: Synchronize,
}

/// Which structure, in which capsule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// [`crate::abi::DLManagedTensor`]
    Legacy,
    /// [`crate::abi::DLManagedTensorVersioned`]
    Versioned,
}

/// Who waits for the data before the consumer uses them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronize {
    /// Nobody: the consumer said that it takes care.
    Nothing,
    /// The calling thread.
    Host,
    /// A stream of the consumer, by its handle. 1 and 2 are the handles of CUDA's legacy and per-thread default streams, which the driver takes as they
    /// are; 0 is ROCm's default stream.
    Stream(u64),
}

impl Request {
    /// What to do for data on a device. `host_visible`: whether the host can dereference them where they are.
    ///
    /// # Errors
    /// [`DlpackError::Stream`] for a stream that the device's rules forbid; [`DlpackError::Transfer`] for a device that the data cannot be brought to (they can to the
    /// host); [`DlpackError::CopyRefused`].
    pub fn answer(&self, device: DeviceId, host_visible: bool) -> Result<Answer, DlpackError> {
        let wish = self.wish(device)?;
        let moved = wish != device && !host_visible;
        if moved && self.copy == Some(false) {
            return Err(DlpackError::CopyRefused { device, wish });
        }
        Ok(Answer {
            format: self.format(),
            device: wish,
            copy: moved || self.copy == Some(true),
            synchronize: synchronize(wish, self.stream)?,
        })
    }

    /// The structure that the consumer understands: versioned from 1.0 on.
    pub fn format(&self) -> Format {
        match self.max_version {
            Some((major, _)) if major >= VERSION.major => Format::Versioned,
            _ => Format::Legacy,
        }
    }

    fn wish(&self, device: DeviceId) -> Result<DeviceId, DlpackError> {
        let Some((device_type, device_id)) = self.dl_device else { return Ok(device) };
        match device_from_raw(DLDevice { device_type, device_id }) {
            Ok(wish) if wish == device => Ok(wish),
            Ok(wish) if wish.kind == DeviceKind::Cpu => Ok(DeviceId::CPU),
            // Pinned memory is handed out as number 0, whichever device pinned it.
            Ok(wish) if wish.kind == device.kind && crate::device::is_host(device.kind) && wish.ordinal == 0 => Ok(device),
            _ => Err(DlpackError::Transfer { device, device_type, device_id }),
        }
    }
}

/// Who must wait, given the device that is handed out and the consumer's `stream`.
fn synchronize(device: DeviceId, stream: Option<i64>) -> Result<Synchronize, DlpackError> {
    let Some(stream) = stream else {
        return Ok(match device.kind {
            DeviceKind::Cuda => Synchronize::Stream(1),
            DeviceKind::Rocm => Synchronize::Stream(0),
            // The consumer may dereference these from the host at once.
            _ => Synchronize::Host,
        });
    };
    let fail = |reason| Err(DlpackError::Stream { stream, device, reason });
    let cuda = matches!(device.kind, DeviceKind::Cuda | DeviceKind::CudaHost | DeviceKind::CudaManaged);
    let rocm = matches!(device.kind, DeviceKind::Rocm | DeviceKind::RocmHost);
    match (stream, u64::try_from(stream)) {
        _ if device.kind == DeviceKind::Cpu => fail("the host has no streams: only None is allowed"),
        (-1, _) => Ok(Synchronize::Nothing),
        (_, Err(_)) => fail("the only negative number is -1"),
        (0, _) if cuda => fail("0 may be the legacy or the per-thread default stream: say 1 or 2"),
        (1 | 2, _) if rocm => fail("the default stream is 0"),
        (_, Ok(handle)) if cuda || rocm => Ok(Synchronize::Stream(handle)),
        _ => fail("streams of this kind of device are not known here"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CUDA: DeviceId = DeviceId::new(DeviceKind::Cuda, 1);
    const PINNED: DeviceId = DeviceId::new(DeviceKind::CudaHost, 1);
    const ROCM: DeviceId = DeviceId::new(DeviceKind::Rocm, 0);

    fn stream(device: DeviceId, stream: Option<i64>) -> Option<Synchronize> {
        Request { stream, ..Request::default() }.answer(device, device == DeviceId::CPU).ok().map(|answer| answer.synchronize)
    }

    #[test]
    fn streams_of_cuda() {
        assert_eq!(stream(CUDA, None), Some(Synchronize::Stream(1)));
        assert_eq!(stream(CUDA, Some(-1)), Some(Synchronize::Nothing));
        assert_eq!(stream(CUDA, Some(0)), None);
        assert_eq!(stream(CUDA, Some(1)), Some(Synchronize::Stream(1)));
        assert_eq!(stream(CUDA, Some(2)), Some(Synchronize::Stream(2)));
        assert_eq!(stream(CUDA, Some(0x7f00_dead_beef)), Some(Synchronize::Stream(0x7f00_dead_beef)));
        assert_eq!(stream(CUDA, Some(-2)), None);
        assert_eq!(stream(PINNED, None), Some(Synchronize::Host));
        assert_eq!(stream(PINNED, Some(2)), Some(Synchronize::Stream(2)));
    }

    #[test]
    fn streams_of_others() {
        assert_eq!(stream(ROCM, None), Some(Synchronize::Stream(0)));
        assert_eq!(stream(ROCM, Some(0)), Some(Synchronize::Stream(0)));
        assert_eq!(stream(ROCM, Some(1)), None);
        assert_eq!(stream(ROCM, Some(2)), None);
        assert_eq!(stream(ROCM, Some(3)), Some(Synchronize::Stream(3)));
        assert_eq!(stream(DeviceId::CPU, None), Some(Synchronize::Host));
        for some in [-1, 0, 1, 2, 77] {
            assert_eq!(stream(DeviceId::CPU, Some(some)), None);
        }
        let one_api = DeviceId::new(DeviceKind::OneApi, 0);
        assert_eq!(stream(one_api, None), Some(Synchronize::Host));
        assert_eq!(stream(one_api, Some(-1)), Some(Synchronize::Nothing));
        assert_eq!(stream(one_api, Some(5)), None);
    }

    #[test]
    fn versions() {
        let format = |max_version| Request { max_version, ..Request::default() }.format();
        assert_eq!(format(None), Format::Legacy);
        assert_eq!(format(Some((0, 8))), Format::Legacy);
        assert_eq!(format(Some((1, 0))), Format::Versioned);
        assert_eq!(format(Some((1, 99))), Format::Versioned);
        assert_eq!(format(Some((2, 0))), Format::Versioned);
    }

    #[test]
    fn devices_and_copies() {
        let ask = |device, visible, dl_device, copy| {
            let answer = Request { dl_device, copy, ..Request::default() }.answer(device, visible);
            answer.map(|answer| (answer.device, answer.copy, answer.synchronize))
        };
        let (host, on_cuda) = (Synchronize::Host, Synchronize::Stream(1));
        assert_eq!(ask(CUDA, false, None, None).unwrap(), (CUDA, false, on_cuda));
        assert_eq!(ask(CUDA, false, Some((2, 1)), Some(false)).unwrap(), (CUDA, false, on_cuda));
        assert_eq!(ask(CUDA, false, Some((2, 1)), Some(true)).unwrap(), (CUDA, true, on_cuda));
        assert_eq!(ask(CUDA, false, Some((1, 0)), None).unwrap(), (DeviceId::CPU, true, host));
        assert!(matches!(ask(CUDA, false, Some((1, 0)), Some(false)), Err(DlpackError::CopyRefused { .. })));
        assert!(matches!(ask(CUDA, false, Some((2, 0)), None), Err(DlpackError::Transfer { .. })));
        assert!(matches!(ask(DeviceId::CPU, true, Some((2, 0)), None), Err(DlpackError::Transfer { .. })));
        assert!(matches!(ask(DeviceId::CPU, true, Some((99, 0)), None), Err(DlpackError::Transfer { .. })));
        assert_eq!(ask(PINNED, true, Some((1, 0)), Some(false)).unwrap(), (DeviceId::CPU, false, host));
        assert_eq!(ask(PINNED, true, Some((3, 0)), None).unwrap(), (PINNED, false, host));
        assert_eq!(ask(DeviceId::CPU, true, None, Some(true)).unwrap(), (DeviceId::CPU, true, host));
    }

    #[test]
    fn a_stream_is_one_of_the_device_asked_for() {
        let request = Request { stream: Some(1), dl_device: Some((1, 0)), ..Request::default() };
        assert!(matches!(request.answer(CUDA, false), Err(DlpackError::Stream { .. })));
    }
}
