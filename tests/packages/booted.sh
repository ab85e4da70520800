#!/usr/bin/env bash
# usage: booted.sh SOURCES BUILD [services|libvirt]
# By hand, as root: a Debian with systemd and the packages boots in QEMU, all of it in memory. in_booted.sh tries the services
# there, in two minutes without KVM; or in_libvirt.sh tries the hook in Debian's libvirt with AppArmor in force, in five. The
# kernel is that of `ivgpu vm`, or IVGPU_TEST_IMAGE/vmlinuz.
set -uo pipefail
sources=$(realpath "$1") build=$(realpath "$2")
case ${3:-services} in
  services) script=in_booted.sh memory=3G more=() ;;
  libvirt) script=in_libvirt.sh memory=6G more=(apparmor libvirt-clients libvirt-daemon-system python3 qemu-system-x86) ;;
  *) echo "usage: booted.sh SOURCES BUILD [services|libvirt]" >&2; exit 2 ;;
esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
release=$(sed -n 's/.*this_release\[\] = "\(.*\)";/\1/p' "$sources/ring/release.h")
kernel=${IVGPU_TEST_IMAGE:-$build/guest-image}/vmlinuz
[[ -e $kernel ]] || { echo "there is no kernel: $kernel; \`ivgpu vm --gpu sim -- true\` fetches one"; exit 3; }
pack=(cpio)
command -v cpio >/dev/null || pack=(busybox cpio)
# shellcheck source=tests/packages/common.sh
source "$sources/tests/packages/common.sh"
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
cp "$sources/tests/packages/in_guest.sh" "$sources/tests/packages/$script" "$root/test/"
# dkms and its compiler would only make the guest's memory larger.
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
(cd "$root" && find . -xdev | "${pack[@]}" -o -H newc 2>/dev/null) >"$work/root.cpio"

# An ivshmem device that nobody serves: the guest's package sees one, and nothing else uses it.
timeout 900 qemu-system-x86_64 -machine q35 -cpu max -m $memory -smp 2 -nographic -no-reboot -kernel "$kernel" \
  -initrd "$work/root.cpio" -append 'console=ttyS0 quiet systemd.show_status=0 systemd.log_level=warning' \
  -object memory-backend-ram,id=m,size=4M,share=on -device ivshmem-plain,memdev=m </dev/null >"$work/console" 2>&1
tr -d '\r' <"$work/console" | grep -E '^(ok|FAIL|     ) '
tr -d '\r' <"$work/console" | grep -qx 'ok    all of it' || { tail -n 40 "$work/console"; echo "FAIL"; exit 1; }
