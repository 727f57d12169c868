# Guest modules: our own, and dmatest. Built in the unpacked root, whose compiler the kernel was built with.

helpers=$here/../../kernel

# Folder of the modules, built if they are not there.
modules() {
    local version folder build=$root/build
    version=$(kernel)
    folder=$cache/modules/$( (echo "$version" && cat "$helpers"/*.[ch] "$helpers"/*/*.[ch] "$helpers"/Makefile) | sha256sum | cut -c1-16)
    if [ ! -f "$folder/done" ]; then
        exec 8>"$cache/lock"
        flock 8
        note "building the guest's modules"
        rm -rf "$build"
        mkdir -p "$build" "$folder"
        cp -r "$helpers"/*.[ch] "$helpers"/dray_migrate "$helpers"/Makefile "$root/usr/src/dmatest/dmatest.c" "$build"
        echo 'obj-m += dmatest.o' >>"$build/Makefile"
        kbuild "$version" "$build" >"$folder/log" 2>&1 || {
            cat "$folder/log" >&2
            fail "the guest's modules cannot be built for $version"
        }
        cp "$build"/*.ko "$folder"
        touch "$folder/done"
        flock -u 8
    fi
    echo "$folder"
}

# Builds the modules of a folder of the user's, in that folder, against the headers of the guest's kernel.
build_modules() { # FOLDER
    local folder
    folder=$(realpath -e -- "$1" 2>/dev/null) && [ -d "$folder" ] || fail "$1: no such folder"
    [ -r "$folder/Makefile" ] || [ -r "$folder/Kbuild" ] ||
        fail "$folder has no Makefile or Kbuild, such as: obj-m += hello.o"
    mkdir -p "$root/build"
    kbuild "$(kernel)" "$folder" >&2 || fail "the modules of $folder cannot be built for $(kernel)"
    find "$folder" -maxdepth 2 -name '*.ko'
}

# Mounts and processes are the child's own and end with it, and it ends with this script.
kbuild() { # VERSION FOLDER
    local user=()
    [ "$(id -u)" -eq 0 ] || user=(--user --map-root-user)
    # unshare ignores SIGTERM while it waits.
    setpriv --pdeathsig KILL unshare "${user[@]}" --mount --pid --fork --kill-child bash -c '
        mount --rbind /proc "$1/proc" && mount --rbind /dev "$1/dev" &&
            { [ "$3" = "$1/build" ] || mount --bind "$3" "$1/build"; } &&
            chroot "$1" /usr/bin/make -C "/usr/src/linux-headers-$2" M=/build modules' \
        kbuild "$root" "$1" "$2"
}
