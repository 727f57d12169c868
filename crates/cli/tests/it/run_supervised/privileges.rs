//! Users and privileges of supervised programs.

use super::*;

#[test]
fn supervision_needs_no_privilege() {
    let script = "for way in execv thread vfork posix_spawn; do
            ./start $way ./static copy /dev/dsa/wq0.0
        done";
    let output = shared().as_nobody(&PROFILE, script);
    assert_eq!(output.out, COPIED.repeat(4), "{output:?}");
    assert_eq!(output.err.matches(NOTE).count(), 1, "{output:?}");
}

/// Starts a program as the user nobody, without capabilities.
const AS_NOBODY: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";

#[test]
fn unprivileged_programs_set_no_new_privs() {
    // The filter requires no_new_privs. The shell around the program has not set it.
    let script = format!(
        "chmod 666 /dev/dsa/wq0.0
        {AS_NOBODY} sh -c './static state x | tail -1'; ./static state x | tail -1
        {AS_NOBODY} sh -c './static copy /dev/dsa/wq0.0'"
    );
    let output = shared().shell(&PROFILE, &script);
    let privileges: Vec<&str> = output
        .out
        .lines()
        .filter_map(|l| l.split_once("mark "))
        .map(|l| l.1)
        .collect();
    let expected = [
        "- effective 65534 no-new-privs 1",
        "- effective 0 no-new-privs 0",
    ];
    assert_eq!(privileges, expected, "{output:?}");
    assert!(output.out.ends_with(COPIED), "{output:?}");
}

#[test]
fn a_setuid_program_keeps_its_privileges() {
    let script = format!(
        "cp static own; chmod 4755 own
        {AS_NOBODY} sh -c './own state x | tail -1'; ./own copy /dev/dsa/wq0.0"
    );
    let output = shared().shell(&PROFILE, &script);
    assert!(
        output.out.contains("effective 0 no-new-privs 0"),
        "{output:?}"
    );
    let warning = "./own gets no portal: tracing would take its privileges away";
    assert!(output.err.contains(warning), "{output:?}");
    // For root there are no additional privileges to lose.
    assert!(output.out.ends_with(COPIED), "{output:?}");
}

#[test]
fn exec_without_permission_fails_with_eacces() {
    let script = format!(
        "chmod 744 static
        for way in vfork posix_spawn posix_spawnp; do
            {AS_NOBODY} ./start $way ./static state x; echo $?
        done"
    );
    let output = shared().shell(&PROFILE, &script);
    assert_eq!(output.out, "errno 13\n9\n".repeat(3), "{output:?}");
}
