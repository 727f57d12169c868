//! Real-time priority for the time of a measurement: below a second, after which the kernel gives
//! everybody else their turn.

use std::fs;

/// Gives the priorities back when it is dropped.
pub struct Guard(Vec<i32>);

/// Threads that poll get priority 1, the others of their processes 5, those of this process 6.
pub fn raise(pids: &[u32]) -> Guard {
    let mut threads = Vec::new();
    let own = std::process::id();
    for pid in pids.iter().chain([&own]) {
        let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
            continue;
        };
        for task in tasks.flatten() {
            let name = fs::read_to_string(task.path().join("comm")).unwrap_or_default();
            let polls = name.contains("worker") || name.starts_with("rival-poll");
            let id = task.file_name().to_string_lossy().parse::<i32>();
            let priority = match (*pid == own, polls) {
                (true, _) => 6,
                (false, true) => 1,
                (false, false) => 5,
            };
            threads.extend(id.map(|id| (id, priority)));
        }
    }
    // Higher ones first: who raises the others must not be held up by them.
    threads.sort_by_key(|(_, priority)| -priority);
    for (id, priority) in &threads {
        set(*id, libc::SCHED_FIFO, *priority);
    }
    Guard(threads.into_iter().rev().map(|(id, _)| id).collect())
}

fn set(id: i32, policy: i32, priority: i32) {
    // SAFETY: zeroed is a valid parameter block.
    let mut parameter: libc::sched_param = unsafe { std::mem::zeroed() };
    parameter.sched_priority = priority;
    // SAFETY: the block is whole; an id that is gone or a policy that is not allowed is an error,
    // and the thread stays as it is.
    unsafe { libc::sched_setscheduler(id, policy, &raw const parameter) };
}

impl Drop for Guard {
    fn drop(&mut self) {
        for id in &self.0 {
            set(*id, libc::SCHED_OTHER, 0);
        }
    }
}

/// Binds the calling process to a CPU.
pub fn bind(cpu: usize) {
    // SAFETY: zeroed is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the macro checks the number against the set's size.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is whole. If it is refused, the process runs where it runs.
    unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) };
}
