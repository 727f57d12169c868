# Where things are kept, and how errors and warnings are said.

note() { echo "$*" >&2; }
fail() {
    echo "error: $*" >&2
    exit 1
}

# Outside every repository: $DRAY_VM_CACHE, or dray/vm in the user's cache folder.
cache=${DRAY_VM_CACHE:-${XDG_CACHE_HOME:-${HOME:+$HOME/.cache}}/dray/vm}
[ "$cache" != /dray/vm ] || fail "no place for the cache: set HOME or DRAY_VM_CACHE"
root=$cache/root

# Programs of the unpacked root run with its own loader and libraries: nothing of it is installed. These words come
# before the program's path.
loader=("$root/usr/lib64/ld-linux-x86-64.so.2"
    --library-path "$root/usr/lib/x86_64-linux-gnu:$root/usr/lib/x86_64-linux-gnu/pulseaudio")

# These words come before a program that ends when who started it has ended, however that was: SIGKILL, too.
tied=(setpriv --pdeathsig TERM)

# What this machine lacks for all this, a line each.
missing() {
    local tool
    [ "$(uname -m)" = x86_64 ] || echo "an x86-64 machine"
    for tool in apt-get apt-cache dpkg-deb setpriv unshare chroot xz cc sha256sum; do
        command -v "$tool" >/dev/null || echo "the program $tool"
    done
}
