//! Bytes on any device: device ids, buffers, queues, readiness, disjoint-region writers
