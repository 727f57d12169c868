//! Names for other processes that write to the rings.

use std::sync::{Mutex, PoisonError};

use dray_ring::CLIENTS;

/// A process that writes to the rings through an [`Attachment`](crate::Attachment).
#[derive(Debug, PartialEq, Eq)]
pub struct Client(u16);

impl Client {
    /// What the client gets, so as to sign with it.
    pub fn number(&self) -> u16 {
        self.0
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Alive,
    /// Gone; what it has claimed may still be in the rings.
    Gone,
}

/// All that have a name, by number, from 1.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<Vec<State>>);

impl Clients {
    /// A name that no client in the rings has; `None` if there is none left for now.
    pub(crate) fn admit(&self) -> Option<Client> {
        self.with(|states| {
            let free = states.iter().position(|state| *state == State::Free);
            let index = free.unwrap_or(states.len());
            if index as u64 >= CLIENTS {
                return None;
            }
            match states.get_mut(index) {
                Some(state) => *state = State::Alive,
                None => states.push(State::Alive),
            }
            Some(Client(index as u16 + 1))
        })
    }

    /// It will write nothing any more. `last` is called if it was the last, before another comes.
    pub(crate) fn leave(&self, client: &Client, last: impl FnOnce()) {
        self.with(|states| {
            if let Some(state) = states.get_mut(usize::from(client.0) - 1) {
                *state = State::Gone;
            }
            if !states.contains(&State::Alive) {
                last();
            }
        });
    }

    /// Whether no client of that name will write any more. This process, 0, does.
    pub(crate) fn is_gone(&self, number: u16) -> bool {
        let Some(index) = usize::from(number).checked_sub(1) else {
            return false;
        };
        self.with(|states| states.get(index) != Some(&State::Alive))
    }

    /// No claims are in the rings: the names of those that are gone are free.
    pub(crate) fn free_departed(&self) {
        self.with(|states| {
            for state in states.iter_mut().filter(|state| **state == State::Gone) {
                *state = State::Free;
            }
        });
    }

    fn with<R>(&self, visit: impl FnOnce(&mut Vec<State>) -> R) -> R {
        visit(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_given_again_only_when_its_claims_are_gone() {
        let clients = Clients::default();
        assert!(!clients.is_gone(0), "this process");
        assert!(clients.is_gone(1), "no client");
        let [first, second] = [(); 2].map(|()| clients.admit().expect("a name"));
        assert_eq!((first.number(), second.number()), (1, 2));
        assert!(!clients.is_gone(1));
        clients.leave(&first, || ());
        assert!(clients.is_gone(1));
        assert_eq!(clients.admit().map(|c| c.number()), Some(3));
        clients.free_departed();
        assert_eq!(clients.admit().map(|c| c.number()), Some(1));
        assert!(!clients.is_gone(1) && !clients.is_gone(2));
    }

    #[test]
    fn only_the_last_client_to_leave_is_the_last() {
        let clients = Clients::default();
        let [first, second] = [(); 2].map(|()| clients.admit().expect("a name"));
        let mut last = 0;
        clients.leave(&second, || last += 1);
        assert_eq!(last, 0);
        clients.leave(&first, || last += 1);
        assert_eq!(last, 1);
    }

    #[test]
    fn names_are_as_many_as_the_rings_can_tell_apart() {
        let clients = Clients::default();
        let given: Vec<_> = std::iter::from_fn(|| clients.admit()).collect();
        assert_eq!(given.last().map(Client::number), Some(CLIENTS as u16));
        clients.leave(&given[6], || ());
        assert_eq!(clients.admit(), None);
        clients.free_departed();
        assert_eq!(clients.admit().map(|c| c.number()), Some(7));
    }
}
