//! The copy from the old frames to the new ones.

use super::engine::Engine;
use super::flight::{Flight, Stage, run};
use super::outcome::Outcome;
use crate::copier::{Copied, Copy, PageCopier};
use crate::sys::memory;

/// Copies what has landed; whether it could. The program may drop pages meanwhile: their frames stay
/// in the windows until the end of the batch.
pub(crate) fn from_landing(
    engine: &Engine,
    copier: &mut dyn PageCopier,
    copied: &mut Copied,
) -> bool {
    let list = list(&engine.lock().flights);
    if list.is_empty() {
        return true;
    }
    // SAFETY: both sides are windows of the engine, and this thread is the only one that migrates.
    match unsafe { copier.copy(&list) } {
        Ok(by) => {
            copied.core += by.core;
            copied.cores += by.cores;
            copied.device += by.device;
            true
        }
        Err(error) => {
            engine.failed(error);
            false
        }
    }
}

fn list(flights: &[Flight]) -> Vec<Copy> {
    let mut list: Vec<Copy> = Vec::new();
    for flight in flights.iter().filter(|flight| flight.stage == Stage::Out) {
        let (src, dst, len) = (flight.landing, flight.made, flight.len());
        match list.last_mut() {
            Some(last) if last.src + last.len == src && last.dst + last.len == dst => {
                last.len += len;
            }
            _ => list.push(Copy { src, dst, len }),
        }
    }
    list
}

/// Copies protected pages while the program may read them; bytes. The kernel does it, because the
/// program may also unmap them.
pub(crate) fn from_program(engine: &Engine) -> u64 {
    let (mut index, mut bytes) = (0, 0);
    loop {
        let (flight, count) = {
            let state = engine.lock();
            match state.flights.get(index) {
                None => return bytes,
                Some(flight) if flight.stage != Stage::In => (*flight, 0),
                Some(flight) => (*flight, run(&state.flights, index)),
            }
        };
        if count == 0 {
            index += 1;
            continue;
        }
        let len = flight.len() * count as u64;
        // SAFETY: the window's frames are this thread's alone.
        let read = unsafe { memory::read_own(engine.pid, flight.address, flight.made, len) };
        let whole = (read.unwrap_or(0) / flight.len()) as usize;
        bytes += whole as u64 * flight.len();
        if whole < count {
            // The flights may have changed, but their number has not: none of them is out.
            let mut state = engine.lock();
            let unread = &mut state.flights[index + whole];
            if unread.stage == Stage::In {
                unread.stage = Stage::Ended(Outcome::Gone);
            }
            index += whole + 1;
        } else {
            index += count;
        }
    }
}
