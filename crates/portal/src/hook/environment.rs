//! Whether a new program's environment lets it load this library and find the device.
//!
//! Nothing here allocates: it is asked in children of vfork(2).

use std::ffi::CStr;

use dray_wire::SOCKET_VARIABLE;

use super::{Strings, spawn};
use crate::connect::socket_variable;
use dray_interpose::program::{Obstacle, PreloadSupport, UnknownError};

/// What keeps a program of this kind from a portal when it is executed with this environment. What
/// cannot be read or executed is the original's to refuse.
///
/// # Safety
/// `envp` is null or an array of strings.
pub(super) unsafe fn obstacle(
    kind: Result<PreloadSupport, UnknownError>,
    envp: Strings,
) -> Option<Obstacle> {
    match kind {
        Ok(PreloadSupport::Hindered(obstacle)) => Some(obstacle),
        Ok(PreloadSupport::Native) => {
            // Where its file is not known this is no shared object, and nothing was preloaded.
            let library = spawn::library()?;
            let socket = socket_variable().map_or(&b""[..], CStr::to_bytes);
            // SAFETY: as the caller promises.
            let prepared = unsafe { prepares(envp, library, socket) };
            (!prepared).then_some(Obstacle::Environment)
        }
        Err(_) => None,
    }
}

/// Whether an environment has the library in `LD_PRELOAD`, and the socket. One with another socket is a
/// session's inside this one, which looks after its programs itself.
///
/// # Safety
/// As for [`obstacle`].
unsafe fn prepares(envp: Strings, library: &CStr, socket: &[u8]) -> bool {
    let (mut preloads, mut connects) = (false, false);
    if envp.is_null() {
        return false;
    }
    for index in 0.. {
        // SAFETY: the null pointer has not been reached.
        let at = unsafe { envp.add(index) };
        // SAFETY: as above.
        let string = unsafe { at.read() };
        if string.is_null() {
            break;
        }
        // SAFETY: it is a string.
        let string = unsafe { CStr::from_ptr(string) }.to_bytes();
        if let Some(list) = string.strip_prefix(b"LD_PRELOAD=") {
            // The separators of ld.so(8).
            let mut names = list.split(|byte| matches!(byte, b':' | b' '));
            preloads |= names.any(|name| name == library.to_bytes());
        }
        let value = string.strip_prefix(SOCKET_VARIABLE.as_bytes());
        let value = value.and_then(|value| value.strip_prefix(b"="));
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            if value != socket {
                return true;
            }
            connects = true;
        }
    }
    preloads && connects
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::ptr::null;

    use super::*;

    fn has(variables: &[&str]) -> bool {
        let variables: Vec<CString> = variables
            .iter()
            .map(|variable| CString::new(*variable).unwrap())
            .collect();
        let mut list: Vec<_> = variables.iter().map(|variable| variable.as_ptr()).collect();
        list.push(null());
        // SAFETY: strings, and a null pointer.
        unsafe { prepares(list.as_ptr(), c"/dev/.dray-portal.so", b"@dray-1") }
    }

    #[test]
    fn an_environment_needs_ld_preload_and_the_socket() {
        let socket = "DRAY_SOCKET=@dray-1";
        assert!(has(&["LD_PRELOAD=/dev/.dray-portal.so", socket]));
        assert!(has(&[
            socket,
            "A=b",
            "LD_PRELOAD=x.so:/dev/.dray-portal.so y"
        ]));
        assert!(!has(&["LD_PRELOAD=x.so", socket]));
        assert!(!has(&["LD_PRELOAD=/dev/.dray-portal.so.1", socket]));
        assert!(!has(&["LD_PRELOAD=/dev/.dray-portal.so"]));
        assert!(!has(&["LD_PRELOAD=/dev/.dray-portal.so", "DRAY_SOCKET="]));
        assert!(!has(&[]));
        // A session inside.
        assert!(has(&["LD_PRELOAD=/run/other.so", "DRAY_SOCKET=@dray-2"]));
        // SAFETY: a null pointer is allowed.
        assert!(!unsafe { prepares(null(), c"x", b"@dray-1") });
    }
}
