# What a case's part on the host shares: a file cases/NAME.host.sh is run with the console's file as its argument, and
# boots the guest itself.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=/dev/null
. "$here/lib/cache.sh"
dray=${DRAY:-dray}
console=$1
work=$(mktemp -d)
started=()
trap 'for pid in "${started[@]}"; do kill "$pid" 2>/dev/null; done; wait; rm -rf "$work"' EXIT

# Starts a program of ours that listens on sockets, and waits until it does. Its process is $started_pid.
start() { # LOG SOCKET... -- ARGUMENTS OF DRAY...
    local log=$1 sockets=() socket
    shift
    while [ "$1" != -- ]; do sockets+=("$1") && shift; done
    shift
    "${tied[@]}" "$dray" "$@" >"$log" 2>&1 &
    started_pid=$!
    started+=("$started_pid")
    for socket in "${sockets[@]}"; do
        until [ -S "$socket" ]; do
            kill -0 "$started_pid" 2>/dev/null || {
                cat "$log" >&2
                fail "dray $1 did not start"
            }
            sleep 0.1
        done
    done
}

# Ends it as Ctrl-C does; its exit code.
end() { # PID
    kill -INT "$1" && wait "$1"
}

boot() { # CONSOLE SCRIPT OPTION...
    local into=$1 script=$2
    shift 2
    [ -z "${WATCHDOG_S:-}" ] || set -- --watchdog "$WATCHDOG_S" --watchdog-at-most "$WATCHDOG_S" "$@"
    "${tied[@]}" "$here/vm" boot --console "$into" "$@" "$script"
}

# Waits until a process has said a text in a file. It is the guest that has a time limit, which scales.
await_text() { # PID TEXT FILE
    local begin=$SECONDS
    until grep -qE "$2" "$3"; do
        [ $((SECONDS - begin)) -lt "${WATCHDOG_S:-2400}" ] || {
            note "\"$2\" was not said in $((SECONDS - begin)) s"
            return 1
        }
        # What it said last may have come since.
        kill -0 "$1" 2>/dev/null || grep -qE "$2" "$3" || {
            note "it has ended, and \"$2\" was not said"
            return 1
        }
        sleep 0.2
    done
}

# No copy of the mover failed and no packet of a guest was refused; prints what was copied, by whom.
no_failed_copy() { # STATS
    tr -d ' \n' <"$1" | grep -o '"channels":.*' | tr '{' '\n' | sed -n 's/"name":/channel /p' | sed 's/[{}"]//g'
    if tr -d ' \n' <"$1" | grep -qE '"(failed|copies_repeated)":[1-9]|"broken":"'; then
        note "a copy failed, or a ring was stopped: $(tr -d ' \n' <"$1")"
        return 1
    fi
}
