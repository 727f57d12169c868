# QEMU dies with descriptors in flight; the device stays, and the next guest finds it as new.
. "$(dirname "$0")/../host.sh"
socket=$work/dsa.sock
start "$work/door" "$socket" -- vfio --socket "$socket"
# The guest says when its copies are under way, and would never end by itself.
boot "$console" "$here/guest/endless.sh" --socket "$socket" --watchdog 120 --until LOADED || exit 1
await_text "$started_pid" 'client (has left|was dropped)' "$work/door" && kill -0 "$started_pid" &&
    boot "$console" "$here/cases/bind.sh" --socket "$socket"
status=$?
cat "$work/door"
exit "$status"
