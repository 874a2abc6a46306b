# SPDX-License-Identifier: Apache-2.0
"""Makes the folder against which wheels are compiled: an old C library, and static libraries.

The C library is that of Debian 11, so that wheels run on Linux with glibc 2.31 or newer. The other
libraries are the static ones of Debian 12, with its security updates. Two are compiled from Debian's
source: libmicrohttpd without TLS, because Debian's has GnuTLS, which the server does not use (it has
OpenSSL), and nghttp2, because Debian's static library cannot be part of a module.
"""

import os
import shutil

from debian import WORK, fetch, run, source, triplet, unpack

GLIBC = (2, 31)
OLD_SUITE, SUITE = "bullseye", "bookworm"
OLD = ["libc6", "libc6-dev", "libgcc-s1"]
LIBRARIES = ["libnghttp2-dev", "libsnappy-dev", "libzstd-dev", "liblz4-dev", "zlib1g-dev", "libssl-dev",
             "libyaml-dev", "libxxhash-dev"]
COMPILER = "12"  # the version of gcc in SUITE
FLAGS = ["-O2", "-fPIC", "-fstack-protector-strong", "-D_FORTIFY_SOURCE=2"]
MHD_OPTIONS = ["--disable-https", "--disable-shared", "--enable-static", "--disable-doc",
               "--disable-examples", "--disable-curl", "--disable-postprocessor", "--disable-dauth",
               "--disable-bauth", "--disable-httpupgrade"]
NGHTTP2_FLAGS = ["-DNGHTTP2_STATICLIB", "-DBUILDING_NGHTTP2", "-DHAVE_ARPA_INET_H", "-DHAVE_NETINET_IN_H",
                 "-DHAVE_TIME_H", "-DHAVE_CLOCK_GETTIME=1", "-DHAVE_DECL_CLOCK_MONOTONIC=1"]
# What the libraries define is hidden, and what nothing uses is left out.
LINK = ["-Wl,--exclude-libs,ALL", "-Wl,--gc-sections", "-Wl,-O1"]
# Part of newer C libraries, and used by libstdc++. With 0 it takes the locks that a program with
# several threads needs.
SINGLE_THREADED = 'char __libc_single_threaded __attribute__((visibility("hidden"))) = 0;\n'


class Sysroot:
    """The folder for one machine, and the flags with which gcc uses it."""

    def __init__(self, machine):
        self.machine, self.triplet = machine, triplet(machine)
        self.where = WORK / f"sysroot-{machine}"
        self.compiler = f"{self.triplet}-gcc"
        if shutil.which(self.compiler) is None:
            raise SystemExit(f"wheels for {machine} need {self.compiler}: run "
                             "tools/need.sh build cross")
        usr, name = self.where / "usr", self.triplet
        self.own_headers = self.where / "gcc-include"
        # Without -nostdinc and -B, gcc finds headers and start files of this machine first.
        self.compile_flags = [f"--sysroot={self.where}", f"-B{usr}/lib/{name}", "-nostdinc",
                              *(f"-isystem{folder}" for folder in
                                (self.own_headers, usr / "include" / name, usr / "include"))]
        self.link_flags = [f"--sysroot={self.where}", f"-B{usr}/lib/{name}", f"-L{usr}/lib/{name}",
                           f"-L{self.where}/lib/{name}", f"-L{usr}/lib/gcc/{name}/{COMPILER}"]
        self.make()

    def make(self):
        """Fetches and compiles what is new since the last time."""
        debs = fetch(OLD_SUITE, self.machine, OLD)
        debs += fetch(SUITE, self.machine,
                      [*LIBRARIES, "linux-libc-dev", f"libstdc++-{COMPILER}-dev",
                       f"gcc-{COMPILER}-base", "libmicrohttpd-dev"])
        stamp = self.where.with_suffix(".stamp")
        wanted = "\n".join([*(deb.name for deb in debs), *MHD_OPTIONS, *NGHTTP2_FLAGS, ""])
        if stamp.exists() and stamp.read_text() == wanted:
            return
        stamp.unlink(missing_ok=True)
        shutil.rmtree(self.where, ignore_errors=True)
        unpack([deb for deb in debs if not deb.name.startswith("libmicrohttpd")], self.where)
        self.keep_static_libraries()
        # A copy, since meson leaves out the folder where gcc looks without -nostdinc.
        shutil.copytree(run([self.compiler, "-print-file-name=include"]).strip(), self.own_headers)
        self.add_snappy_pc()
        self.add_source("libmicrohttpd", self.compile_microhttpd, wanted)
        self.add_source("nghttp2", self.compile_nghttp2, wanted)
        stamp.write_text(wanted)

    def keep_static_libraries(self):
        """Removes the shared libraries of everything but the C library, and the static C library."""
        folder = self.where / "usr" / "lib" / self.triplet
        for path in folder.glob("*.so"):
            if path.is_symlink() and not path.exists():
                path.unlink()
        for name in ("c", "m", "pthread", "dl", "rt", "util"):
            (folder / f"lib{name}.a").unlink()
        (self.where / "usr/lib/gcc" / self.triplet / COMPILER / "libstdc++.so").unlink()

    def add_snappy_pc(self):
        """Writes a file for pkg-config that adds the C++ library, which snappy needs."""
        folder = self.where / "usr" / "lib" / self.triplet
        (folder / "single_threaded.c").write_text(SINGLE_THREADED)
        run([self.compiler, *self.compile_flags, "-O2", "-fPIC", "-c", "single_threaded.c"], cwd=folder)
        (folder / "pkgconfig").mkdir(exist_ok=True)
        (folder / "pkgconfig" / "snappy.pc").write_text(
            f"libdir=/usr/lib/{self.triplet}\nName: snappy\nDescription: compression\nVersion: 1\n"
            f"Libs: -L${{libdir}} -L/usr/lib/gcc/{self.triplet}/{COMPILER} -lsnappy -lstdc++\n")

    def add_source(self, package, compile_it, wanted):
        """Compiles a library again if one of the packages in `wanted` is new, and adds its files."""
        folder = WORK / f"{package}-{self.machine}"
        stamp = folder / "built"
        if not stamp.exists() or stamp.read_text() != wanted:
            compile_it(source(SUITE, self.machine, package, folder), folder / "files")
            stamp.write_text(wanted)
        shutil.copytree(folder / "files", self.where, dirs_exist_ok=True)
        shutil.copy2(folder / "unpacked" / "COPYING", self.where / "usr/share" / f"{package}-COPYING")

    def compile_microhttpd(self, folder, files):
        run([folder / "configure", f"--host={self.triplet}", "--prefix=/usr",
             f"--libdir=/usr/lib/{self.triplet}", *MHD_OPTIONS,
             f"CC={' '.join([self.compiler, *self.compile_flags])}", f"CFLAGS={' '.join(FLAGS)}",
             f"LDFLAGS={' '.join(self.link_flags)}"], cwd=folder)
        run(["make", f"-j{os.cpu_count() or 1}"], cwd=folder)
        run(["make", "install", f"DESTDIR={files}"], cwd=folder)

    def compile_nghttp2(self, folder, files):
        """Replaces the static library of Debian's package, whose headers are here already."""
        target = files / "usr" / "lib" / self.triplet
        target.mkdir(parents=True)
        sources = sorted((folder / "lib").glob("*.c"))
        run([self.compiler, *self.compile_flags, *FLAGS, *NGHTTP2_FLAGS, f"-I{folder}/lib/includes", "-c",
             *sources], cwd=folder)
        run([f"{self.triplet}-ar", "rc", target / "libnghttp2.a",
             *(f"{path.stem}.o" for path in sources)], cwd=folder)

    def notices(self):
        """Returns the copyright files of the libraries that wheels contain, by name."""
        share = self.where / "usr" / "share"
        found = {name: (share / f"{name}-COPYING").read_bytes() for name in ("libmicrohttpd", "nghttp2")}
        for package in [*LIBRARIES[1:], f"libstdc++-{COMPILER}-dev"]:
            name = package.removesuffix("-dev")
            owner = f"gcc-{COMPILER}-base" if package.startswith("libstdc++") else package
            found[name] = (share / "doc" / owner / "copyright").read_bytes()
        return found

    def all_link_flags(self):
        """Returns the flags of a wheel's programs and modules, with an object that all of them get."""
        return [*self.link_flags, *LINK, f"{self.where}/usr/lib/{self.triplet}/single_threaded.o"]

    def machine_file(self):
        """Writes the file with which meson compiles for this machine. Returns its path."""
        path = WORK / f"{self.machine}.ini"
        is_here = os.uname().machine == self.machine
        runner = "" if is_here else f"exe_wrapper = ['qemu-{self.machine}', '-L', '{self.where}']\n"
        path.write_text(f"""[binaries]
c = '{self.compiler}'
ar = '{self.triplet}-ar'
strip = '{self.triplet}-strip'
pkgconfig = 'pkg-config'
{runner}
[built-in options]
c_args = {self.compile_flags}
c_link_args = {self.all_link_flags()}

[properties]
sys_root = '{self.where}'
pkg_config_libdir = '{self.where}/usr/lib/{self.triplet}/pkgconfig'
needs_exe_wrapper = {'false' if is_here else 'true'}

[host_machine]
system = 'linux'
cpu_family = '{self.machine}'
cpu = '{self.machine}'
endian = 'little'
""")
        return path
