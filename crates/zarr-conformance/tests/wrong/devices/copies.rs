//! Devices that copy and fill something else.

use zarr_buffer_api::{BufferErrorKind, Layout};

use super::{Kind, by_several, changed, wrong};
use crate::idle::Wrong;

pub(crate) fn table() -> Vec<Wrong> {
    vec![
        wrong("device/copy/round-trip", "copies of more than a megabyte lose their last byte", |device| {
            device.copy = |_, queue, source, destination| match source.len() {
                len if len > 1 << 20 && len == destination.len() => queue.copy(&source.slice(0..len - 1)?, &destination.slice(0..len - 1)?),
                _ => queue.copy(source, destination),
            };
        }),
        wrong("device/copy/plain-host-memory", "memory that is not the device's is not written", |device| {
            device.copy = |state, queue, source, destination| match (state.kind(source), state.kind(destination)) {
                (Kind::Device, Kind::Plain) if source.len() == destination.len() && destination.is_host_visible() => Ok(()),
                _ => queue.copy(source, destination),
            };
        }),
        wrong("device/copy/within-device", "copies within the device move", |device| {
            device.copy = |state, queue, source, destination| {
                queue.copy(source, destination)?;
                if (state.kind(source), state.kind(destination)) == (Kind::Device, Kind::Device) {
                    source.host_write()?.fill(0);
                }
                Ok(())
            };
        }),
        wrong("device/copy/within-host", "copies from host memory to host memory are left to the host", |device| {
            device.copy = |state, queue, source, destination| match (state.kind(source), state.kind(destination)) {
                (Kind::Plain, Kind::Staging) => Ok(()),
                _ => queue.copy(source, destination),
            };
        }),
        wrong("device/copy/exact", "short copies write a byte more", |device| {
            device.copy = |_, queue, source, destination| {
                queue.copy(source, destination)?;
                if (1..64).contains(&destination.len()) && destination.offset() > 0 {
                    destination.host_write()?[destination.len() - 1] ^= 1;
                }
                Ok(())
            };
        }),
        wrong("device/copy/lengths", "of buffers of different lengths the shorter counts", |device| {
            device.copy = |_, queue, source, destination| {
                let len = source.len().min(destination.len());
                queue.copy(&source.slice(0..len)?, &destination.slice(0..len)?)
            };
        }),
        wrong("device/copy/unreachable", "a copy from where the device cannot reach copies nothing", |device| {
            device.copy = |_, queue, source, destination| match queue.copy(source, destination) {
                Err(error) if matches!(error.kind, BufferErrorKind::Unsupported | BufferErrorKind::NotHostVisible) => Ok(()),
                result => result,
            };
        }),
        wrong("device/region/copy", "boxes that run backwards are copied forwards", |device| {
            device.copy_region = |_, queue, source, destination| {
                let straight = |layout: &mut Layout| {
                    layout.offset = layout.span().map_or(layout.offset, |span| span.start);
                    layout.strides.iter_mut().for_each(|stride| *stride = stride.abs());
                };
                queue.copy_region(&changed(source, straight), destination)
            };
        }),
        wrong("device/region/copy", "where a box of the source starts does not count", |device| {
            device.copy_region = |_, queue, source, destination| match source.layout.check_within(source.buffer.len()) {
                Ok(()) => {
                    let layout = Layout { offset: 0, ..source.layout.clone() };
                    let front = changed(source, |front| *front = layout);
                    let fits = front.layout.check_within(front.buffer.len()).is_ok();
                    queue.copy_region(if fits { &front } else { source }, destination)
                }
                Err(error) => Err(error),
            };
        }),
        wrong("device/region/copy", "boxes of odd elements are left out", |device| {
            device.copy_region = |_, queue, source, destination| match source.layout.item_size {
                3 if destination.layout.item_size == 3 => Ok(()),
                _ => queue.copy_region(source, destination),
            };
        }),
        wrong("device/region/fill", "gaps between elements are filled, too", |device| {
            device.fill_region = |_, queue, destination, element| {
                if element.len() != 1 || destination.layout.is_empty() || destination.layout.item_size != 1 {
                    return queue.fill_region(destination, element);
                }
                let span = destination.layout.span()?;
                let all = Layout { offset: span.start, shape: vec![span.len()], strides: vec![1], item_size: 1 };
                queue.fill_region(&changed(destination, |layout| *layout = all), element)
            };
        }),
        wrong("device/region/empty", "an axis of no elements has one", |device| {
            device.fill_region = |_, queue, destination, element| {
                queue.fill_region(&changed(destination, |layout| layout.shape.iter_mut().for_each(|len| *len = (*len).max(1))), element)
            };
        }),
        wrong("device/region/refuses", "boxes of other shapes are taken, and nothing is copied", |device| {
            device.copy_region = |_, queue, source, destination| match source.layout.shape == destination.layout.shape {
                true => queue.copy_region(source, destination),
                false => Ok(()),
            };
        }),
        wrong("device/region/refuses", "half an element is taken, and nothing is filled", |device| {
            device.fill_region = |_, queue, destination, element| match element.len() * 2 == destination.layout.item_size {
                true => Ok(()),
                false => queue.fill_region(destination, element),
            };
        }),
        by_several(
            &[
                "device/region/fill",
                "device/region/refuses",
                "device/queue/in-order",
                "device/queue/across",
                "device/queue/threads-one-buffer",
            ],
            "only the first element is filled",
            |device| {
                device.fill_region = |_, queue, destination, element| {
                    queue.fill_region(&changed(destination, |layout| layout.shape.iter_mut().for_each(|len| *len = (*len).min(1))), element)
                };
            },
        ),
    ]
}
