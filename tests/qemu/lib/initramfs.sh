# What the guest finds: busybox, accel-config, the driver, our modules, and what a case brings.

# initramfs FILE SCRIPT [GUEST_PATH=FILE]...
initramfs() {
    local into=$1 script=$2 tree version built extra name
    shift 2
    tree=$into.tree
    mkdir "$tree"
    version=$(kernel)
    built=$(modules)
    mkdir -p "$tree"/{bin,proc,sys,dev,tmp,lib/modules,lib64,usr/lib/x86_64-linux-gnu}
    cp "$root/usr/bin/busybox" "$tree/bin"
    cp -L "$root/usr/bin/accel-config" "$tree/bin"
    cp -L "$root/usr/lib64/ld-linux-x86-64.so.2" "$tree/lib64"
    for name in libaccel-config.so.1 libjson-c.so.5 libuuid.so.1 libc.so.6; do
        cp -L "$root/usr/lib/x86_64-linux-gnu/$name" "$tree/usr/lib/x86_64-linux-gnu"
    done
    for name in idxd_bus idxd failover net_failover virtio_net; do
        module "$name" >"$tree/lib/modules/$name.ko"
    done
    cp "$built"/*.ko "$tree/lib/modules"
    for name in copy migrate; do
        cp "$(guest_program "$name")" "$tree/bin/$name" || exit 1
    done
    [ -z "$programs" ] || bring_dray "$tree"
    cp "$here/guest/init" "$tree/init"
    cp "$here/guest/lib.sh" "$here/guest/migrate.sh" "$tree"
    cp "$script" "$tree/script"
    for extra in "$@"; do
        mkdir -p "$tree/$(dirname "${extra%%=*}")"
        cp -L "${extra#*=}" "$tree/${extra%%=*}" || fail "${extra#*=} cannot be read"
    done
    chmod 755 "$tree/init"
    (cd "$tree" && find . | "$root/usr/bin/busybox" cpio -o -H newc 2>/dev/null | gzip -1) >"$into"
    rm -rf "$tree"
}

# A module of the kernel's own, unpacked, on stdout.
module() {
    local file
    file=$(find "$root/usr/lib/modules/$(kernel)/kernel" -name "$1.ko.xz" | head -1)
    [ -n "$file" ] || fail "kernel $(kernel) has no module $1"
    xz -dc "$file"
}

# The dray command, and a program that it starts, one that loads shared objects and one that does not.
bring_dray() { # TREE
    local tree=$1 name
    strip -o "$tree/bin/dray" "$(command -v "${DRAY:-dray}")" || fail "there is no dray to bring"
    cc -O2 -Wall -o "$tree/bin/tier" "$here/guest/tier.c" >&2 || fail "tier.c cannot be compiled"
    cc -O2 -Wall -static -o "$tree/bin/tier-static" "$here/guest/tier.c" >&2 || fail "tier.c cannot be compiled"
    for name in libgcc_s.so.1 libm.so.6; do
        cp -L "$root/usr/lib/x86_64-linux-gnu/$name" "$tree/usr/lib/x86_64-linux-gnu"
    done
}

# A user program of the cases, static: the guest's C library is another than this machine's.
guest_program() { # NAME
    local program
    program=$cache/$1-$(sha256sum <"$here/guest/$1.c" | cut -c1-16)
    if [ ! -x "$program" ]; then
        cc -static -O2 -Wall -pthread -o "$program.$$" "$here/guest/$1.c" >&2 || fail "$1.c cannot be compiled"
        mv "$program.$$" "$program"
    fi
    echo "$program"
}
