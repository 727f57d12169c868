//! Regions that are added and removed.

use dray_vhost::memory::{MemoryMap, RegionInfo};
use dray_vhost::protocol::Request;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

use crate::driver::Kind;
use crate::engines::Shuffled;
use crate::guest::{BASE, Guest, SIZE, Setup, number_of, region, region_bytes};

fn file(len: u64) -> std::os::fd::OwnedFd {
    let file = memfd_create(c"more", MemfdFlags::CLOEXEC).expect("a memfd");
    ftruncate(&file, len).expect("its length");
    file
}

/// As threads unmap and map, the kernel hands the addresses of one to another.
#[test]
fn a_sigbus_is_attributed_to_the_region_mapped_there_now() {
    let info = RegionInfo {
        guest: 0,
        size: 1 << 16,
        user: 0x7f00_0000_0000,
        offset: 0,
    };
    let work = move || {
        let none = MemoryMap::new(1 << 40);
        for _ in 0..2000 {
            // Few are mapped at a time, so that addresses come again.
            while none.is_unmapping() {
                std::hint::spin_loop();
            }
            let memory = file(info.size);
            let shared = memory.try_clone().expect("another descriptor");
            let map = none.with(info, shared).expect("a region");
            ftruncate(&memory, 4096).expect("shorter");
            let last = map.translate(info.size - 1, 1).expect("mapped");
            // SAFETY: the address is mapped; the handler gives it a page.
            assert_eq!(unsafe { last.read_volatile() }, 0);
            assert!(map.is_broken(), "another region was found broken");
        }
    };
    let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(work)).collect();
    for thread in threads {
        thread.join().expect("no assertion failed");
    }
}

fn more() -> RegionInfo {
    RegionInfo {
        guest: BASE + SIZE,
        size: 1 << 20,
        user: 0x7f00_0000_0000,
        offset: 4096,
    }
}

fn message(info: &RegionInfo) -> Vec<u8> {
    [vec![0; 8], region_bytes(info)].concat()
}

#[test]
fn a_region_is_added_and_removed_while_rings_run() {
    for kind in [Kind::Split, Kind::Packed] {
        let mut guest = Guest::new(Setup::new(kind, 64), vec![Shuffled::new(4, 512, None)]);
        assert!(guest.send(Request::GetMaxMemSlots, &[]) >= 32);
        for _ in 0..5 {
            guest.assert_flows();
            let payload = message(&more());
            let file = file(4096 + (1 << 20));
            let answer = guest.try_send(
                Request::AddMemReg,
                &payload,
                vec![file.try_clone().expect("it")],
            );
            assert_eq!(number_of(answer), 0);
            // One descriptor spans both regions.
            let packet = [&[0u8; 12][..], &[8; 88]].concat();
            guest.memory.write(BASE + SIZE - 50, &packet[..50]);
            assert!(rustix::io::pwrite(&file, &packet[50..], 4096).is_ok());
            guest.rings[1].add_raw(&guest.memory, &[(BASE + SIZE - 50, 100, 0)]);
            let mut out = Vec::new();
            guest.poll_data(&mut out, 32);
            guest.settle(&mut out);
            assert_eq!(out[0].bytes(), [8; 88]);
            guest.rings[1].reclaim(&guest.memory);
            assert_eq!(guest.send(Request::RemMemReg, &payload), 0);
            assert_ne!(guest.send(Request::RemMemReg, &payload), 0, "it is gone");
            guest.rings[1].add_raw(&guest.memory, &[(BASE + SIZE - 50, 100, 0)]);
            guest.poll_data(&mut out, 32);
            guest.settle(&mut out);
            assert_eq!(out.len(), 1, "half of it is unmapped again");
            guest.rings[1].reclaim(&guest.memory);
        }
    }
}

#[test]
fn removing_the_memory_of_a_ring_stops_it() {
    let mut guest = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
    assert_eq!(guest.send(Request::RemMemReg, &message(&region())), 0);
    assert!(!guest.backend.queue(1).is_running());
    guest.poll_data(&mut Vec::new(), 32);
    assert!(guest.backend.memory().is_empty());
}

#[test]
fn bad_regions_are_refused() {
    let mut guest = Guest::new(Setup::new(Kind::Split, 64), Vec::new());
    let mut try_add = |info: RegionInfo, len: u64| {
        let answer = guest.try_send(Request::AddMemReg, &message(&info), vec![file(len)]);
        number_of(answer)
    };
    let good = more();
    let with = |change: fn(&mut RegionInfo)| {
        let mut info = good;
        change(&mut info);
        info
    };
    assert_ne!(try_add(good, 4096), 0, "longer than its file");
    assert_ne!(try_add(with(|r| r.guest = BASE), 2 << 20), 0, "overlap");
    assert_ne!(try_add(with(|r| r.size = 0), 2 << 20), 0);
    assert_ne!(try_add(with(|r| r.size = u64::MAX), 2 << 20), 0);
    assert_ne!(try_add(with(|r| r.offset = u64::MAX - 5), 2 << 20), 0);
    assert_ne!(try_add(with(|r| r.user = u64::MAX - 5), 2 << 20), 0);
    let (read, _write) = std::io::pipe().expect("a pipe");
    let answer = guest.try_send(Request::AddMemReg, &message(&good), vec![read.into()]);
    assert_ne!(number_of(answer), 0, "a pipe is no memory");
    guest.assert_flows();
}
