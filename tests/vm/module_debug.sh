#!/usr/bin/env bash
# usage: module_debug.sh SOURCES BUILD FOLDER [BOOT...]
# By hand: the kernel module's test (module.sh) on a kernel that looks for mistakes: KASAN, lockdep, sleeps where none may
# be, kmemleak, poisoned pages. The kernel is made in FOLDER, from Debian's source and module/debug.config: a quarter of an
# hour on two cores, and 3 GB. IVGPU_FUZZ_SECONDS and IVGPU_FUZZ_SEED are module.sh's; an hour is what a release wants:
#   IVGPU_FUZZ_SECONDS=3600 tests/vm/module_debug.sh . build /var/tmp/debug whole
# So are IVGPU_TEST_PATIENCE, here by default an hour for each boot besides the fuzzer, and IVGPU_TEST_SLOWNESS, by
# default 20. The kernel sleeps to memory, but does not hibernate.
# It needs a finished guest image in BUILD (`ivgpu vm --gpu sim -- true`), and flex, bison, bc, libelf-dev.
# Exit codes: module.sh's, 2 usage, 3 the kernel could not be made.
set -euo pipefail
(($# >= 3)) || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
sources=$(cd "$1" && pwd) build=$(cd "$2" && pwd)
mkdir -p "$3"
folder=$(cd "$3" && pwd)
shift 3
series=6.1
tree=$folder/linux-source-$series
compiler=gcc-12
command -v "$compiler" >/dev/null || compiler=gcc

fetch() {
  (cd "$folder" && apt-get download -q "linux-source-$series" && dpkg-deb -x "linux-source-$series"_*.deb package)
  tar -C "$folder" -xf "$folder/package/usr/src/linux-source-$series.tar.xz"
  rm -r "$folder/package"
}
configure() {
  make -C "$tree" CC="$compiler" tinyconfig
  (cd "$tree" && scripts/kconfig/merge_config.sh -m .config "$sources/tests/vm/module/debug.config")
  make -C "$tree" CC="$compiler" olddefconfig
  ! grep -vE '^#|^$' "$sources/tests/vm/module/debug.config" | grep -vxFf "$tree/.config" ||
    { echo "this kernel does not take these lines"; return 1; }
}
make_kernel() {
  [[ -d $tree ]] || fetch
  [[ -e $tree/.config && ! $sources/tests/vm/module/debug.config -nt $tree/.config ]] || configure
  make -C "$tree" -j"$(nproc)" CC="$compiler" bzImage modules
}
echo "making the kernel; $folder/log tells"
make_kernel >"$folder/log" 2>&1 || { tail -n 20 "$folder/log"; exit 3; }

# The layout in which tools/guest-module keeps a kernel and its headers.
release=$(<"$tree/include/config/kernel.release")
image=$folder/image
mkdir -p "$image/headers-$release/usr/src" "$image/modules-$release"
ln -sfn "$tree" "$image/headers-$release/usr/src/linux-headers-$release"
cp "$tree/drivers/block/brd.ko" "$image/modules-$release/"
cp "$tree/arch/x86/boot/bzImage" "$image/vmlinuz"
cp "${IVGPU_TEST_IMAGE:-$build/guest-image}/busybox" "$image/"
# no5lvl: with five-level page tables KASAN reports an early interrupt as a wild access. The kernel redetects its
# processor (identify_cpu), and KASAN meanwhile assumes four levels. The two limits are 120 s and 300 s: on a busy
# machine a virtual processor may stop for 20 s, which the kernel would report as a soft lockup or an RCU stall.
append='loglevel=5 log_buf_len=2M no5lvl watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=300'
date -u
IVGPU_TEST_IMAGE=$image IVGPU_TEST_MEMORY=1536M IVGPU_TEST_PATIENCE=${IVGPU_TEST_PATIENCE:-3600} \
  IVGPU_TEST_SLOWNESS=${IVGPU_TEST_SLOWNESS:-20} IVGPU_TEST_APPEND=$append IVGPU_TEST_SLEEPS=mem \
  "$sources/tests/vm/module.sh" "$sources" "$build" "$@"
date -u
