use std::io::Read;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::*;
use crate::back_end::BackEnd;
use crate::kernel::call::tests::TwoNodes;
use crate::kernel::tracking::nowhere;
use crate::nodes::Source;
use crate::session::{Note, ProcessState, Setup, VIRTUAL};
use crate::sys::{damon::DamonError, memory};
use crate::tracking::Choice;

const FAST: u64 = 4 << 20;
const ROTATE: usize = 4;
const LRU: usize = 2;

fn session(policy: usize, tracking: Choice) -> Session {
    let setup = Setup {
        bytes: [FAST, u64::MAX],
        nodes: [Some(0), Some(1)],
        policy,
        shared_read: false,
        release: crate::Release::Kernel,
        device: VIRTUAL,
        tracking,
        filters: 0,
    };
    Session::private(&setup).expect("memory")
}

fn back_end(nodes: &TwoNodes, session: Session) -> KernelBackEnd {
    let tiers = Tiers::of(Path::new("/none"), [vec![0], vec![1]], Source::Named);
    let shared = Rights::own().shared();
    KernelBackEnd::over(Box::new(nodes.clone()), tiers, session, shared)
}

/// A session without a way to track, but for the policies that need one: those have a file for a bitmap.
fn remote(members: Members, nodes: &TwoNodes, session: Session) -> Remote {
    let root = tempfile::tempdir().expect("a directory");
    std::fs::write(root.path().join("bitmap"), "").expect("a file");
    let back_end = back_end(nodes, session);
    Remote::with(members, back_end, session, &nowhere(root.path())).expect("it can be tracked")
}

/// A shell that has written to 16 MiB, and its child, which has to 8 MiB. Both sleep until the pipe is closed.
fn family() -> (Child, ChildStdin) {
    let script = "a=$(head -c 16777216 /dev/zero | tr '\\0' a); \
                  (b=$(head -c 8388608 /dev/zero | tr '\\0' b); echo ready; read c); echo $?";
    let mut child = Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("sh is there");
    let mut line = [0u8; 6];
    let out = child.stdout.as_mut().expect("a pipe");
    out.read_exact(&mut line).expect("it is ready");
    let input = child.stdin.take().expect("a pipe");
    (child, input)
}

/// Steps until a condition holds.
fn until(remote: &mut Remote, what: &str, mut holds: impl FnMut(&mut Remote) -> bool) {
    for _ in 0..1000 {
        let pause = remote.step().expect("no error").expect("it runs");
        if holds(remote) {
            return;
        }
        std::thread::sleep(pause.min(Duration::from_millis(5)));
    }
    panic!("in vain: {what}");
}

#[test]
fn a_process_and_its_child_are_tiered_until_they_end() {
    let (mut child, input) = family();
    let nodes = TwoNodes::default();
    let session = session(LRU, Choice::Best);
    session.set("interval_ms=1").expect("a knob");
    let mut remote = remote(Members::of(child.id()), &nodes, session);
    until(&mut remote, "both fit into the fast tier", |remote| {
        let [fast, slow] = remote.back_end.used();
        // Half of it is kept free at most; the child shares pages of its parent.
        fast * PAGE <= FAST && slow * PAGE >= 16 << 20
    });
    let moved = nodes.0.lock().expect("nobody has panicked").slow.clone();
    let pids: std::collections::BTreeSet<i32> = moved.keys().map(|(pid, _)| *pid).collect();
    assert_eq!(pids.len(), 2, "{pids:?}");
    assert!(pids.contains(&(child.id() as i32)));
    assert_eq!(remote.moved().pages, moved.len() as u64);
    assert!(remote.moved().cpu > Duration::ZERO);
    let counted: u64 = session
        .processes()
        .map(|p| p.get(Value::DemotedPages))
        .sum();
    assert_eq!(counted, moved.len() as u64);
    assert_eq!(remote.trackers.tracking(), Tracking::IdlePages);
    drop(input);
    child.wait().expect("it ends");
    for _ in 0..1000 {
        match remote.step().expect("that is no error") {
            None => return,
            Some(pause) => std::thread::sleep(pause),
        }
    }
    panic!("the session does not end");
}

#[test]
fn what_the_kernel_does_not_move_stays_and_is_named() {
    let (mut child, input) = family();
    let nodes = TwoNodes::default();
    nodes.0.lock().expect("ours").room = Some(1000);
    let session = session(ROTATE, Choice::Best);
    session.set("interval_ms=1").expect("a knob");
    let mut remote = remote(Members::of(child.id()), &nodes, session);
    let note = |pid: u32| {
        let counters = session.claim(pid.into()).expect("it has counters");
        counters.said(Note::Group)
    };
    until(&mut remote, "the node is full", |_| {
        session
            .processes()
            .any(|p| p.said(Note::Group).contains("node 1 has no room"))
    });
    assert!(nodes.0.lock().expect("ours").slow.len() <= 1000);
    // A cpuset without the node.
    let mut state = nodes.0.lock().expect("ours");
    (state.room, state.error) = (None, Some(libc::EACCES));
    drop(state);
    until(&mut remote, "the node is not allowed", |_| {
        let notes = [note(child.id())];
        notes
            .iter()
            .any(|note| note.contains("may not have memory on NUMA node 1"))
    });
    // No right any more: it is not tiered, and the session goes on.
    nodes.0.lock().expect("ours").error = Some(libc::EPERM);
    until(&mut remote, "it is refused", |_| {
        session.processes().any(|p| {
            p.state() == ProcessState::Failed && p.said(Note::Hint).contains("CAP_SYS_NICE")
        })
    });
    drop(input);
    assert!(child.wait().expect("it ends").success());
}

/// A process that only sleeps, with a shared mapping whose pages it has touched.
fn sleeper(start: u64, len: u64) -> libc::pid_t {
    // SAFETY: the child calls nothing but pause(2), and ends by a signal.
    let pid = unsafe { libc::fork() };
    if pid == 0 {
        for page in (start..start + len).step_by(PAGE as usize) {
            let byte = std::ptr::with_exposed_provenance::<u8>(page as usize);
            // SAFETY: mapped by the parent.
            unsafe { byte.read_volatile() };
        }
        loop {
            // SAFETY: it waits alone.
            unsafe { libc::pause() };
        }
    }
    assert!(pid > 0);
    pid
}

#[test]
fn shared_memory_of_a_group_is_counted_once() {
    const LEN: u64 = 8 << 20;
    if !Rights::own().shared() {
        dray_skip::skip("frames are shown to root alone");
        return;
    }
    // SAFETY: a new mapping.
    let start = unsafe {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        libc::mmap(std::ptr::null_mut(), LEN as usize, access, flags, -1, 0)
    };
    let start = start.expose_provenance() as u64;
    let pids = [(); 3].map(|()| sleeper(start, LEN));
    let group = tempfile::tempdir().expect("a directory");
    let procs = group.path().join("cgroup.procs");
    let text = |pids: &[i32]| {
        pids.iter()
            .map(|pid| format!("{pid}\n"))
            .collect::<String>()
    };
    std::fs::write(&procs, text(&pids)).expect("a file");
    let nodes = TwoNodes::default();
    let session = session(ROTATE, Choice::Best);
    let members = Members::group(group.path(), Path::new(".")).expect("it is one");
    let mut remote = remote(members, &nodes, session);
    // The last one touches its pages by now.
    until(&mut remote, "all have the mapping", |remote| {
        remote.looked.1 = Duration::ZERO;
        let all = remote.back_end.processes.values();
        let mapped = all.filter(|process| {
            let there = crate::sys::pagemap::Wanted {
                all: crate::sys::pagemap::PRESENT,
                ..Default::default()
            };
            let mut bytes = 0;
            let mut map = crate::sys::pagemap::PageMap::of(process.pid).expect("it lives");
            let _ = map.scan(start, start + LEN, there, |run| {
                bytes += run.end - run.start
            });
            bytes == LEN
        });
        mapped.count() == 3
    });
    remote.look();
    let in_mapping = |remote: &Remote| -> Vec<u64> {
        let of = |process: &crate::kernel::process::RemoteProcess| {
            let books = process.memory.blocks.borrow();
            let within = books
                .map
                .range(start / crate::mechanism::BLOCK..(start + LEN) / crate::mechanism::BLOCK);
            within
                .map(|(_, block)| u64::from(block.present.count_ones()))
                .sum()
        };
        remote.back_end.processes.values().map(of).collect()
    };
    let counts = in_mapping(&remote);
    let sum: u64 = counts.iter().sum();
    // Blocks at both ends have pages of other mappings.
    assert!(sum.abs_diff(LEN / PAGE) <= 128, "{counts:?}");
    // The one that they count for leaves: they count for another one.
    std::fs::write(&procs, text(&pids[1..])).expect("a file");
    until(&mut remote, "it has left", |remote| remote.known.len() == 2);
    remote.look();
    let sum: u64 = in_mapping(&remote).iter().sum();
    assert!(sum.abs_diff(LEN / PAGE) <= 128, "{sum}");
    assert!(
        nodes.0.lock().expect("ours").shared > 0 || nodes.0.lock().expect("ours").slow.is_empty()
    );
    for pid in pids {
        // SAFETY: a child of this test's.
        unsafe { libc::kill(pid, libc::SIGKILL) };
        // SAFETY: as above.
        unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
    }
    // SAFETY: this test's, and nothing uses it any more.
    unsafe { memory::unmap(start, LEN) };
    // A group that is gone ends the session.
    drop(group);
    std::thread::sleep(MEMBERS);
    assert!(remote.step().expect("that is no error").is_none());
}

#[test]
fn processes_that_are_gone_before_they_are_looked_at_are_missed() {
    let group = tempfile::tempdir().expect("a directory");
    let mut ended = Command::new("true").spawn().expect("it is there");
    ended.wait().expect("it ends");
    let own = format!("{}\n{}\n", ended.id(), std::process::id());
    std::fs::write(group.path().join("cgroup.procs"), own).expect("a file");
    let nodes = TwoNodes::default();
    let session = session(ROTATE, Choice::Best);
    let members = Members::group(group.path(), Path::new(".")).expect("it is one");
    let mut remote = remote(members, &nodes, session);
    for _ in 0..2 {
        assert!(remote.step().expect("no error").is_some());
        remote.refreshed = None;
    }
    // It is still listed, and counts once.
    assert_eq!(remote.missed(), 1);
    assert!(remote.living().is_empty());
}

#[test]
fn policies_that_need_accesses_are_refused_where_none_are_tracked() {
    let root = tempfile::tempdir().expect("a directory");
    let places = nowhere(root.path());
    let start = |policy, tracking| {
        let session = session(policy, tracking);
        let back_end = back_end(&TwoNodes::default(), session);
        Remote::with(Members::own(), back_end, session, &places)
    };
    let error = start(LRU, Choice::Damon).expect_err("there is none");
    let absent = DamonError::Absent;
    assert!(error.to_string().contains(&absent.to_string()), "{error}");
    assert!(matches!(start(LRU, Choice::Hints), Err(TierError::Hints)));
    let tracked = start(ROTATE, Choice::Best).expect("it needs none");
    let built = tracked.tracking();
    assert!(built.contains("built without DAMON"), "{built}");
    match start(LRU, Choice::Best) {
        Ok(remote) => assert_eq!(remote.trackers.tracking(), Tracking::SoftDirty),
        Err(error) => {
            let text = error.to_string();
            assert!(text.starts_with("--policy lru needs accesses"), "{text}");
            assert!(text.contains("CONFIG_MEM_SOFT_DIRTY"), "{text}");
        }
    }
}

#[test]
fn rights_that_are_missing_are_named() {
    let rights = |moves_shared, shows_frames| Rights {
        moves_shared,
        shows_frames,
    };
    assert_eq!(rights(true, true).left_out(), None);
    let text = rights(false, false).left_out().expect("two are missing");
    assert!(
        text.starts_with("without CAP_SYS_NICE and CAP_SYS_ADMIN pages"),
        "{text}"
    );
    assert!(!rights(true, false).shared());
    assert!(check(1 << 30).is_err());
}
