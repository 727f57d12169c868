//! What programs of a session keep until it ends.

/// A directory of the session, in memory, that everyone in it can write to. With
/// [`REDIRECT_VARIABLE`](crate::REDIRECT_VARIABLE) it is beside the directory that the variable names.
pub const STATE_DIRECTORY: &str = "/dev/.dray-state";
