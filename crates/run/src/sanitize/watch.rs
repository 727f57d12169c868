//! Memory of a descriptor in flight, looked at when it is accepted, before it is executed, and at its end.

use dray_remote::{PageState, Spaces};
use dray_spec::Accesses;

const PAGE: u64 = 4096;

/// What a range of memory is for a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It is read, and what is read is written elsewhere.
    Source,
    /// It is the list of a batch: read once, and a program knows that by the record of a member.
    List,
    /// It is read, and only the result of an operation depends on it: memory that changes may be compared.
    Compared,
    Destination,
    Record,
}

impl Role {
    fn name(self) -> &'static str {
        match self {
            Role::Source | Role::Compared => "source",
            Role::List => "list of descriptors",
            Role::Destination => "destination",
            Role::Record => "completion record",
        }
    }
}

/// What a program has done to memory in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    Source(String),
    Destination(String),
    Record(String),
    /// With the memory that is gone: its address, and bytes.
    Lifetime(String, (u64, u64)),
}

#[derive(Debug, Clone)]
struct Operand {
    role: Role,
    start: u64,
    len: u64,
    pages: Vec<PageState>,
    /// Another descriptor writes to it: its bytes say nothing about the program.
    written: bool,
    /// It is a source that this descriptor writes to itself: so do its bytes once it was executed.
    own: bool,
    /// It is a destination that has been written: its bytes are to stay.
    executed: bool,
}

/// The operands of a descriptor, as they were when it was accepted.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    pasid: u32,
    operands: Vec<Operand>,
}

impl Watch {
    pub(super) fn new(spaces: &Spaces, pasid: u32, accesses: &Accesses) -> Watch {
        let carries = accesses.written().next().is_some();
        let source = if carries {
            Role::Source
        } else {
            Role::Compared
        };
        let reads = accesses.read().map(|range| (source, range));
        let writes = accesses.written().map(|range| (Role::Destination, range));
        let record = accesses.record_range().map(|range| (Role::Record, range));
        let operands = reads.chain(writes).chain(record);
        let operands = operands.map(|(role, (start, len))| Operand {
            role,
            start,
            len,
            pages: spaces.look(pasid, start, len),
            written: false,
            own: role == Role::Source && accesses.writes_to((start, len)),
            executed: false,
        });
        Watch {
            pasid,
            operands: operands.collect(),
        }
    }

    /// Of a descriptor whose memory is not looked at.
    pub(super) fn nothing(pasid: u32) -> Watch {
        Watch {
            pasid,
            operands: Vec::new(),
        }
    }

    /// Whether anything of it is looked at.
    pub(super) fn is_looked_at(&self) -> bool {
        !self.operands.is_empty()
    }

    /// What it reads is the list of a batch.
    pub(super) fn of_list(mut self) -> Watch {
        for operand in &mut self.operands {
            if operand.role == Role::Compared {
                operand.role = Role::List;
            }
        }
        self
    }

    /// Another descriptor writes meanwhile, too.
    pub(super) fn exclude(&mut self, other: &Accesses) {
        for operand in &mut self.operands {
            operand.written |= other.writes_to((operand.start, operand.len));
        }
    }

    /// Nothing more is to be said of it.
    pub(super) fn end(&mut self) {
        self.operands.clear();
    }

    /// Before it is executed.
    pub(super) fn at_start(&self, spaces: &Spaces) -> Option<Change> {
        self.operands.iter().find_map(|operand| {
            let digested = operand.role != Role::Compared;
            self.change(
                spaces,
                operand,
                digested,
                "between its submission and its execution",
            )
        })
    }

    /// Its data is written, some time before its record.
    pub(super) fn executed(&mut self, spaces: &Spaces) {
        let destinations = self.operands.iter_mut();
        for operand in destinations.filter(|operand| operand.role == Role::Destination) {
            operand.pages = spaces.look(self.pasid, operand.start, operand.len);
            operand.executed = true;
        }
    }

    /// At its end, before its record is written. Of its destinations the bytes are its own by then, unless it was [executed](Self::executed) before; of its record they are the
    /// program's, which leaves them alone.
    pub(super) fn at_end(&self, spaces: &Spaces) -> Option<Change> {
        let all = self.operands.iter();
        let mut left = all.filter(|operand| operand.role != Role::List);
        left.find_map(|operand| {
            let is_source = operand.role == Role::Source && !operand.own;
            let digested = is_source || operand.role == Role::Record || operand.executed;
            self.change(spaces, operand, digested, "before its completion")
        })
    }

    fn change(&self, spaces: &Spaces, of: &Operand, digested: bool, when: &str) -> Option<Change> {
        let now = spaces.look(self.pasid, of.start, of.len);
        let name = of.role.name();
        let mut changes = of.pages.iter().zip(&now).zip(0..);
        changes.find_map(|((before, now), page)| {
            let at = (of.start / PAGE * PAGE + page * PAGE).max(of.start);
            match (*before, *now) {
                (PageState::Present { .. }, PageState::Inaccessible) => Some(Change::Lifetime(
                    format!("its {name} at {at:#x} was unmapped or protected {when}"),
                    (at, 1),
                )),
                (PageState::Present { private: true, .. }, PageState::Absent) => {
                    Some(Change::Lifetime(format!(
                        "the page of its {name} at {at:#x} was given back {when} (madvise or a new mapping)"
                    ), (at, 1)))
                }
                (PageState::Present { digest, .. }, PageState::Present { digest: other, .. })
                    if digested && !of.written && digest != other =>
                {
                    let what = format!(
                        "the program wrote to its {name} at {at:#x} or behind, in that page, {when}"
                    );
                    Some(match of.role {
                        Role::Source | Role::List => Change::Source(what),
                        Role::Record => Change::Record(what),
                        Role::Compared | Role::Destination => Change::Destination(what),
                    })
                }
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use dray_spec::Descriptor;

    use super::*;

    const PASID: u32 = 1;
    const LEN: usize = 4 * PAGE as usize;

    /// Pages of this process, in memory.
    struct Pages(*mut libc::c_void);

    impl Pages {
        fn new() -> Pages {
            let (all, private) = (
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE,
            );
            // SAFETY: it maps new memory.
            let start = unsafe { libc::mmap(std::ptr::null_mut(), LEN, all, private, -1, 0) };
            assert_ne!(start, libc::MAP_FAILED);
            Pages(start)
        }

        fn at(&self, offset: usize) -> u64 {
            self.0.addr() as u64 + offset as u64
        }

        fn set(&self, offset: usize) {
            let byte = self.0.cast::<u8>().wrapping_add(offset);
            // SAFETY: the pages have it, and nothing borrows it.
            unsafe { byte.write_volatile(7) };
        }

        fn give_back(&self) {
            // SAFETY: nothing borrows from the pages.
            let result = unsafe { libc::madvise(self.0, LEN, libc::MADV_DONTNEED) };
            assert_eq!(result, 0);
        }

        /// Another thread could map something where it was unmapped.
        fn protect(&self) {
            // SAFETY: nothing borrows from the pages, and they are not accessed any more.
            let result = unsafe { libc::mprotect(self.0, LEN, libc::PROT_NONE) };
            assert_eq!(result, 0);
        }
    }

    fn spaces() -> Spaces {
        let spaces = Spaces::new();
        spaces.add(PASID, std::process::id()).expect("this process");
        spaces
    }

    /// What a copy of 5000 bytes meets before it is executed, and at its end.
    fn copied(act: impl FnOnce(&Pages, &Pages)) -> [Option<Change>; 2] {
        let (from, to, spaces) = (Pages::new(), Pages::new(), spaces());
        let copy = Descriptor::memmove(from.at(100), to.at(100), 5000);
        let watch = Watch::new(&spaces, PASID, &Accesses::of(&copy));
        act(&from, &to);
        [watch.at_start(&spaces), watch.at_end(&spaces)]
    }

    fn text(change: &Option<Change>) -> &str {
        match change {
            None => "",
            Some(Change::Source(text)) => text,
            Some(Change::Destination(text) | Change::Record(text)) => text,
            Some(Change::Lifetime(text, _)) => text,
        }
    }

    #[test]
    fn a_write_to_a_record_is_a_change_before_and_behind_the_execution() {
        let (pages, spaces) = (Pages::new(), spaces());
        let noop = Descriptor::noop().with_completion(pages.at(64));
        let watch = Watch::new(&spaces, PASID, &Accesses::of(&noop));
        pages.set(63);
        pages.set(96);
        assert_eq!(
            [watch.at_start(&spaces), watch.at_end(&spaces)],
            [None, None]
        );
        pages.set(95);
        for change in [watch.at_start(&spaces), watch.at_end(&spaces)] {
            assert!(matches!(change, Some(Change::Record(_))), "{change:?}");
        }
    }

    #[test]
    fn a_write_to_an_operand_is_a_change_and_one_beside_it_is_none() {
        assert_eq!(copied(|_, _| ()), [None, None]);
        for beside in [99, 5100] {
            let changes = copied(|from, to| {
                from.set(beside);
                to.set(beside);
            });
            assert_eq!(changes, [None, None]);
        }
        for inside in [100, 4095, 4096, 5099] {
            let [start, end] = copied(|from, _| from.set(inside));
            assert!(matches!(start, Some(Change::Source(_))), "{inside}");
            assert!(text(&end).contains("source"), "{inside}");
            let [start, end] = copied(|_, to| to.set(inside));
            assert!(matches!(start, Some(Change::Destination(_))), "{inside}");
            // By then the descriptor has written to it.
            assert_eq!(end, None);
        }
    }

    #[test]
    fn a_destination_stays_as_it_is_between_its_data_and_its_record() {
        let (from, to, spaces) = (Pages::new(), Pages::new(), spaces());
        let copy = Descriptor::memmove(from.at(100), to.at(100), 5000);
        let mut watch = Watch::new(&spaces, PASID, &Accesses::of(&copy));
        // The device writes it.
        to.set(200);
        watch.executed(&spaces);
        to.set(99);
        assert_eq!(watch.at_end(&spaces), None);
        to.set(300);
        assert!(matches!(
            watch.at_end(&spaces),
            Some(Change::Destination(_))
        ));
        let fill = Descriptor::fill(1, to.at(300), 8);
        watch.exclude(&Accesses::of(&fill));
        assert_eq!(watch.at_end(&spaces), None, "another descriptor's bytes");
    }

    /// As when a core moves the first part of memory onto itself, and the device the rest.
    #[test]
    fn the_source_of_a_move_onto_itself_is_the_programs_until_it_is_executed() {
        let (pages, spaces) = (Pages::new(), spaces());
        let copy = Descriptor::memmove(pages.at(0), pages.at(64), 5000);
        let watch = Watch::new(&spaces, PASID, &Accesses::of(&copy));
        assert_eq!(watch.at_start(&spaces), None);
        pages.set(32);
        assert!(matches!(watch.at_start(&spaces), Some(Change::Source(_))));
        // Where it writes itself.
        pages.set(4000);
        assert_eq!(watch.at_end(&spaces), None);
    }

    #[test]
    fn memory_that_is_protected_or_given_back_is_a_change() {
        let [start, end] = copied(|from, _| from.protect());
        assert!(text(&start).contains("source") && text(&start).contains("unmapped or protected"));
        assert!(matches!(end, Some(Change::Lifetime(..))));
        let [start, end] = copied(|_, to| to.give_back());
        assert!(text(&start).contains("destination") && text(&start).contains("given back"));
        assert!(matches!(end, Some(Change::Lifetime(..))));
    }

    #[test]
    fn what_another_descriptor_writes_is_no_change_of_the_program() {
        let (from, to, spaces) = (Pages::new(), Pages::new(), spaces());
        let copy = Descriptor::memmove(from.at(0), to.at(0), 5000);
        let mut watch = Watch::new(&spaces, PASID, &Accesses::of(&copy));
        let fill = Descriptor::fill(1, from.at(4096), 8);
        watch.exclude(&Accesses::of(&fill));
        from.set(4096);
        assert_eq!(watch.at_start(&spaces), None);
        to.set(0);
        assert!(matches!(
            watch.at_start(&spaces),
            Some(Change::Destination(_))
        ));
    }

    /// Programs compare live memory, and the list of a batch is no such.
    #[test]
    fn what_is_compared_may_change_and_a_list_may_not() {
        let (pages, spaces) = (Pages::new(), spaces());
        let compare = Descriptor::compare(pages.at(0), pages.at(8192), 64);
        let compared = Watch::new(&spaces, PASID, &Accesses::of(&compare));
        let batch = Descriptor::batch(pages.at(0), 2);
        let list = Watch::new(&spaces, PASID, &Accesses::of(&batch)).of_list();
        pages.set(10);
        assert_eq!(compared.at_start(&spaces), None);
        assert!(matches!(list.at_start(&spaces), Some(Change::Source(_))));
        // It has been read by the end.
        assert_eq!(list.at_end(&spaces), None);
        pages.give_back();
        assert!(matches!(
            compared.at_end(&spaces),
            Some(Change::Lifetime(..))
        ));
    }

    /// A look brings nothing in.
    #[test]
    fn pages_that_are_not_there_stay_so() {
        let (pages, spaces) = (Pages::new(), spaces());
        pages.give_back();
        for _ in 0..2 {
            let states = spaces.look(PASID, pages.at(10), 5000);
            assert_eq!(states, [PageState::Absent; 2]);
        }
    }
}
