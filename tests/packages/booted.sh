#!/usr/bin/env bash
# usage: booted.sh SOURCES BUILD [services|libvirt|selinux]
# By hand, as root: a Debian with systemd and the packages boots in QEMU. Without KVM on two free cores:
#   services  in_booted.sh tries the services, in two minutes
#   libvirt   in_libvirt.sh tries the hook in Debian's libvirt with AppArmor in force, and VMs that boot there, by KVM in
#             the emulated machine (docs/design/040-kvm-in-emulation.md): a quarter of an hour
#   selinux   in_selinux.sh does so with SELinux in force, by the lines of docs/host.md
# The first is all in memory, with the kernel of `ivgpu vm`, or IVGPU_TEST_IMAGE/vmlinuz; the others have Debian's kernel and
# a disk, where files keep labels.
set -uo pipefail
sources=$(realpath "$1") build=$(realpath "$2")
libvirt=(libvirt-clients libvirt-daemon-system linux-image-amd64 python3 qemu-system-x86)
case ${3:-services} in
  services) script=in_booted.sh memory=3G more=() ;;
  libvirt) script=in_libvirt.sh module=apparmor memory=4G more=(apparmor "${libvirt[@]}") ;;
  selinux)
    script=in_selinux.sh module=selinux memory=4G
    more=(selinux-policy-default checkpolicy semodule-utils policycoreutils-python-utils "${libvirt[@]}")
    ;;
  *) echo "usage: booted.sh SOURCES BUILD [services|libvirt|selinux]" >&2; exit 2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
release=$(sed -n 's/.*this_release\[\] = "\(.*\)";/\1/p' "$sources/ring/layout/release.h")
kernel=${IVGPU_TEST_IMAGE:-$build/guest-image}/vmlinuz
[[ -e $kernel ]] || { echo "there is no kernel: $kernel; \`ivgpu vm --gpu sim -- true\` fetches one"; exit 3; }
pack=(cpio)
command -v cpio >/dev/null || pack=(busybox cpio)
# shellcheck source=tests/patient.sh
source "$sources/tests/patient.sh"
# shellcheck source=tests/packages/common.sh
source "$sources/tests/packages/common.sh"
# shellcheck source=tests/vm/pmem_guest.sh
source "$sources/tests/vm/pmem_guest.sh"
copy_tree
make_packages || { tail -n 40 "$work/log"; echo "FAIL: the packages cannot be made"; exit 1; }
need_base || { echo "FAIL: no Debian could be made"; exit 1; }

root=$work/root
mkdir "$root"
tar -C "$root" -xpf "$base"
rm -f "$root/etc/resolv.conf"
cat /etc/resolv.conf >"$root/etc/resolv.conf"
mkdir "$root/test"
cp "$work"/*.deb "$build/programs/vector_add" "$build/test-programs/faults/faults_program" "$root/test/"
cp "$sources/tests/packages/"{in_guest.sh,in_vm.sh,"$script"} "$sources"/docs/host.md \
  "$sources"/qemu-config/{plain.md,pmem.md,nvdimm-vsock.xml,virtio-pmem.xml} "$root/test/"
clock=$("$build/tests/emulated_clock")
echo "$clock" >"$root/test/clock"
# dkms and its compiler would only enlarge the guest's memory.
in_root sh -c 'apt-get purge -yq dkms systemd-standalone-sysusers && apt-get autoremove -yq --purge && apt-get update -q &&
  apt-get install -yq --no-install-recommends systemd systemd-sysv /test/ivgpu-host_*.deb /test/ivgpu-guest_*.deb \
    /test/ivgpu-tools_*.deb "$@" && apt-get clean' sh "${more[@]}" >"$work/log" 2>&1 ||
  { tail -n 20 "$work/log"; echo "FAIL: the packages cannot be installed"; exit 1; }
rm -rf "$root"/var/lib/apt/lists/* "$root"/usr/share/locale "$root"/usr/share/doc
cat >"$root/etc/systemd/system/trial.service" <<UNIT
[Unit]
After=basic.target
[Service]
Type=oneshot
ExecStart=/bin/bash /test/$script
StandardOutput=tty
StandardError=inherit
TTYPath=/dev/ttyS0
TimeoutStartSec=infinity
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../trial.service "$root/etc/systemd/system/multi-user.target.wants/"
ln -sf /sbin/init "$root/init"
# A login prompt on that port would mix with the script's output.
ln -s /dev/null "$root/etc/systemd/system/serial-getty@.service"

# Makes the guest for the VM of that Debian's libvirt, which boots by KVM in emulation: only the files that the guest
# needs.
make_nested() {
  local nested=$work/nested
  mkdir -p "$nested/root/ivgpu" "$nested/programs"
  cp "$build/test-programs/faults/faults_program" "$nested/root/ivgpu/"
  cp "$build/programs/vector_add" "$nested/programs/"
  # shellcheck disable=SC2034
  modules=(--way pmem) awaited=''
  work=$nested make_guest --programs "$nested/programs" <<'JOB' || return
if grep -qE 'ivgpu\.(nvdimm|pmem)' /proc/cmdline; then until [ -e /dev/dax0.0 ]; do sleep 1; done; fi
ivgpu-check --guest
vector_add --n 1000 || exit 1
grep -q ivgpu.short /proc/cmdline && exit
faults_program /lib/ivgpu/libcuda.so.1 again 36000000 &
n=0
while sleep 10; do vector_add --n 1000 >/dev/null && n=$((n + 1)) && echo "program $n"; done
JOB
  cp "$kernel" "$root/test/vmlinuz" && cp "$nested/initrd" "$root/test/initrd"
}
# An ivshmem device without a server: the guest's package finds a device, and no program uses it.
device=(-object 'memory-backend-ram,id=m,size=4M,share=on' -device 'ivshmem-plain,memdev=m')
on_a_disk() {
  make_nested >"$work/log" 2>&1 || { tail -n 20 "$work/log"; echo "FAIL: the nested guest cannot be made"; exit 1; }
  echo '/dev/vda / ext4 rw 0 0' >"$root/etc/fstab"
  if [[ $script == in_selinux.sh ]]; then
    sed -i 's/^SELINUX=.*/SELINUX=enforcing/' "$root/etc/selinux/config"
    mount -t proc proc "$root/proc"
    in_root setfiles -F /etc/selinux/default/contexts/files/file_contexts / >"$work/log" 2>&1
    umount "$root/proc"
  fi
  truncate -s 6G "$work/disk"
  mke2fs -q -t ext4 -d "$root" "$work/disk" || { echo "FAIL: no disk could be made"; exit 1; }
  boot=(-drive "file=$work/disk,format=raw,if=virtio,cache=unsafe" -kernel "$root"/boot/vmlinuz-* -initrd "$root"/boot/initrd.img-*)
  words="root=/dev/vda rw security=$module"
}
in_memory() {
  (cd "$root" && find . -xdev | "${pack[@]}" -o -H newc 2>/dev/null) >"$work/root.cpio"
  boot=(-kernel "$kernel" -initrd "$work/root.cpio") words=''
}
if [[ $script == in_booted.sh ]]; then in_memory; else on_a_disk; fi
timeout 14400 qemu-system-x86_64 -machine q35 -cpu max -m $memory -smp 2 -nographic -no-reboot "${boot[@]}" "${device[@]}" \
  -append "console=ttyS0 quiet systemd.show_status=0 systemd.log_level=warning $clock $words" </dev/null >"$work/console" 2>&1
tr -d '\r' <"$work/console" | grep -E '^(ok|FAIL|     ) '
tr -d '\r' <"$work/console" | grep -qx 'ok    all of it' || { tail -n 40 "$work/console"; echo "FAIL"; exit 1; }
