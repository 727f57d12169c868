//! `dml_job_t` and what stands behind it in the caller's memory.

use dray_spec::{CompletionRecord, Descriptor};

/// Alignment of what stands behind a job, bytes.
const ALIGNMENT: usize = 64;

/// `dml_dif_config_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct DifConfig {
    /// Bits 7:0 of the source, 15:8 of the destination, 19:18 of both.
    pub flags: u32,
    /// Reference tag of the first block read.
    pub source_reference_tag_seed: u32,
    /// Application tag of the first block read.
    pub source_application_tag_seed: u16,
    /// Bits of the application tag that are not checked.
    pub source_application_tag_mask: u16,
    /// Reference tag of the first block written.
    pub destination_reference_tag_seed: u32,
    /// Application tag of the first block written.
    pub destination_application_tag_seed: u16,
    /// Bits of the application tag that are taken from the source.
    pub destination_application_tag_mask: u16,
    /// 0 to 3: 512, 520, 4096, 4104 bytes.
    pub block_size: u32,
}

/// `dml_job_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Job {
    /// First source.
    pub source_first: *mut u8,
    /// Second source.
    pub source_second: *mut u8,
    /// First destination; a batch's tasks.
    pub destination_first: *mut u8,
    /// Second destination.
    pub destination_second: *mut u8,
    /// CRC, read and written.
    pub crc_checksum: *mut u32,
    /// Bytes of the sources.
    pub source_length: u32,
    /// Bytes of the destination.
    pub destination_length: u32,
    /// Bytes done.
    pub offset: u32,
    /// Pattern of fill and compare.
    pub pattern: [u8; 8],
    /// `dml_operation_t`.
    pub operation: u32,
    /// Result.
    pub result: u32,
    /// Expected result.
    pub expected_result: u32,
    /// Flags: bits 15:0 of all operations, 23:16 of one.
    pub flags: u64,
    /// For operations on integrity fields.
    pub dif_config: DifConfig,
    /// NUMA node of the devices to use; all ones: any.
    pub numa_id: u32,
    /// The state, behind the job.
    pub internal_data: *mut u8,
}

/// Any node.
pub const ANY_NODE: u32 = u32::MAX;

/// A descriptor and its record, where a device finds them.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct State {
    /// What was submitted last.
    pub descriptor: Descriptor,
    /// Its record.
    pub record: CompletionRecord,
    /// `dml_path_t`.
    pub path: u32,
    /// Why the last submission was refused, a `dml_status_t`. Before the first one the job is corrupted.
    pub refused: u32,
    /// The process that submitted it.
    pub process: u32,
}

/// Bytes of a job with its state, wherever it lies.
pub const JOB_BYTES: usize = size_of::<Job>() + size_of::<State>() + ALIGNMENT;

/// The next address that is aligned to 64 bytes.
pub fn aligned(pointer: *mut u8) -> *mut u8 {
    pointer.wrapping_add(pointer.align_offset(ALIGNMENT))
}

impl State {
    /// Where the state of a job is.
    pub fn of(job: *mut Job) -> *mut State {
        aligned(job.wrapping_add(1).cast()).cast()
    }

    /// Begins the state of a job whose memory is zeros.
    ///
    /// # Safety
    /// The job has [`JOB_BYTES`].
    pub unsafe fn begin(job: *mut Job, path: u32) {
        let state = State::of(job);
        // SAFETY: the job is one.
        unsafe { (*job).internal_data = state.cast() };
        // SAFETY: the state ends within the bytes of the job, by its alignment; zeros are one.
        let state = unsafe { &mut *state };
        (state.path, state.refused) = (path, crate::status::JOB_CORRUPTED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_lies_in_memory_as_in_c() {
        // x86-64 System V: five pointers, three words, eight bytes, four words, a word that is aligned, ...
        assert_eq!(std::mem::offset_of!(Job, source_length), 40);
        assert_eq!(std::mem::offset_of!(Job, pattern), 52);
        assert_eq!(std::mem::offset_of!(Job, operation), 60);
        assert_eq!(std::mem::offset_of!(Job, flags), 72);
        assert_eq!(std::mem::offset_of!(Job, dif_config), 80);
        assert_eq!(std::mem::offset_of!(Job, numa_id), 104);
        assert_eq!(std::mem::offset_of!(Job, internal_data), 112);
        assert_eq!((size_of::<Job>(), size_of::<DifConfig>()), (120, 24));
    }

    #[test]
    fn the_state_fits_behind_a_job_wherever_that_lies() {
        let mut room = vec![0u8; JOB_BYTES + 64];
        for offset in (0..64).step_by(8) {
            let job: *mut Job = room[offset..].as_mut_ptr().cast();
            let state = State::of(job);
            let end = state.addr() + size_of::<State>();
            assert!(
                state.addr().is_multiple_of(64) && state.addr() >= job.addr() + size_of::<Job>()
            );
            assert!(end <= job.addr() + JOB_BYTES, "{offset}");
        }
    }
}
