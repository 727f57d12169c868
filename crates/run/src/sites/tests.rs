use super::*;

/// Bytes of the stack from the innermost function on; all of them are this thread's.
const STACK: usize = 2048;

#[inline(never)]
fn outer(stack: &mut Vec<u8>) -> Origin {
    let origin = inner(stack);
    std::hint::black_box(&origin);
    origin
}

/// Where it is, and its stack, while its callers are on it.
#[inline(never)]
fn inner(bytes: &mut Vec<u8>) -> Origin {
    let (site, stack, frame): (u64, u64, u64);
    // SAFETY: it reads registers.
    unsafe {
        std::arch::asm!(
            "lea {site}, [rip]",
            "mov {stack}, rsp",
            "mov {frame}, rbp",
            site = out(reg) site,
            stack = out(reg) stack,
            frame = out(reg) frame,
        );
    }
    let at = std::ptr::with_exposed_provenance::<u8>(stack as usize);
    // SAFETY: the functions that run the tests have more on the stack.
    unsafe { bytes.as_mut_ptr().copy_from(at, STACK) };
    Origin {
        thread: 5,
        site,
        stack,
        frame,
        record: None,
        at: dray_realtime::Moment::default(),
    }
}

fn enter(sites: &mut Sites) -> Option<PlaceId> {
    let mut stack = vec![0; STACK];
    let origin = outer(&mut stack);
    sites.enter(std::process::id(), &origin, &stack)
}

#[test]
fn a_place_is_known_with_its_callers_by_function_and_line() {
    let mut sites = Sites::default();
    let place = enter(&mut sites).expect("a place");
    let site = sites.resolve(place).expect("it was entered");
    assert_eq!(site.thread, 5);
    let of = |name: &str| {
        let mut frames = site.frames.iter();
        frames
            .position(|f| f.function.as_ref().is_some_and(|f| f.ends_with(name)))
            .unwrap_or_else(|| panic!("{name}: {site:#?}"))
    };
    let (first, second) = (of("inner"), of("outer"));
    assert!(first < second, "{site:#?}");
    for frame in [first, second].map(|index| &site.frames[index]) {
        let file = frame.file.as_deref().expect("line tables");
        assert!(
            file.ends_with("sites/tests.rs") && frame.line.is_some(),
            "{frame}"
        );
        let module = frame.module.as_deref().expect("the program");
        let own = std::env::current_exe().expect("a path");
        assert_eq!(own.to_str(), Some(module));
    }
    // The same thread at the same place is the same.
    let again: Vec<_> = (0..2).map(|_| enter(&mut sites)).collect();
    assert_eq!(again[0], again[1]);
    sites.forget(std::process::id());
    assert!(
        sites.resolve(place).is_some(),
        "a process that is gone had it"
    );
}

#[test]
fn what_is_no_code_has_an_address_alone() {
    let mut sites = Sites::default();
    let origin = Origin {
        thread: 1,
        site: 0x10,
        stack: 0,
        frame: 0,
        record: None,
        at: dray_realtime::Moment::default(),
    };
    for pid in [std::process::id(), u32::MAX] {
        let place = sites.enter(pid, &origin, &[]).expect("there is room");
        let site = sites.resolve(place).expect("it was entered");
        assert_eq!(site.frames.len(), 1);
        assert_eq!(site.frames[0].to_string(), "0x10");
    }
}

/// A program may replace its file by one that nobody writes to.
#[test]
fn a_file_that_is_not_the_mapped_one_is_not_read() {
    let directory = tempfile::tempdir().expect("a directory");
    let pipe = directory.path().join("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0)
        .expect("a pipe");
    let program = std::env::current_exe().expect("this program");
    let inode = |path: &std::path::Path| {
        use std::os::unix::fs::MetadataExt;
        std::fs::metadata(path).expect("it is there").ino()
    };
    let mut symbols = Symbols::default();
    let own = inode(&program);
    assert!(symbols.module(&pipe, inode(&pipe), "pipe").is_none());
    assert!(symbols.module(&program, own + 1, "program").is_none());
    assert!(symbols.module(&program, own, "program").is_some());
}

#[test]
fn addresses_without_code_are_looked_for_once() {
    let mut sites = Sites::default();
    let origin = Origin {
        site: 1,
        ..Origin::default()
    };
    let pid = std::process::id();
    for _ in 0..2 {
        let place = sites.enter(pid, &origin, &[]).expect("a place");
        let site = sites.resolve(place).expect("it was entered");
        assert_eq!(site.frames[0].module, None);
        assert_eq!(sites.nowhere.len(), 1);
    }
    sites.forget(pid);
    assert!(sites.nowhere.is_empty() && sites.threads.is_empty());
}
