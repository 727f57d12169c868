# `dray vm` that is ended ends its guest and its device, and leaves no file: by SIGTERM, by SIGINT in a shell of the
# guest, and by SIGKILL, after which the script that it started cleans up.
. "$(dirname "$0")/../host.sh"
mkdir "$work/tmp"
mkfifo "$work/keys"
exec 8<>"$work/keys"

# Processes whose arguments name a file of the folder: QEMU and the device.
of_the_guest() {
    local process
    for process in /proc/[0-9]*; do
        tr '\0' ' ' 2>/dev/null <"$process/cmdline" | grep -q "$work/tmp" && echo "${process#/proc/}"
    done
}

# Waits until nothing is left of a guest. It has no time limit but a whole watchdog's.
await_nothing() {
    local begin=$SECONDS left
    while left=$(of_the_guest; ls "$work/tmp") && [ -n "$left" ]; do
        [ $((SECONDS - begin)) -lt "${WATCHDOG_S:-240}" ] || {
            note "still there: $left"
            of_the_guest | while read -r process; do kill -9 "$process"; done
            return 1
        }
        sleep 0.2
    done
}

# ended SIGNAL TEXT OPTION...: starts a guest, awaits a text, and ends the command.
ended() {
    local signal=$1 text=$2 status
    shift 2
    TMPDIR=$work/tmp "${tied[@]}" "$dray" vm "$@" <"$work/keys" >"$console" 2>&1 &
    started_pid=$!
    started+=("$started_pid")
    await_text "$started_pid" "$text" "$console" || return 1
    [ -n "$(of_the_guest)" ] || note "no process of a guest is seen" || return 1
    kill -s "$signal" "$started_pid"
    # The shell would tell of SIGKILL.
    wait "$started_pid" 2>/dev/null
    status=$?
    # The folder of the command itself is no one's after SIGKILL.
    [ "$signal" != KILL ] || rm -rf "$work"/tmp/.tmp*
    await_nothing || return 1
    echo "SIG$signal: exit code $status, nothing is left"
    case $signal in
    KILL) [ "$status" -eq 137 ] ;;
    *) [ "$status" -eq 130 ] ;;
    esac
}

ended TERM '^UP' -- sh -c 'echo UP; sleep 100000' &&
    ended INT 'Ctrl-D ends the guest' &&
    ended KILL '^UP' -- sh -c 'echo UP; sleep 100000'
