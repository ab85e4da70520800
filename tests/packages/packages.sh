#!/usr/bin/env bash
# usage: packages.sh SOURCES BUILD
# Makes the Debian packages of a finished build folder, asks lintian, and tries them in a Debian that debootstrap has
# made (in_chroot.sh). That Debian is made once for a build folder, and each run has a copy in memory. 77: nothing could
# be tried.
set -uo pipefail
sources=$1 build=$2
here=$sources/tests/packages
# The machine of a bundle has no apt.
for tool in dpkg-buildpackage dh lintian debootstrap; do
  command -v "$tool" >/dev/null || { echo "there is no $tool here; tools/deps brings it"; exit 77; }
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

release=$(sed -n 's/.*this_release\[\] = "\(.*\)";/\1/p' "$sources/ring/layout/release.h")
# shellcheck source=tests/packages/common.sh
source "$here/common.sh"
copy_tree
make_packages || { tail -n 40 "$work/log"; echo "FAIL: the packages cannot be made"; exit 1; }
lintian --allow-root --fail-on error,warning "$work"/*.changes || { echo "FAIL: lintian complains"; exit 1; }

# Different release numbers are a mistake that must end the build.
sed -i '1s/(.*)/(9.9.9)/' "$work/ivgpu-$release/debian/changelog"
! make_packages || { echo "FAIL: a changelog of another release is taken"; exit 1; }
grep -q 'debian/changelog says 9.9.9, ring/layout/release.h' "$work/log" || { tail "$work/log"; echo "FAIL: no word of the release"; exit 1; }
((EUID == 0)) || { echo "only root can make a Debian of its own: nothing was installed"; exit 77; }

need_base || { echo "FAIL: no Debian could be made"; exit 1; }

# A package of the test stands in for NVIDIA's. Its libraries are alternatives, as in Debian's package.
compiler=${CC:-cc}
played=$work/played
mkdir -p "$played"/{DEBIAN,usr/lib/x86_64-linux-gnu/nvidia}
play() {
  "$compiler" -shared -x c -Wl,-soname,"$1" -o "$played/usr/lib/x86_64-linux-gnu/nvidia/$1" - <<<"$2" || exit 1
}
play libcuda.so.1 'int cuInit(unsigned flags) { return (int)flags; }'
play libnvidia-ml.so.1 'int nvmlInit_v2(void) { return 0; }'
printf 'Package: played-nvidia\nVersion: 1\nArchitecture: amd64\nMaintainer: ivgpu <a@b.example>\nDescription: for a test\n' \
  >"$played/DEBIAN/control"
printf '#!/bin/sh\n%s --install %s played %s 100 --slave %s played-ml %s\n' update-alternatives \
  /usr/lib/x86_64-linux-gnu/{,nvidia/}libcuda.so.1 /usr/lib/x86_64-linux-gnu/{,nvidia/}libnvidia-ml.so.1 >"$played/DEBIAN/postinst"
printf '#!/bin/sh\nupdate-alternatives --remove played /usr/lib/x86_64-linux-gnu/nvidia/libcuda.so.1\n' >"$played/DEBIAN/prerm"
printf 'activate-noawait ldconfig\n' >"$played/DEBIAN/triggers"
chmod 755 "$played"/DEBIAN/p*

# The headers of the guest's kernel, which tools/guest-module keeps.
module=$("$sources/tools/guest-module" --image "$build/guest-image" --output "$work/module") || exit 1
kernel=$(modinfo -F vermagic "$module" | cut -d ' ' -f 1)
headers=$build/guest-image/headers-$kernel/usr

root=$work/root
mkdir "$root"
# in_memory: runs in a separate mount namespace, whose mounts disappear with it.
in_memory() {
  mount -t tmpfs -o mode=755 none "$root" && tar -C "$root" -xpf "$base" && mkdir "$root/test" &&
    mount -t proc proc "$root/proc" && mount --rbind /dev "$root/dev" || return 1
  cp "$work"/*.deb "$here/in_chroot.sh" "$build/programs/vector_add" "$root/test/"
  dpkg-deb --build --root-owner-group "$played" "$root/test/played-nvidia.deb" >/dev/null || return 1
  "$compiler" -o "$root/test/which_library" "$here/which_library.c" || return 1
  local part
  for part in "$headers"/src/linux-headers-* "$headers"/lib/linux-kbuild-*; do
    part=${part#"$headers"}
    mkdir -p "$root/usr$part" && mount --bind -o ro "$headers$part" "$root/usr$part" || return 1
  done
  rm -f "$root/etc/resolv.conf"
  cat /etc/resolv.conf >"$root/etc/resolv.conf"
  in_root bash /test/in_chroot.sh
}
export -f in_memory in_root
export root base work here build played compiler release headers kernel
unshare -m bash -c in_memory
