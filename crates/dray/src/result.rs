//! What a completion says, by operation.

use dray_spec::{DifTags, Opcode, Status};
use thiserror::Error;

use crate::{Completion, Operation, QueueLost};

/// What an operation that succeeded gives.
///
/// ```
/// use dray::{Channel, CpuMover, Output, WaitPolicy};
///
/// let mut channel = Channel::new(CpuMover::new(1));
/// channel.compare(vec![1, 2, 3], vec![1, 2, 4]).map_err(|rejected| rejected.error)?;
/// let done = channel.wait(WaitPolicy::Pause, None)?;
/// assert_eq!(done.result, Ok(Output::Compared { difference: Some(2) }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Output {
    /// Nothing but that it is done.
    Done,
    /// CRC32C of the source.
    Crc32(u32),
    /// CRC-64 of the source.
    Crc64(u64),
    /// Offset of the first difference in bytes; `None`: all is equal. The device reports a multiple
    /// of what it compares at a time.
    Compared {
        /// Offset of the first difference.
        difference: Option<u32>,
    },
    /// A delta record was made.
    Delta {
        /// Bytes of the record.
        record_bytes: u32,
        /// Bytes that were compared before the record was full; `None`: all.
        overflow_at: Option<u32>,
    },
    /// Tags of the data integrity field of the block to come, to go on with (spec 8.3.17).
    Tags {
        /// Of the source, where it was checked.
        source: Option<DifTags>,
        /// Of the destination, where fields were made.
        destination: Option<DifTags>,
    },
}

/// How an operation failed.
///
/// ```
/// use dray::{Channel, CpuMover, Failure, Request, WaitPolicy};
/// use dray_spec::Status;
///
/// // A fence has no meaning outside a batch.
/// let mut channel = Channel::new(CpuMover::new(1));
/// channel.push(Request::fill(0, vec![0; 8]).with_fence()).map_err(|rejected| rejected.error)?;
/// let done = channel.wait(WaitPolicy::Pause, None)?;
/// assert_eq!(done.result, Err(Failure::Status { status: Status::INVALID_FLAGS }));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Failure {
    /// A page was not there. The bytes before it are done, and the rest can be submitted again.
    #[error("page fault at {address:#x} after {bytes_completed} bytes")]
    PageFault {
        /// Its address; some devices give that of the page.
        address: u64,
        /// It was written, not read.
        write: bool,
        /// Bytes done before.
        bytes_completed: u32,
    },
    /// A data integrity field is wrong.
    #[error("data integrity error {status:#04x} after {bytes_completed} bytes")]
    Dif {
        /// Which checks failed (spec 8.2.3).
        status: u8,
        /// Bytes of whole blocks before the bad one.
        bytes_completed: u32,
    },
    /// The comparison gave another result than the expected one.
    #[error("another result than expected: difference at {difference:?}")]
    Unexpected {
        /// Offset of the first difference; `None`: all is equal.
        difference: Option<u32>,
    },
    /// The operation was not executed: an abort, a fence behind a failure, a device that is gone.
    #[error("not executed")]
    NotExecuted,
    /// Every queue was full, and the operation was not to wait.
    #[error("not executed: every queue is full")]
    QueueFull,
    /// The queue that had it is lost, and nothing else was to execute it.
    #[error("not executed: {reason}")]
    QueueLost {
        /// What became of the queue.
        reason: QueueLost,
    },
    /// The device refused it, or failed.
    #[error("{status}")]
    Status {
        /// The status of the record.
        status: Status,
    },
}

impl Completion {
    /// What the completion of `operation` says.
    ///
    /// # Errors
    /// How it failed.
    ///
    /// ```
    /// use dray::{Completion, CpuMover, Mover, Operation, Output};
    ///
    /// let data = [0_u8; 64];
    /// let crc = Operation::crc(data.as_ptr().expose_provenance() as u64, 64, 0);
    /// let mut mover = CpuMover::new(1);
    /// // SAFETY: the data outlive the operation.
    /// unsafe { mover.enqueue(&crc) }?;
    /// mover.submit();
    /// let mut ended = [Completion::default()];
    /// mover.poll(&mut ended);
    /// assert!(matches!(ended[0].output(&crc), Ok(Output::Crc32(_))));
    /// # Ok::<(), dray::Full>(())
    /// ```
    pub fn output(&self, operation: &Operation) -> Result<Output, Failure> {
        let record = &self.record;
        let status = record.status();
        let bytes_completed = record.bytes_completed;
        let opcode = operation.opcode();
        let difference = (record.result != 0).then_some(bytes_completed);
        if status == Status(0) {
            return Err(Failure::NotExecuted);
        }
        if status.code() == Status::PAGE_FAULT.code() {
            return Err(Failure::PageFault {
                address: record.fault_address,
                write: status.is_write_fault(),
                bytes_completed,
            });
        }
        match status {
            Status::SUCCESS => {}
            Status::SUCCESS_PREDICATE => return Err(Failure::Unexpected { difference }),
            Status::DIF_ERROR => {
                return Err(Failure::Dif {
                    status: record.dif_status(),
                    bytes_completed,
                });
            }
            _ => return Err(Failure::Status { status }),
        }
        let wide = operation
            .descriptor()
            .flags()
            .contains(dray_spec::Flags::CRC_64);
        Ok(match opcode {
            Opcode::CrcGenerate | Opcode::CopyCrc if wide => Output::Crc64(record.crc64()),
            Opcode::CrcGenerate | Opcode::CopyCrc => Output::Crc32(record.crc32()),
            Opcode::Compare | Opcode::ComparePattern => Output::Compared { difference },
            Opcode::CreateDelta => Output::Delta {
                record_bytes: record.delta_record_size(),
                overflow_at: (record.result == 2).then_some(bytes_completed),
            },
            Opcode::DifCheck | Opcode::DifStrip => Output::Tags {
                source: Some(record.source_tags()),
                destination: None,
            },
            Opcode::DifInsert | Opcode::DixGenerate => Output::Tags {
                source: None,
                destination: Some(record.destination_tags()),
            },
            Opcode::DifUpdate => Output::Tags {
                source: Some(record.source_tags()),
                destination: Some(record.destination_tags()),
            },
            _ => Output::Done,
        })
    }
}
