//! Recorded requests of programs: copies, fills and comparisons that their threads make, or descriptors that they submit.
//!
//! A recording is a file of pages of 4096 bytes, little endian. The first is the [header](Header); each other is a chunk
//! of one thread: 64 bytes that say whose, then 126 [requests](Request) of 32 bytes. Threads of all processes of a session
//! map the file and claim chunks; [`Session`], in dray's process, sees to it that the file has room before one is
//! claimed, so that a full disk ends the recording and no program. The word that says that a request is written is written
//! last: whatever is killed, the file can be read up to the last whole request.
//!
//! ```text
//! page 0   "drayrec1" version kind | claimed backed limit | lost processes streams | timed timed_ns | scale began | ...
//! page 1   "CHNK" pid tid stream sequence began_ns | request 0 | ... | request 125
//! page 2   ...
//! ```
//!
//! A request's first word is flags, operation, operands and queue; the others are the distance to the last end that the
//! thread could have seen, the size, times in nanoseconds ([`time`]), and the distance to the last request with the same
//! completion record.

mod clock;
mod log;
mod page;
mod reader;
mod request;
mod session;

pub use clock::{cycles, thread_cpu_ns};
pub use log::{Cursor, Log, Slot};
pub use page::{Header, Kind, MOST_BYTES, Queue};
pub use reader::{Recording, RecordingError, Thread};
pub use request::{Alignment, Flags, Operands, Region, Request, time};
pub use session::{Closed, Options, Session};
