//! A right producer and a right consumer of DLPack tensors, of which wrong ones change what goes in or comes out.

pub(crate) mod consumers;
pub(crate) mod producers;
