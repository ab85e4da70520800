#!/usr/bin/env bash
# usage: module.sh SOURCES BUILD [BOOT...]
# Builds the guest's kernel module for the guest's kernel and tests it in VMs of several kinds. All of them must print
# "passed", and their kernels must report no mistake. A host program of the test stands in for broker and workers
# (tests/vm/module/host.c).
#   whole     one vector for four slots, beside foreign devices; all cases, including the device's unplugging
#   few       two vectors for five slots, and no zero pages, as on kernels that refuse them
#   plain     an ivshmem-plain device, without doorbell and wake-ups
#   none      the kernel gives no vectors, so there are no wake-ups
#   sleep     the machine sleeps and wakes, and hibernates and wakes
#   kexec     a kexec while a program sleeps on its slot; only on request
# For a kernel with checkers (module_debug.sh): IVGPU_TEST_MEMORY, by default 512M; IVGPU_TEST_PATIENCE, the seconds
# that a boot may take besides the fuzzer, by default 900; IVGPU_TEST_SLOWNESS, an integer factor for the time limits
# within a boot, by default 1; IVGPU_TEST_APPEND, further arguments of the kernel. For a kernel whose headers need
# another machine's tools: IVGPU_TEST_MODULES, a folder with ivgpu.ko and brd.ko. IVGPU_FUZZ_SECONDS, by default 6, is
# the time of the fuzzer in `whole`; in `few` it runs for a fifth of that. Continuous integration uses a longer time.
# IVGPU_TEST_SLEEPS, by default "mem disk", lists the kinds of sleep that the kernel must support.
set -euo pipefail
sources=$(cd "$1" && pwd) build=$(cd "$2" && pwd)
shift 2
boots=("$@")
((${#boots[@]})) || boots=(whole few plain none sleep)
own=$sources/tests/vm/module
image=${IVGPU_TEST_IMAGE:-$build/guest-image}
# shellcheck source=tests/patient.sh
source "$sources/tests/patient.sh"
work=$(mktemp -d)
children=()
# shellcheck disable=SC2317
finish() {
  ((${#children[@]} == 0)) || kill "${children[@]}" 2>/dev/null || true
  rm -rf "$work"
}
trap finish EXIT

kernel=${IVGPU_BUNDLE:-$image}/vmlinuz busybox=${IVGPU_BUNDLE:-$image}/busybox
qemu='qemu-system-x86_64'
[[ ! ${IVGPU_BUNDLE:-} ]] || qemu=$IVGPU_BUNDLE/qemu
# The release appears in three places, since a DKMS tree has none of the project's other files.
releases=$(sed -nE 's/.*(this_release\[\] = |IVGPU_RELEASE |PACKAGE_VERSION=)"([^"]*)".*/\2/p' "$sources"/ring/layout/release.h \
  "$sources"/guest/kmod/{ivgpu.h,dkms.conf})
[[ $(wc -l <<<"$releases") == 3 && $(sort -u <<<"$releases" | wc -l) == 1 ]] || { echo "releases differ: $releases"; exit 1; }
checked=()
if command -v sparse >/dev/null; then checked=(--sparse); else echo "sparse is not installed: it does not look at the module"; fi
code=0
mkdir -p "$work/root/bin"
if [[ ${IVGPU_TEST_MODULES:-} ]]; then
  cp "$IVGPU_TEST_MODULES"/{ivgpu,brd}.ko "$work/root/"
else
  "$sources/tools/guest-module" --image "$image" --output "$work/root" "${checked[@]}" --also brd >/dev/null || code=$?
fi
if [[ $code == 4 && ${IVGPU_BUNDLE:-} ]]; then echo "no headers of the bundle's kernel: skipped"; exit 77; fi
[[ $code == 0 ]] || exit 1

compile() { "${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -Wall -Wextra -Werror -O1 -I"$own" -I"$sources" "$@" -lpthread; }
compile -static -o "$work/root/module_test" "$own"/{main,test,claims,mappings,wakes,deaths,binding}.c
compile -static -o "$work/root/module_fuzz" "$own"/{fuzz,test}.c
compile -o "$work/host" "$own/host.c"
cp "$busybox" "$work/root/bin/busybox"
install -m 755 "$own/init" "$work/root/init"

# QEMU and the test connect without waiting, so each socket must exist before they start.
await() {
  wait_for test -e "$1" && return
  echo "$1 did not appear"
  return 1
}

# serve NAME ARGUMENT...: starts the test's host program.
serve() {
  local name=$1
  shift
  "$work/host" "$@" "$name" >"$name.log" 2>&1 &
  children+=($!)
  await "$name"
}

# doorbell ID VECTORS BUS: adds the ivshmem-doorbell device on the socket ID.
doorbell() { devices+=(-chardev "socket,id=$1,path=$1" -device "ivshmem-doorbell,id=ivgpu-$1,chardev=$1,vectors=$2${3:+,bus=$3}"); }

pack() { (cd "$work/root" && find . | "$busybox" cpio -o -H newc 2>/dev/null); }

# Prints the kernel's messages, from some lines before the first match, since a report begins above the matched words.
bad='BUG|WARNING|Oops|Call Trace'
show_console() {
  local line
  line=$(grep -nEm1 "$bad" console | cut -d: -f1) || true
  echo "==> console <=="
  if [[ $line ]]; then tail -n +$((line > 20 ? line - 20 : 1)) console; else tail -n 40 console; fi
}

boot() {
  local name=$1 append='' passed=0
  devices=(-device 'pcie-root-port,id=port1,chassis=1')
  mkdir "$work/$name"
  cd "$work/$name"
  printf '%s\n' "export IVGPU_TEST_SLOWNESS=${IVGPU_TEST_SLOWNESS:-1}" "insmod /ivgpu.ko ${3:-} || failed=1" \
    'chown 0:44 /dev/ivgpu0 && chmod 660 /dev/ivgpu0 || failed=1  # as 60-ivgpu-module.rules would' >"$work/root/job"
  echo "$2" >>"$work/root/job"
  case $name in
    whole)
      serve ours --vectors 1 --slots 4
      serve magic --wrong magic
      serve layout --wrong layout
      serve slots --wrong slots
      doorbell ours 1 port1
      serve small --mib 1
      for other in magic layout slots small; do doorbell "$other" 1; done
      ;;
    few) serve ours --vectors 2 --slots 5; doorbell ours 2 ;;
    plain)
      serve ours --plain --slots 4
      devices+=(-object "memory-backend-file,id=memory,share=on,size=256M,mem-path=ours" -device 'ivshmem-plain,memdev=memory')
      ;;
    none) serve ours --vectors 4 --slots 4; doorbell ours 4; append=pci=nomsi ;;
    sleep | kexec) serve ours --vectors 4 --slots 4; doorbell ours 4 ;;
  esac
  pack >initramfs
  if [[ $name == kexec ]]; then
    mv initramfs "$work/root/next"
    cp "$kernel" "$work/root/vmlinuz"
    pack >initramfs
    rm "$work/root"/{next,vmlinuz}
  fi
  local patience=$((${IVGPU_TEST_PATIENCE:-900} + ${IVGPU_FUZZ_SECONDS:-0}))
  timeout "$patience" "$qemu" -machine q35 -nodefaults -no-reboot -accel tcg,thread=multi -cpu max -smp 2 \
    -m "${IVGPU_TEST_MEMORY:-512M}" -nic none -display none -vga none -kernel "$kernel" -initrd initramfs \
    -append "console=ttyS0 loglevel=4 panic=-1 oops=panic $("$build/tests/emulated_clock") $append ${IVGPU_TEST_APPEND:-}" "${devices[@]}" \
    -serial file:console -serial file:said -chardev socket,id=line,path=line,server=on,wait=off -serial chardev:line \
    -chardev socket,id=monitor,path=monitor,server=on,wait=off -mon chardev=monitor 2>qemu.log &
  local qemu_process=$!
  if await line && await monitor; then "$work/host" --relay line monitor >/dev/null 2>&1 & children+=($!); fi
  wait "$qemu_process" || echo "QEMU ended with $?"
  echo "== $name"
  if [[ -e said && $(tail -n 1 said) == passed ]] && ! grep -qE "$bad" console; then passed=1; fi
  if ((passed)); then grep -vE '^  [a-z]|^\[' said; else cat said; show_console; tail -n 40 ./*.log; failed=1; fi
  kill "${children[@]}" 2>/dev/null || true
  wait "${children[@]}" 2>/dev/null || true
  children=()
  cd "$work"
}

# told PATTERN BOOT: expects the pattern in the log of that boot's host program.
told() { grep -qE "$1" "$work/$2/ours.log" || { echo "$2: the host was not told: $1"; tail -n 40 "$work/$2/ours.log"; failed=1; }; }

# says COUNT PATTERN BOOT: expects this many matching lines from that boot's guest.
says() {
  local count
  count=$(grep -cE "$2" "$work/$3/said") || true
  ((${count:-0} == $1)) || { echo "$3: the guest said $count times and not $1: $2"; failed=1; }
}

run='/module_test all || failed=1'
failed=0
fuzz=${IVGPU_FUZZ_SECONDS:-6} sleeps=${IVGPU_TEST_SLEEPS-mem disk}
for name in "${boots[@]}"; do
  case $name in
    whole)
      boot whole "$run
/module_fuzz --seed ${IVGPU_FUZZ_SEED:-1} --seconds $fuzz || failed=1
/module_test binding not_everybodys || failed=1
/module_test binding others || failed=1; /module_test binding unbound || failed=1; /module_test binding rebound || failed=1
/module_test binding not_unloaded || failed=1; /module_test binding unplugged || failed=1
rmmod ivgpu || { failed=1; ps; }"
      says 1 'memory is no region of ivgpud.s' whole
      says 1 'the region has layout' whole
      says 1 'slots of .* do not fit a region' whole
      says 1 'its memory, 1048576 bytes, is too small' whole
      told 'released by orphan' whole
      told 'released by .*, pinned' whole
      ;;
    few)
      least=$((2 * ${IVGPU_TEST_SLOWNESS:-1}))
      boot few "$run
/module_fuzz --seed ${IVGPU_FUZZ_SEED:-2} --seconds $((fuzz / 5 > least ? fuzz / 5 : least)) || failed=1
/module_test binding unbound || failed=1; /module_test binding rebound || failed=1" no_pages=1
      ;;
    plain) boot plain "$run" ;;
    none) boot none '/module_test claim || failed=1; /module_test wake || failed=1' ;;
    sleep)
      # A slot that is held to the end must be released when the machine shuts down.
      boot sleep '/module_test binding asleep || failed=1; /module_test binding hibernated || failed=1
/module_test hold >/held & until grep -qs "^held" /held; do sleep 0.1; done'
      told 'released by held' sleep
      # Checks that the machine has really slept; it hibernates twice.
      [[ $sleeps != *mem* ]] || says 1 '^asleep for [0-9]' sleep
      [[ $sleeps != *disk* ]] || says 2 '^hibernated$' sleep
      ;;
    kexec)
      # The second kernel must bind the device again and find all slots.
      boot kexec 'grep -q second /proc/cmdline || /module_test binding kexecs || failed=1
grep -q second /proc/cmdline && echo "the second kernel" && /module_test claim || failed=1; /module_test wake woken || failed=1'
      told 'released by kexeced' kexec
      grep -qx 'the second kernel' "$work/kexec/said" || { echo "kexec: there was none"; failed=1; }
      ;;
    *) echo "there is no boot $name"; exit 2 ;;
  esac
done
exit "$failed"
