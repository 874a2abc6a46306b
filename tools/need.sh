#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Installs the packages that are missing on this machine.
#
#     tools/need.sh build               for `make`, `make run` and `make serve`
#     tools/need.sh build test          for the tests
#     tools/need.sh bench               for benchmarks; `make bench` goes on without what is missing
#     tools/need.sh build wheel deb     for `make wheel` and `make deb`, which build on Debian only
#     tools/need.sh build test cross python page grafana
#                                       for all tests; the last four are parts of tests/run.py. cross
#                                       and python need packages which only Debian has
#
# If nothing is missing, the script prints nothing, takes 0.03 s for a build, and needs no network.
# Otherwise it installs Debian packages, as root or through sudo. If it cannot, it prints what is
# missing and the commands that install it, and ends with status 1. It asks for a password only on a
# terminal.

# shellcheck disable=SC2086
set -euf

case $(uname -m) in
aarch64) other=amd64 compiler=x86-64-linux-gnu triplet=x86_64-linux-gnu emulated=x86_64 ;;
*) other=arm64 compiler=aarch64-linux-gnu triplet=aarch64-linux-gnu emulated=aarch64 ;;
esac
python=/usr/bin/python3
[ -x $python ] || python=python3

# One need in each line: its kind, how to find it (see is_present), its name, and its packages in
# Debian, Fedora, Arch and Alpine ("-": none).
needs="
build  | header stdio.h          | a C compiler          | gcc libc6-dev       | gcc                 | gcc               | build-base
build  | header linux/openat2.h  | Linux headers         | linux-libc-dev      | kernel-headers      | linux-api-headers | linux-headers
build  | program make            | make                  | make                | make                | make              | make
build  | program meson           | meson                 | meson               | meson               | meson             | meson
build  | program ninja           | ninja                 | ninja-build         | ninja-build         | ninja             | samurai
build  | program pkg-config      | pkg-config            | pkg-config          | pkgconf-pkg-config  | pkgconf           | pkgconf
build  | program python3         | Python 3              | python3             | python3             | python            | python3
build  | program protoc          | protoc                | protobuf-compiler   | protobuf-compiler   | protobuf          | protoc
build  | proto timestamp         | protobuf's own files  | libprotobuf-dev     | protobuf-devel      | protobuf          | protobuf-dev
build  | header snappy-c.h       | snappy                | libsnappy-dev       | snappy-devel        | snappy            | snappy-dev
build  | library libzstd         | zstd                  | libzstd-dev         | libzstd-devel       | zstd              | zstd-dev
build  | library liblz4          | lz4                   | liblz4-dev          | lz4-devel           | lz4               | lz4-dev
build  | library zlib            | zlib                  | zlib1g-dev          | zlib-devel          | zlib              | zlib-dev
build  | library libxxhash       | xxHash                | libxxhash-dev       | xxhash-devel        | xxhash            | xxhash-dev
build  | library libnghttp2      | nghttp2               | libnghttp2-dev      | libnghttp2-devel    | libnghttp2        | nghttp2-dev
build  | library openssl >= 3.0  | OpenSSL 3             | libssl-dev          | openssl-devel       | openssl           | openssl-dev
build  | library libmicrohttpd   | libmicrohttpd         | libmicrohttpd-dev   | libmicrohttpd-devel | libmicrohttpd     | libmicrohttpd-dev
build  | library yaml-0.1        | libyaml               | libyaml-dev         | libyaml-devel       | libyaml           | yaml-dev
test   | library cmocka          | cmocka                | libcmocka-dev       | libcmocka-devel     | cmocka            | cmocka-dev
test   | program curl            | curl                  | curl                | curl                | curl              | curl
test   | program g++             | g++                   | g++                 | gcc-c++             | gcc               | build-base
test   | header unistr.h         | libunistring          | libunistring-dev    | libunistring-devel  | libunistring      | libunistring-dev
test   | program clang           | clang                 | clang               | clang               | clang             | clang
test   | sanitizer asan          | sanitizers of clang   | libclang-rt-14-dev  | compiler-rt         | compiler-rt       | compiler-rt
test   | program clang-format    | clang-format          | clang-format        | clang-tools-extra   | clang             | clang-extra-tools
test   | program clang-tidy      | clang-tidy            | clang-tidy          | clang-tools-extra   | clang             | clang-extra-tools
test   | program ld.lld          | lld                   | lld                 | lld                 | lld               | lld
test   | program llvm-symbolizer | llvm-symbolizer       | llvm                | llvm                | llvm              | llvm
test   | module pytest           | pytest                | python3-pytest      | python3-pytest      | python-pytest     | py3-pytest
test   | module google.protobuf  | protobuf for Python   | python3-protobuf    | python3-protobuf    | python-protobuf   | py3-protobuf
test   | module numpy            | NumPy                 | python3-numpy       | python3-numpy       | python-numpy      | py3-numpy
test   | module ensurepip        | venv of Python        | python3-venv        | python3             | python            | python3
test   | library python3         | headers of Python     | python3-dev         | python3-devel       | python            | python3-dev
python | program python3-dbg     | debug build of Python | python3-dbg         | -                   | -                 | -
test   | program openssl         | openssl               | openssl             | openssl             | openssl           | openssl
test   | program patch           | patch                 | patch               | patch               | patch             | patch
test   | certificates CA         | CA certificates       | ca-certificates     | ca-certificates     | ca-certificates   | ca-certificates
test   | daemon nginx            | nginx                 | nginx-light         | nginx               | nginx             | nginx
test   | daemon haproxy          | HAProxy               | haproxy             | haproxy             | haproxy           | haproxy
test   | host localhost          | the name "localhost"  | libnss-myhostname   | systemd-libs        | systemd-libs      | musl
page   | chromium any            | Chromium              | chromium            | chromium            | chromium          | chromium
grafana | program promtool       | Prometheus            | prometheus          | golang-github-prometheus | prometheus   | prometheus
bench  | library openblas        | OpenBLAS              | libopenblas-dev     | openblas-devel      | openblas          | openblas-dev
test   | library box2d           | Box2D                 | libbox2d-dev        | box2d-devel         | box2d             | box2d-dev
wheel  | program dpkg-source    | dpkg-dev              | dpkg-dev            | -                   | -                 | -
deb    | program dpkg-buildpackage | dpkg-dev           | dpkg-dev            | -                   | -                 | -
deb    | program dh             | debhelper             | debhelper           | -                   | -                 | -
deb    | program lintian        | lintian               | lintian             | -                   | -                 | -
deb    | program mmdebstrap     | mmdebstrap            | mmdebstrap          | -                   | -                 | -
deb    | program c++            | g++                   | g++                 | -                   | -                 | -
deb    | library box2d          | Box2D                 | libbox2d-dev        | -                   | -                 | -
cross  | program $triplet-gcc    | gcc for $other        | gcc-$compiler libc6-dev-$other-cross | -                   | -                 | -
cross  | program qemu-$emulated  | qemu for $emulated    | qemu-user           | -                   | -                 | -
cross  | foreign snappy          | snappy for $other     | libsnappy-dev:$other | -                   | -                 | -
cross  | foreign libzstd         | libzstd for $other    | libzstd-dev:$other  | -                   | -                 | -
cross  | foreign liblz4          | liblz4 for $other     | liblz4-dev:$other   | -                   | -                 | -
cross  | foreign zlib            | zlib for $other       | zlib1g-dev:$other   | -                   | -                 | -
cross  | foreign libxxhash       | libxxhash for $other  | libxxhash-dev:$other | -                   | -                 | -
cross  | foreign libnghttp2      | libnghttp2 for $other | libnghttp2-dev:$other | -                   | -                 | -
cross  | foreign openssl         | openssl for $other    | libssl-dev:$other   | -                   | -                 | -
cross  | foreign libmicrohttpd   | libmicrohttpd for $other | libmicrohttpd-dev:$other | -                   | -                 | -
cross  | foreign yaml-0.1        | yaml-0.1 for $other   | libyaml-dev:$other  | -                   | -                 | -
cross  | foreign cmocka          | cmocka for $other     | libcmocka-dev:$other | -                   | -                 | -
"

# Succeeds if all names are found.
is_present() # how name...
{
    how=$1
    shift
    case $how in
    program) for name; do command -v "$name" || return 1; done ;;
    daemon) for name; do command -v "$name" || [ -x "/usr/sbin/$name" ] || return 1; done ;;
    header) printf '#include <%s>\n' "$@" | ${CC:-cc} -E -x c - ;;
    library) pkg-config --exists "$@" ;;
    foreign) for name; do [ -e "/usr/lib/$triplet/pkgconfig/$name.pc" ] || return 1; done ;;
    module)
        "$python" -c 'import importlib.util as i, sys
sys.exit(not all(map(i.find_spec, sys.argv[1:])))' "$@"
        ;;
    host) # a new chroot has no /etc/hosts; browsers and gRPC's clients look the name up
        "$python" -c 'import socket, sys
for name in sys.argv[1:]: socket.gethostbyname(name)' "$@"
        ;;
    proto) # protoc looks for its own files in the folder "include" beside its "bin"
        protoc=$(command -v protoc) || return 1
        for name; do [ -e "${protoc%/*}/../include/google/protobuf/$name.proto" ] || return 1; done
        ;;
    chromium) # its name differs
        command -v chromium || command -v chromium-browser || command -v google-chrome
        ;;
    sanitizer) # clang prints a path, which depends on its version, or the bare name if none exists
        for name; do
            case $(clang -print-file-name="libclang_rt.$name-$(uname -m).so"
                clang -print-file-name="libclang_rt.$name.so") in
            */*) ;;
            *) return 1 ;;
            esac
        done
        ;;
    certificates)
        [ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ]
        ;;
    *) return 1 ;;
    esac >/dev/null 2>&1
}

# Succeeds if no row is missing. Looks once for all names that are found in the same way.
is_complete()
{
    ways='program daemon header library foreign module host proto chromium sanitizer certificates'
    for how in $ways; do eval "names_$how="; done
    while IFS='|' read -r _ look _; do
        set -- $look
        how=$1
        shift
        eval "names_$how=\"\$names_$how \$*\""
    done <<ROWS
$rows
ROWS
    for how in $ways; do
        eval "set -- \$names_$how"
        [ $# = 0 ] || is_present "$how" "$@" || return 1
    done
}

# Prints the rows whose need is not met.
missing_rows()
{
    is_complete || while read -r row; do
        look=${row#*|}
        is_present ${look%%|*} || printf '%s\n' "$row"
    done <<ROWS
$rows
ROWS
}

# Prints a column of the missing rows, each package once.
packages_in() # column
{
    printf '%s\n' "$missing" | cut -d '|' -f "$1" | tr -s ' ' '\n' | grep -vxe '' -e - | sort -u |
        tr '\n' ' ' | sed 's/ $//'
}

# Prints the names of the needs in rows, as a list.
names_of() # rows
{
    printf '%s\n' "$1" | cut -d '|' -f 3 | sed 's/^ *//; s/ *$/,/' | tr '\n' ' ' | sed 's/, $//'
}

# Succeeds if there are packages of the other architecture.
is_foreign_in() # packages
{
    case "$1" in
    *":$other"*) ;;
    *) return 1 ;;
    esac
}

# Prints the command of one system, if the system has packages for what is missing.
print_command() # system command packages
{
    [ -z "$3" ] || printf '  %-6s  %s %s\n' "$@"
}

# Prints what is missing and how to install it.
explain() # why it was not installed
{
    packages=$(packages_in 4)
    apt='apt-get update && apt-get install --no-install-recommends'
    if is_foreign_in "$packages"; then apt="dpkg --add-architecture $other && $apt"; fi
    printf 'Missing: %s.\n%s Install the packages as root, then try again:\n\n' \
        "$(names_of "$missing")" "$1"
    print_command Debian "$apt" "$packages"
    print_command Fedora 'dnf install' "$(packages_in 5)"
    print_command Arch 'pacman -Syu --needed' "$(packages_in 6)"
    print_command Alpine 'apk add' "$(packages_in 7)"

    debian_only=$(printf '%s\n' "$missing" | grep '| - ') || return 0
    printf '\nOnly Debian has packages for: %s.\n' "$(names_of "$debian_only")"
    echo 'Elsewhere, choose the parts of the tests that do without: make test ONLY="release asan".'
}

# Succeeds if this user may install packages. Sets as_root to the words to put before a command.
may_install()
{
    as_root=
    [ "$(id -u)" != 0 ] || return 0
    command -v sudo >/dev/null || return 1
    as_root='sudo -n'
    ! sudo -n true 2>/dev/null || return 0
    as_root=sudo
    [ -t 0 ] && [ -t 2 ] && sudo -v
}

# nginx and HAProxy are needed as programs: the policy keeps their packages from starting services.
install_packages() # package...
{
    policy=/usr/sbin/policy-rc.d
    if [ ! -e $policy ]; then
        trap '$as_root rm -f $policy' EXIT
        trap 'exit 1' HUP INT TERM
        printf '#!/bin/sh\nexit 101\n' | $as_root tee $policy >/dev/null
        $as_root chmod 755 $policy
    fi
    if is_foreign_in "$*"; then $as_root dpkg --add-architecture "$other"; fi
    $as_root apt-get -q update &&
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get -qy -o DPkg::Lock::Timeout=60 \
            --no-install-recommends install "$@"
}

rows=
while read -r row; do
    case " $* " in
    *" ${row%% *} "*)
        rows="$rows$row
"
        ;;
    esac
done <<ROWS
$needs
ROWS
rows=${rows%?}
if [ -z "$rows" ]; then
    echo "usage: tools/need.sh KIND..., of build, test, bench, wheel, deb, cross, python, page and grafana" >&2
    exit 2
fi

missing=$(missing_rows)
[ -n "$missing" ] || exit 0
packages=$(packages_in 4)
if ! command -v apt-get >/dev/null; then
    why='Nothing was installed: this system has no apt-get.'
elif ! may_install; then
    why='Nothing was installed: this user is not root, and there is no sudo or it wants a password.'
elif is_foreign_in "$packages" && ! grep -qx 'ID=debian' /etc/os-release; then
    why="Nothing was installed: this system is not Debian, which has libraries for $other."
else
    echo "Installing, with apt-get: $packages"
    if install_packages $packages; then
        why='apt-get has installed the packages, and this is still not found.'
    else
        why='apt-get has failed.'
    fi
    missing=$(missing_rows)
    [ -n "$missing" ] || exit 0
fi
explain "$why" >&2
exit 1
