# QEMU, the kernel, its headers and a compiler: Debian packages, downloaded and unpacked, never installed.

packages=$here/packages.lock
# Release that all of it is from.
release=trixie

# The archive that this machine's own apt uses, by its label; DRAY_DEBIAN_MIRROR where that is no Debian archive.
mirror() { # LABEL
    apt-get indextargets --format '$(SITE) $(ORIGIN) $(LABEL)' 2>/dev/null |
        awk -v label="$1" '$2 == "Debian" && $3 == label {print $1; exit}'
}

# An apt that has its state in the cache and believes that nothing is installed.
private_apt() {
    local apt=$cache/apt keyring=/usr/share/keyrings/debian-archive-keyring.gpg site security
    [ -f "$keyring" ] || fail "$keyring is missing: the package debian-archive-keyring has it"
    site=${DRAY_DEBIAN_MIRROR:-$(mirror Debian)}
    # An archive that was named is the only one.
    security=${DRAY_DEBIAN_MIRROR:+none}
    [ -n "$security" ] || security=$(mirror Debian-Security)
    [ -n "$site" ] || fail "apt has no Debian archive; name one in DRAY_DEBIAN_MIRROR"
    mkdir -p "$apt/lists/partial" "$apt/archives/partial" "$cache/debs"
    : >"$apt/status"
    {
        echo "deb [signed-by=$keyring] $site $release main"
        echo "deb [signed-by=$keyring] $site $release-backports main"
        [[ -z $security || $security = none ]] || echo "deb [signed-by=$keyring] $security $release-security main"
    } >"$apt/sources.list"
    cat >"$apt/apt.conf" <<EOF
Dir::State "$apt"; Dir::State::lists "$apt/lists"; Dir::State::status "$apt/status";
Dir::Cache "$apt"; Dir::Cache::archives "$apt/archives";
Dir::Etc::sourcelist "$apt/sources.list"; Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "/dev/null"; Dir::Etc::preferences "/dev/null"; Dir::Etc::main "/dev/null";
Acquire::Languages "none"; Acquire::Retries "1"; Acquire::http::Timeout "30"; Acquire::https::Timeout "30"; APT::Architecture "amd64"; APT::Update::Error-Mode "any"; APT::Sandbox::User "";
EOF
    # Without it apt would take this machine's own state.
    [ -s "$apt/apt.conf" ] || fail "$apt cannot be written"
    export APT_CONFIG=$apt/apt.conf
}

# The version that the kernel's packages have in their names.
locked_kernel() { sed -n 's/^linux-binary-\([^ ]*\) .*/\1/p' "$packages"; }

# The same, of what was unpacked.
kernel() { cat "$root/.kernel"; }

# Downloads what packages.lock names into debs/. What the archive has no more is taken in its next version,
# with a warning; of the pinned versions the checksums are those of the lock.
download() {
    local name version sum wanted=() pinned=$cache/pinned there=$cache/there locked newest file
    locked=$(locked_kernel)
    newest=$locked
    # Every version that the archive has of what is wanted: name, version.
    apt-cache madison $(awk '!/^#/ {print $1}' "$packages") 2>/dev/null |
        awk -F '[ |]+' '{sub(/^ +/, ""); print $1, $2}' | sort -u >"$there"
    if ! grep -q "^linux-binary-$locked " "$there"; then
        newest=$(apt-cache search --names-only '^linux-binary-[0-9.]+[+]deb13-amd64$' |
            sed 's/^linux-binary-\([^ ]*\) .*/\1/' | sort -V | tail -1)
        [ -n "$newest" ] || fail "the archive has no kernel for $release"
        note "warning: kernel $locked is gone from the archive; taking $newest"
    fi
    : >"$pinned"
    while read -r name version sum; do
        case $name in \#* | '') continue ;; esac
        if [ "$newest" != "$locked" ] && [[ $name == linux-*"${locked%-amd64}"* || $name == linux-source-* ]]; then
            name=${name//${locked%-amd64}/${newest%-amd64}}
            [[ $name != linux-source-* ]] || name=linux-source-$(cut -d. -f1-2 <<<"$newest")
            wanted+=("$name/$release-backports")
        elif grep -qxF "$name $version" "$there"; then
            wanted+=("$name=$version")
            echo "$sum  $name" >>"$pinned"
        else
            note "warning: $name $version is gone from the archive; taking the next"
            [[ $version != *~bpo* ]] || name+=/$release-backports
            wanted+=("$name")
        fi
    done <"$packages"
    rm -f "$cache"/debs/*.deb
    (cd "$cache/debs" && exec "${tied[@]}" apt-get download -qq "${wanted[@]}") ||
        fail "the packages could not be downloaded"
    while read -r sum name; do
        file=$(compgen -G "$cache/debs/${name}_*.deb" | head -1)
        [ "$(sha256sum <"$file" | cut -d' ' -f1)" = "$sum" ] ||
            fail "$name is not the package that packages.lock names: its checksum differs"
    done <"$pinned"
    echo "$newest" >"$cache/newest"
}

# Unpacks into a new folder, which takes the old one's place when it is whole.
unpack() {
    local new=$cache/root.new deb source
    rm -rf "$new"
    mkdir -p "$new"
    for deb in "$cache"/debs/*.deb; do
        case $deb in
        */linux-source-*)
            # One file of it: the kernel's own test of DMA engines, which Debian does not build.
            source=$(basename "${deb%%_*}")
            mkdir -p "$new/usr/src/dmatest"
            (dpkg-deb --fsys-tarfile "$deb" 2>/dev/null | tar -xO "./usr/src/$source.tar.xz" 2>/dev/null |
                tar -xJ --occurrence=1 -C "$new/usr/src/dmatest" --strip-components=3 \
                    "$source/drivers/dma/dmatest.c" 2>/dev/null) || true
            [ -s "$new/usr/src/dmatest/dmatest.c" ] || fail "$source has no dmatest.c"
            ;;
        *) dpkg-deb -x "$deb" "$new" || fail "$(basename "$deb") cannot be unpacked" ;;
        esac
    done
    # Names that the packages' own scripts would have made.
    ln -sf mawk "$new/usr/bin/awk"
    for tool in "$new"/usr/bin/x86_64-linux-gnu-*; do
        ln -sf "$(basename "$tool")" "$new/usr/bin/$(basename "$tool" | sed 's/^x86_64-linux-gnu-//')"
    done
    ln -sf gcc-14 "$new/usr/bin/gcc"
    cp "$cache/newest" "$new/.kernel"
    sha256sum <"$packages" >"$new/.lock"
    rm -rf "$root"
    mv "$new" "$root"
    rm -rf "$cache/debs"
}

# Has everything in the cache. Does nothing if it is there.
fetch() {
    local lacking
    lacking=$(missing)
    [ -z "$lacking" ] || fail "this machine lacks $(paste -sd, <<<"$lacking")"
    mkdir -p "$cache" 2>/dev/null && [ -d "$cache" ] && : 2>/dev/null >>"$cache/lock" ||
        fail "the cache $cache cannot be written: DRAY_VM_CACHE names another place"
    exec 8>"$cache/lock"
    flock 8
    if ! cmp -s <(sha256sum <"$packages") "$root/.lock"; then
        note "downloading QEMU and a kernel into $cache (about 500 MB, once)"
        private_apt
        # An archive that takes the connection and says nothing costs a minute.
        "${tied[@]}" apt-get update -qq -o Acquire::Retries=0 -o Acquire::http::Timeout=15 \
            -o Acquire::https::Timeout=15 || fail "the archive does not answer"
        download
        note "unpacking"
        unpack
    fi
    flock -u 8
}
