use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Copies, and the bytes that they moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moved {
    /// Calls.
    pub copies: u64,
    /// Bytes.
    pub bytes: u64,
}

/// What a toy device was asked to do, since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Counters {
    /// Copies from host memory (staging included) to device memory.
    pub host_to_device: Moved,
    /// Copies from device memory to host memory (staging included).
    pub device_to_host: Moved,
    /// Copies within device memory.
    pub device_to_device: Moved,
    /// Copies within host memory that went through a queue of this device.
    pub host_to_host: Moved,
    /// Strided copies within device memory.
    pub region_copies: Moved,
    /// Strided fills.
    pub fills: Moved,
    /// Batches decoded or encoded.
    pub kernel_launches: u64,
    /// Chunks in those batches.
    pub kernel_slots: u64,
    /// Copies of statuses back to the host, a few bytes each; not among `device_to_host`.
    pub status_copies: u64,
    /// Waits that were enqueued.
    pub queue_waits: u64,
    /// Times that a host thread called a wait for an event, whether or not it was complete by then.
    pub host_waits: u64,
    /// Queues created.
    pub queues: u64,
    /// Allocations of device memory.
    pub allocations: u64,
    /// Bytes of device memory held by buffers that live.
    pub live_bytes: u64,
    /// The most that `live_bytes` ever was.
    pub peak_bytes: u64,
    /// Allocations of staging memory. On a unified device they count among `allocations` as well.
    pub staging_allocations: u64,
    /// Bytes of staging memory held by buffers that live; 0 on a unified device.
    pub live_staging_bytes: u64,
    /// The most that `live_staging_bytes` ever was.
    pub peak_staging_bytes: u64,
}

impl Counters {
    /// Copies between host memory and device memory, in either direction.
    pub fn bus_copies(&self) -> u64 {
        self.host_to_device.copies + self.device_to_host.copies
    }

    /// What was counted since `earlier`; levels and peaks (`live_bytes`, ..) stay as they are.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let moved = |now: Moved, then: Moved| Moved { copies: now.copies - then.copies, bytes: now.bytes - then.bytes };
        Self {
            host_to_device: moved(self.host_to_device, earlier.host_to_device),
            device_to_host: moved(self.device_to_host, earlier.device_to_host),
            device_to_device: moved(self.device_to_device, earlier.device_to_device),
            host_to_host: moved(self.host_to_host, earlier.host_to_host),
            region_copies: moved(self.region_copies, earlier.region_copies),
            fills: moved(self.fills, earlier.fills),
            kernel_launches: self.kernel_launches - earlier.kernel_launches,
            kernel_slots: self.kernel_slots - earlier.kernel_slots,
            status_copies: self.status_copies - earlier.status_copies,
            queue_waits: self.queue_waits - earlier.queue_waits,
            host_waits: self.host_waits - earlier.host_waits,
            queues: self.queues - earlier.queues,
            allocations: self.allocations - earlier.allocations,
            staging_allocations: self.staging_allocations - earlier.staging_allocations,
            ..*self
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct MovedTally {
    copies: AtomicU64,
    bytes: AtomicU64,
}

impl MovedTally {
    pub(super) fn add(&self, bytes: usize) {
        self.copies.fetch_add(1, Relaxed);
        self.bytes.fetch_add(bytes as u64, Relaxed);
    }

    fn get(&self) -> Moved {
        Moved { copies: self.copies.load(Relaxed), bytes: self.bytes.load(Relaxed) }
    }
}

#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub(super) fn add(&self, count: u64) {
        self.0.fetch_add(count, Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}

/// A number of bytes held, and the most there ever were.
#[derive(Debug, Default)]
pub(super) struct Level {
    live: AtomicU64,
    peak: AtomicU64,
}

impl Level {
    /// Adds `bytes` if that stays within `limit`.
    pub(super) fn raise(&self, bytes: u64, limit: u64) -> bool {
        let within = |live: u64| live.checked_add(bytes).filter(|&live| live <= limit);
        match self.live.fetch_update(Relaxed, Relaxed, within) {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Relaxed);
                true
            }
            Err(_) => false,
        }
    }

    pub(super) fn lower(&self, bytes: u64) {
        self.live.fetch_sub(bytes, Relaxed);
    }
}

/// The counters as the device keeps them.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) host_to_device: MovedTally,
    pub(super) device_to_host: MovedTally,
    pub(super) device_to_device: MovedTally,
    pub(super) host_to_host: MovedTally,
    pub(super) region_copies: MovedTally,
    pub(super) fills: MovedTally,
    pub(super) kernel_launches: Count,
    pub(super) kernel_slots: Count,
    pub(super) status_copies: Count,
    pub(super) queue_waits: Count,
    pub(super) host_waits: Count,
    pub(super) queues: Count,
    pub(super) allocations: Count,
    pub(super) device_bytes: Level,
    pub(super) staging_allocations: Count,
    pub(super) staging_bytes: Level,
}

impl Tally {
    pub(super) fn get(&self) -> Counters {
        Counters {
            host_to_device: self.host_to_device.get(),
            device_to_host: self.device_to_host.get(),
            device_to_device: self.device_to_device.get(),
            host_to_host: self.host_to_host.get(),
            region_copies: self.region_copies.get(),
            fills: self.fills.get(),
            kernel_launches: self.kernel_launches.get(),
            kernel_slots: self.kernel_slots.get(),
            status_copies: self.status_copies.get(),
            queue_waits: self.queue_waits.get(),
            host_waits: self.host_waits.get(),
            queues: self.queues.get(),
            allocations: self.allocations.get(),
            live_bytes: self.device_bytes.live.load(Relaxed),
            peak_bytes: self.device_bytes.peak.load(Relaxed),
            staging_allocations: self.staging_allocations.get(),
            live_staging_bytes: self.staging_bytes.live.load(Relaxed),
            peak_staging_bytes: self.staging_bytes.peak.load(Relaxed),
        }
    }
}
