#!/usr/bin/env bash
# usage: packages.sh SOURCES BUILD
# Makes the Debian packages of a finished build folder, asks lintian, and tries them in a Debian that debootstrap has
# made (in_chroot.sh). That Debian is made once for a build folder, and each run has a copy in memory. 77: nothing could
# be tried.
set -uo pipefail
sources=$1 build=$2
here=$sources/tests/packages
# A bundle's machine has no apt.
for tool in dpkg-buildpackage dh lintian debootstrap; do
  command -v "$tool" >/dev/null || { echo "there is no $tool here; tools/deps brings it"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

release=$(sed -n 's/.*this_release\[\] = "\(.*\)";/\1/p' "$sources/ring/release.h")
mkdir "$work/ivgpu-$release"
tar -C "$sources" --exclude='./build*' --exclude=./.git --exclude=./tests -c . | tar -C "$work/ivgpu-$release" -x
make_packages() {
  (cd "$work/ivgpu-$release" && IVGPU_PREBUILT=$build DEB_BUILD_OPTIONS=noautodbgsym DPKG_DEB_COMPRESSOR_TYPE=gzip \
    DPKG_DEB_COMPRESSOR_LEVEL=1 dpkg-buildpackage -b -us -uc "$@") >"$work/log" 2>&1
}
make_packages || { tail -n 40 "$work/log"; echo "FAIL: the packages cannot be made"; exit 1; }
lintian --allow-root --fail-on error,warning "$work"/*.changes || { echo "FAIL: lintian complains"; exit 1; }

# Two numbers of one release are a mistake that ends the build.
sed -i '1s/(.*)/(9.9.9)/' "$work/ivgpu-$release/debian/changelog"
! make_packages || { echo "FAIL: a changelog of another release is taken"; exit 1; }
grep -q 'debian/changelog says 9.9.9, ring/release.h' "$work/log" || { tail "$work/log"; echo "FAIL: no word of the release"; exit 1; }
((EUID == 0)) || { echo "only root can make a Debian of its own: nothing was installed"; exit 77; }

# What dkms needs is there before, a compiler above all; what ivgpu's packages need is not.
base=$build/packages-base.tar
make_base() {
  local mirror
  # shellcheck disable=SC2016
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Codename: bookworm' 'Component: main' 2>/dev/null | head -n 1)
  debootstrap --variant=minbase bookworm "$work/base" "${mirror:-http://deb.debian.org/debian}" &&
    echo force-unsafe-io >"$work/base/etc/dpkg/dpkg.cfg.d/test" &&
    chroot "$work/base" env DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends dkms \
      systemd-standalone-sysusers systemd-standalone-tmpfiles &&
    chroot "$work/base" apt-get clean && tar -C "$work/base" -cf "$base.new" . && mv "$base.new" "$base"
}
[[ -e $base ]] || make_base >"$work/log" 2>&1 || { tail -n 20 "$work/log"; echo "FAIL: no Debian could be made"; exit 1; }
rm -rf "$work/base"

# NVIDIA's part is played by a package of the test's own, whose library is an alternative as Debian's is.
compiler=${CC:-cc}
played=$work/played
mkdir -p "$played"/{DEBIAN,usr/lib/x86_64-linux-gnu/nvidia}
"$compiler" -shared -x c -Wl,-soname,libcuda.so.1 -o "$played/usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.1" - \
  <<<'int cuInit(unsigned flags) { return (int)flags; }' || exit 1
printf 'Package: played-nvidia\nVersion: 1\nArchitecture: amd64\nMaintainer: ivgpu <a@b.example>\nDescription: for a test\n' \
  >"$played/DEBIAN/control"
printf '#!/bin/sh\n%s --install %s played %s 100\n' update-alternatives /usr/lib/x86_64-linux-gnu/libcuda.so.1 \
  /usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.1 >"$played/DEBIAN/postinst"
printf '#!/bin/sh\nupdate-alternatives --remove played /usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.1\n' >"$played/DEBIAN/prerm"
printf 'activate-noawait ldconfig\n' >"$played/DEBIAN/triggers"
chmod 755 "$played"/DEBIAN/p*

root=$work/root
mkdir "$root"
# in_memory: runs in a mount namespace of its own, which takes its mounts along.
in_memory() {
  mount -t tmpfs -o mode=755 none "$root" && tar -C "$root" -xpf "$base" && mkdir "$root/test" &&
    mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" || return 1
  cp "$work"/*.deb "$here/in_chroot.sh" "$build/programs/vector_add" "$root/test/"
  dpkg-deb --build --root-owner-group "$played" "$root/test/played-nvidia.deb" >/dev/null || return 1
  "$compiler" -o "$root/test/which_libcuda" "$here/which_libcuda.c" || return 1
  rm -f "$root/etc/resolv.conf"
  cat /etc/resolv.conf >"$root/etc/resolv.conf"
  chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    DEBIAN_FRONTEND=noninteractive RELEASE="$release" bash /test/in_chroot.sh
}
export -f in_memory
export root base work here build played compiler release
unshare -m bash -c in_memory
