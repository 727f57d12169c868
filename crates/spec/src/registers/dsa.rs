//! Capabilities of version 3, and of performance monitoring.

use bitfield_struct::bitfield;

/// DSACAP0 (spec 9.2.30).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct DsaCap0 {
    /// Base-2 logarithm of the longest scatter-gather list.
    #[bits(4)]
    pub max_scatter_gather_shift: u8,
    /// Base-2 logarithm of the largest block of a gather-reduce in bytes.
    #[bits(4)]
    pub max_gather_reduce_block_shift: u8,
    /// Operations that take inter-domain handles.
    #[bits(7)]
    pub inter_domain_operations: u8,
    #[bits(17)]
    __: u32,
    /// Formats of scatter-gather lists, bit 0 reserved.
    pub scatter_gather_formats: u16,
    /// Scatter-gather descriptors that an engine has in progress at most.
    pub max_scatter_gather_descriptors: u8,
    __: u8,
}

/// DSACAP1 (spec 9.2.31).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct DsaCap1 {
    /// Data types, a bit each.
    pub data_types: u16,
    /// Conversions to wider floating-point types, a bit each.
    pub up_conversions: u16,
    /// Conversions to narrower floating-point types, a bit each.
    pub down_conversions: u16,
    /// Compute operations, a bit each.
    pub compute_operations: u16,
}

/// DSACAP2 (spec 9.2.32).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct DsaCap2 {
    /// Source operands can be negated.
    pub negation: bool,
    __: bool,
    /// Denormal results can be flushed to zero.
    pub flush_to_zero: bool,
    /// Denormal operands can be taken for zero.
    pub denormal_as_zero: bool,
    #[bits(3)]
    __: u8,
    /// Integers can be signed.
    pub signed_integers: bool,
    /// Integer results can saturate.
    pub saturation: bool,
    #[bits(3)]
    __: u8,
    /// Ways to round, a bit each: nearest even, down, up, toward zero.
    #[bits(8)]
    pub rounding: u8,
    #[bits(44)]
    __: u64,
}

/// PERFCAP, at the offset that OFFSETS gives; 0 if there is no performance monitoring (spec
/// 9.2.25.1).
#[bitfield(u64)]
#[derive(PartialEq, Eq)]
pub struct PerfCap {
    /// Number of counters.
    #[bits(6)]
    pub counters: u8,
    #[bits(2)]
    __: u8,
    /// Bits of a counter.
    pub counter_width: u8,
    /// Number of event categories.
    #[bits(4)]
    pub categories: u8,
    /// Event categories that any counter counts, a bit each.
    pub category_mask: u16,
    /// Filters, a bit each.
    pub filters: u8,
    __: u8,
    /// Counters differ in what they count.
    pub per_counter: bool,
    /// Counters can be written while they count.
    pub writable_enabled: bool,
    /// Counters can be frozen.
    pub freeze: bool,
    /// Overflows can interrupt.
    pub overflow_interrupt: bool,
    __: u8,
}
