//! Static programs that other programs start under `dray run`.

mod privileges;

use crate::session::{Ended, Session, mounts, shell};

const PROFILE: [&str; 2] = ["--profile", "1e1w-d"];
const SHARED: [&str; 2] = ["--profile", "4e1w-s"];
const COPIED: &str = "copies 50\nclosed 1\n";
const NOTE: &str = "is statically linked: it runs under the supervisor, which is slower";

fn program() -> &'static str {
    text(crate::build::static_program())
}

fn starter() -> &'static str {
    text(crate::build::starter())
}

fn text(path: &'static std::path::Path) -> &'static str {
    path.to_str().expect("the system lets a test do this")
}

/// Starts the program in this way, with these arguments.
#[track_caller]
fn start(options: &[&str], way: &str, arguments: &str) -> Ended {
    let script = format!("{} {way} {arguments}", starter());
    Session::new().shell(options, &script)
}

#[test]
fn each_way_of_executing_a_program_gives_it_a_portal() {
    let ways = [
        "execl",
        "execlp",
        "execle",
        "execv",
        "execvp",
        "execve",
        "execve-nothing",
        "execvpe",
        "execveat",
        "execveat-below",
        "execveat-file",
        "fexecve",
        "vfork",
        "fork",
        "thread",
        "posix_spawn",
        "posix_spawnp",
        "posix_spawn-moved",
    ];
    let (starter, program) = (starter(), program());
    let script: String = ways
        .map(|way| format!("echo {way}; {starter} {way} {program} copy /dev/dsa/wq0.0; echo $?\n"))
        .concat();
    let expected: String = ways.map(|way| format!("{way}\n{COPIED}0\n")).concat();
    let output = shell(&PROFILE, &script);
    assert_eq!(output.out, expected, "{output:?}");
    assert_eq!(output.err.matches(NOTE).count(), 1, "{output:?}");
}

#[test]
fn shells_env_and_xargs_start_supervised_programs() {
    let program = program();
    let scripts = [
        format!("{program} copy /dev/dsa/wq0.0"),
        format!("env MARK=1 {program} copy /dev/dsa/wq0.0"),
        format!("env -i {program} copy /dev/dsa/wq0.0"),
        format!("echo copy /dev/dsa/wq0.0 | xargs {program}"),
        format!(
            "PATH=${{0%/*}}:{} static copy /dev/dsa/wq0.0",
            env!("CARGO_TARGET_TMPDIR")
        ),
        format!("printf 'all:\\n\\t@{program} copy /dev/dsa/wq0.0\\n' | make -sf -"),
        format!("find /dev/dsa -name 'wq0.0' -exec {program} copy {{}} ';'"),
        format!("perl -e 'exit(system(\"{program}\", \"copy\", \"/dev/dsa/wq0.0\"))'"),
    ];
    for script in scripts {
        let output = shell(&PROFILE, &script);
        assert_eq!(output.out, COPIED, "{script}: {output:?}");
        assert_eq!(output.code, Some(0), "{script}: {output:?}");
    }
}

#[test]
fn python_starts_supervised_programs_in_every_way() {
    let script = format!(
        "
import os, subprocess
command = ['{}', 'copy', '/dev/dsa/wq0.0']
print(subprocess.run(command).returncode, flush=True)
print(subprocess.run(command, close_fds=False).returncode, flush=True)
print(subprocess.run(command, preexec_fn=lambda: None).returncode, flush=True)
print(subprocess.run(' '.join(command), shell=True).returncode, flush=True)
print(subprocess.check_output(command).decode(), end='')
print(os.system(' '.join(command)), flush=True)
print(os.popen(' '.join(command)).read(), end='')",
        program()
    );
    let mut arguments = PROFILE.to_vec();
    arguments.extend(["--", "python3", "-c", &script]);
    let output = Session::new().run(&arguments);
    let expected = format!("{0}0\n{0}0\n{0}0\n{0}0\n{0}{0}0\n{0}", COPIED);
    assert_eq!(output.out, expected, "{output:?}");
}

#[test]
fn a_script_gets_a_portal_where_its_interpreter_does() {
    let (starter, program) = (starter(), program());
    let script = format!(
        "printf '#!{program} copy\\n' >one; printf '#!'$PWD'/one\\n' >two; chmod +x one two
        ./one /dev/dsa/wq0.0; {starter} posix_spawn ./one 1 2 /dev/dsa/wq0.0
        ./two /dev/dsa/wq0.0"
    );
    let output = shell(&PROFILE, &script);
    assert_eq!(output.out, COPIED.repeat(3), "{output:?}");
}

#[test]
fn an_inner_session_supervises_its_own_programs() {
    let dray = crate::session::program();
    let program = program();
    for outer in ["auto", "never"] {
        let options = ["--profile", "4e1w-s", "--supervise", outer];
        let inner = format!("{} run --profile 1e1w-d --", dray.display());
        let node = "copy /dev/dsa/wq0.0";
        let script = format!("{inner} {program} {node}; {inner} sh -c '{program} {node}; true'");
        let output = shell(&options, &script);
        assert_eq!(output.out, COPIED.repeat(2), "{output:?}");
        assert!(!output.err.contains("warning"), "{output:?}");
    }
}

#[test]
fn a_supervised_program_starts_in_the_same_state_as_without() {
    let ways = [
        "execl-many",
        "execvp",
        "vfork",
        "posix_spawn",
        "posix_spawn-moved",
    ];
    for way in ways {
        let script = format!(
            "cd /; umask 027; export MARK=word; trap '' PIPE USR2; exec 5</dev/null
            {} {way} {} state 'a b' '' <&-; echo $?",
            starter(),
            program()
        );
        let with = shell(&PROFILE, &script);
        let without = shell(&["--supervise", "never"], &script);
        assert_eq!(with.out, without.out, "{way}: {with:?}");
        assert!(with.out.contains("mark word"), "{way}: {with:?}");
        assert!(with.out.ends_with("\n4\n"), "{way}: {with:?}");
        assert!(with.err.contains(NOTE), "{way}: {with:?}");
    }
}

#[test]
fn exec_errors_are_those_without_a_supervisor() {
    let script = |way: &str| {
        format!(
            "cp {} plain; chmod 644 plain; echo words >text; chmod 755 text; mkdir directory
            printf '\\177ELF' >cut; chmod 755 cut; printf '#!/not/there\\n' >bad; chmod 755 bad
            for file in ./missing ./plain ./text ./directory ./cut ./bad ./plain/x ''; do
                {} {way} \"$file\" a b; echo $?
            done",
            program(),
            starter()
        )
    };
    for way in [
        "execl",
        "execvp",
        "execveat",
        "fexecve",
        "vfork",
        "posix_spawn",
        "posix_spawnp",
    ] {
        let with = shell(&PROFILE, &script(way));
        let never = shell(&["--supervise", "never"], &script(way));
        assert_eq!(with.out, never.out, "{way}: {with:?}");
        assert!(with.out.contains("errno 2\n"), "{way}: {with:?}");
    }
}

#[test]
fn exit_codes_and_signals_of_supervised_programs_are_passed_on() {
    for way in ["vfork", "posix_spawn"] {
        let arguments = format!("{} exit /dev/dsa/wq0.0", program());
        let output = start(&PROFILE, way, &arguments);
        assert_eq!(output.out, "copies 1\n", "{way}: {output:?}");
        assert_eq!(output.code, Some(7), "{way}: {output:?}");
        let arguments = format!("{} raise /dev/dsa/wq0.0", program());
        let output = start(&PROFILE, way, &arguments);
        assert_eq!(output.out, "copies 1\nsignal 15\n", "{way}: {output:?}");
    }
}

#[test]
fn a_program_can_be_executed_after_exec_failed_with_etxtbsy() {
    // A file that is open for writing cannot be executed (ETXTBSY), which only execve(2) itself finds.
    let script = format!(
        "
import os, shutil
shutil.copy('{}', 'busy')
file = os.open('busy', os.O_WRONLY)
for turn in range(2):
    try:
        os.execv('busy', ['busy', 'copy', '/dev/dsa/wq0.0'])
    except OSError as error:
        print(error.strerror, flush=True)
        os.system('true')
    os.close(file)",
        program()
    );
    let mut arguments = PROFILE.to_vec();
    arguments.extend(["--", "python3", "-c", &script]);
    let output = Session::new().run(&arguments);
    assert_eq!(
        output.out,
        format!("Text file busy\n{COPIED}"),
        "{output:?}"
    );
}

/// A session whose directory everyone may enter, with the programs in it.
fn shared() -> Session {
    let session = Session::new();
    session.share();
    for program in [crate::build::static_program(), crate::build::starter()] {
        let name = program.file_name().expect("the system lets a test do this");
        std::fs::copy(program, session.path().join(name)).expect("the system lets a test do this");
    }
    session
}

#[test]
fn several_programs_are_supervised_at_once() {
    let script = format!(
        "for number in 1 2 3 4; do {} threads-shared /dev/dsa/wq0.0 >out$number & done
        wait; cat out1 out2 out3 out4",
        program()
    );
    let output = shell(&SHARED, &script);
    assert_eq!(output.out, "copies 200\n".repeat(4), "{output:?}");
}

#[test]
fn children_of_a_supervised_program_are_not_attached_twice() {
    // The first program executes itself, in the same process.
    let program = program();
    let output = shell(&PROFILE, &format!("{program} exec /dev/dsa/wq0.0"));
    assert_eq!(output.out, format!("first 1\n{COPIED}"), "{output:?}");
    // A traced shell has loaded the library, which requests supervision a second time.
    let mut options = PROFILE.to_vec();
    options.extend(["--supervise", "always"]);
    for way in ["vfork", "posix_spawn", "thread"] {
        let output = start(&options, way, &format!("{program} copy /dev/dsa/wq0.0"));
        assert_eq!(output.out, COPIED, "{way}: {output:?}");
        assert!(!output.err.contains("warning"), "{way}: {output:?}");
    }
}

#[test]
fn a_program_traced_by_another_process_runs_without_portal() {
    let output = start(&PROFILE, "traced", &format!("{} state x", program()));
    assert_eq!(output.code, Some(4), "{output:?}");
    let warning = format!("{} gets no portal", program());
    assert!(output.err.contains(&warning), "{output:?}");
    assert!(
        output
            .err
            .contains("hint: a process is traced by one alone"),
        "{output:?}"
    );
    assert!(!output.err.contains(NOTE), "{output:?}");
}

#[test]
fn killing_the_launcher_ends_its_tracees() {
    let before = mounts();
    // The shell is no tracee, and waits for two that are.
    let program = program();
    let script = format!(
        "{program} endless-shared /dev/dsa/wq0.0 & {program} endless-shared /dev/dsa/wq0.0"
    );
    let mut running = Session::new().start(&SHARED, &script);
    running.line("ready");
    running.line("ready");
    running.killed_with_descendants(4);
    assert_eq!(mounts(), before);
}

#[test]
fn a_queue_can_be_opened_after_its_program_was_killed() {
    let program = program();
    let script = format!(
        "{program} endless /dev/dsa/wq0.0 >said & child=$!
        while ! grep -q ready said; do :; done
        kill -KILL $child; wait $child
        {program} copy /dev/dsa/wq0.0"
    );
    let output = shell(&PROFILE, &script);
    assert_eq!(output.out, COPIED, "{output:?}");
}

#[test]
fn a_program_runs_without_portal_where_the_socket_refuses() {
    for way in ["vfork", "posix_spawn"] {
        let (starter, program) = (starter(), program());
        let script =
            format!("export DRAY_SOCKET=@nobody; sh -c '{starter} {way} {program} state x'");
        let output = shell(&PROFILE, &script);
        assert_eq!(output.code, Some(4), "{output:?}");
        let warning = format!(
            "warning: {program} gets no portal: the process that owns the device cannot be reached: \
             Connection refused"
        );
        assert!(output.err.starts_with(&warning), "{output:?}");
    }
}

#[test]
fn supervise_never_leaves_a_static_program_without_portal() {
    let mut options = PROFILE.to_vec();
    options.extend(["--supervise", "never"]);
    for way in ["vfork", "posix_spawn"] {
        let output = start(&options, way, &format!("{} copy /dev/dsa/wq0.0", program()));
        assert_eq!(output.code, Some(3), "{output:?}");
        assert!(output.err.contains("mmap: No such device\n"), "{output:?}");
        assert!(output.err.contains("and got no portal"), "{output:?}");
    }
}

/// The address space of a PASID ends with execve(2); the open file does not.
#[test]
fn a_queue_that_is_open_over_exec_is_refused_and_a_new_one_works() {
    for program in [text(crate::build::dynamic_program()), program()] {
        let script = format!("{program} keep-shared /dev/dsa/wq0.0");
        let output = shell(&SHARED, &script);
        assert_eq!(output.out, "first 1\nrefused 1\nown 2\n", "{output:?}");
        assert_eq!(output.code, Some(0), "{output:?}");
    }
}

/// Programs that lose the library from their environment, one way or the other.
#[test]
fn a_program_without_the_library_in_its_environment_has_a_portal() {
    let dynamic = text(crate::build::dynamic_program());
    for way in [
        "env -i",
        "env -u LD_PRELOAD",
        "env -u DRAY_SOCKET",
        "env LD_PRELOAD=/usr/lib/x86_64-linux-gnu/libc.so.6",
    ] {
        let output = shell(&PROFILE, &format!("{way} {dynamic} copy /dev/dsa/wq0.0"));
        assert_eq!(output.out, COPIED, "{way}: {output:?}");
        let note = "is started without dray's LD_PRELOAD or DRAY_SOCKET: it runs under";
        assert!(output.err.contains(note), "{way}: {output:?}");
    }
    // A program with the library in its environment is not supervised.
    let output = shell(&PROFILE, &format!("env A=b {dynamic} copy /dev/dsa/wq0.0"));
    assert_eq!((output.out.as_str(), output.err.as_str()), (COPIED, ""));
}

/// Programs that were started past the check of environments: by the C library itself from a program
/// that has no library any more, and by one that was not checked.
#[test]
fn a_program_is_supervised_when_it_opens_a_queue_without_the_library() {
    let dynamic = text(crate::build::dynamic_program());
    let note = "has not loaded the preload library: it runs under the supervisor from now on";
    for mode in ["copy", "threads", "exit"] {
        let script = format!(
            "import os, sys
del os.environ['LD_PRELOAD']
sys.exit(os.waitstatus_to_exitcode(os.system('{dynamic} {mode} /dev/dsa/wq0.0')))"
        );
        let mut arguments = PROFILE.to_vec();
        arguments.extend(["--require", "portal", "--", "python3", "-c", &script]);
        let output = Session::new().run(&arguments);
        let (copied, code) = match mode {
            "copy" => (COPIED, 0),
            "threads" => ("copies 200\n", 0),
            _ => ("copies 1\n", 7),
        };
        assert_eq!(
            (output.out.as_str(), output.code),
            (copied, Some(code)),
            "{output:?}"
        );
        assert!(output.err.contains(note), "{mode}: {output:?}");
    }
}

/// Where supervision is not possible the program runs without it, and a note is printed.
#[test]
fn a_program_that_cannot_be_supervised_is_named_when_it_opens_a_queue() {
    let (starter, dynamic) = (starter(), text(crate::build::dynamic_program()));
    let script = format!(
        "import os
del os.environ['LD_PRELOAD']
os.system('{starter} traced {dynamic} copy /dev/dsa/wq0.0')"
    );
    let mut arguments = PROFILE.to_vec();
    arguments.extend([
        "--stats",
        "--require",
        "portal",
        "--",
        "python3",
        "-c",
        &script,
    ]);
    let output = Session::new().run(&arguments);
    assert_eq!(output.code, Some(1), "{output:?}");
    let said = "dynamic opened wq0.0 without the preload library, and got no portal";
    for begin in ["warning: ", "no portal: ", "error: --require portal: "] {
        assert!(
            output.err.contains(&format!("{begin}{said}")),
            "{begin}: {output:?}"
        );
    }
}
