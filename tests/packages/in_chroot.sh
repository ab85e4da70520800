#!/usr/bin/env bash
# packages.sh runs this script inside a fresh Debian without systemd, with the packages in /test. The script installs,
# uses, upgrades, removes and purges the packages, also beside NVIDIA's library and half configured. RELEASE is the
# packages' release, KERNEL a kernel whose headers are below /usr/src.
set -uo pipefail
cd /test || exit 1
status=0
fail() { echo "FAIL: $1"; status=1; }

# expect CODE PATTERN COMMAND...: checks the exit code (CODE may be a pattern), and a line of standard output or error.
expect() {
  local code=$1 pattern=$2 got
  shift 2
  "$@" >said 2>&1 </dev/null
  got=$?
  # shellcheck disable=SC2053
  if [[ $got != $code ]] || { [[ $pattern ]] && ! grep -qE -- "$pattern" said; }; then
    fail "$*: exit code $got (wanted $code), wanted to read: $pattern"$'\n'"$(tail -n 30 said)"
  fi
}
package() { echo "./ivgpu-${1}_${RELEASE}_$([[ $1 == dkms ]] && echo all || echo amd64).deb"; }
install() { expect 0 '' apt-get install -yq --no-install-recommends "$@"; }
libraries=(libcuda.so.1 libnvidia-ml.so.1)
# libraries_are FOLDER WHEN: checks which libraries the loader gives to a program; none: neither of the two libraries.
libraries_are() {
  local library wanted found
  for library in "${libraries[@]}"; do
    wanted=$1/$library
    [[ $1 != none ]] || wanted=none
    found=$(./which_library "$library")
    [[ $found == "$wanted" ]] || fail "$2: the loader finds $found as $library, wanted $wanted"
  done
}

# Prints the state of the whole machine: the names of all files, and the contents of the files in /etc. Excludes the
# records of dpkg and apt, and backups that tools keep of files that they changed.
state() {
  find / -xdev \( -path /test -o -path /proc -o -path /sys -o -path /dev -o -path /var/lib/dpkg -o -path /var/lib/apt \
    -o -path /var/cache -o -path /var/log -o -path /tmp \) -prune -o -print | grep -vE '^/etc/(group|gshadow|passwd|subgid)-$' |
    LC_ALL=C sort
  find /etc -type f ! -name 'ld.so.cache' ! -name '*-' -exec sha256sum {} + | LC_ALL=C sort
}
same_state() { diff "$1" <(state) >changed || fail "$2 leaves a change behind:"$'\n'"$(cat changed)"; }

ours=/usr/lib/ivgpu/guest
nvidia=/lib/x86_64-linux-gnu
conf=/etc/ld.so.conf.d/zz-ivgpu.conf
cdi=/run/cdi/ivgpu.yaml
device=/sys/bus/pci/devices/0000:00:04.0
plug() { mkdir -p "$device"; echo 0x1af4 >"$device/vendor"; echo 0x1110 >"$device/device"; }
unplug() { rm -rf "$device"; }
toml=/etc/ivgpu/ivgpud.toml
expect 0 '' apt-get update -q

# ---- installed, used, installed again, removed, purged --------------------------------------------------------------
state >before
install "$(package host)" "$(package guest)" "$(package tools)"
expect 0 '^ivgpud gives VMs a virtual GPU' ivgpud --help
expect 0 "^ivgpud $RELEASE\$" ivgpud --version
expect 0 "$RELEASE" ivgpu --version
expect 1 'this machine has no ivshmem device' ivgpu-check --guest
expect 2 'this machine has no libcuda.so.1' ivgpud --check --config "$toml"
[[ -d /etc/ivgpu/vms.d && -d /run/ivgpu/vms.d ]] || fail "there are no folders for VMs' files"
getent group ivgpu >/dev/null || fail "there is no group ivgpu"
[[ -d /run/ivgpu ]] || fail "there is no folder for the sockets"
libraries_are none "no device"
# Tests libvirt's hook without Python: a VM without the device starts, and a VM with the device does not.
hook=/etc/libvirt/hooks/qemu.d/ivgpu
shmem="<shmem name='a'><model type='ivshmem-doorbell'/><server path='/run/ivgpu/a.sock'/></shmem>"
# shellcheck disable=SC2317
runs_hook() { echo "<domain><devices>$1</devices></domain>" | "$hook" a "$2" "$3" -; }
expect 0 '' runs_hook '' prepare begin
expect 1 'needs python3: install it' runs_hook "$shmem" prepare begin
expect 0 '' runs_hook "$shmem" release end

# Starts a broker as the service does, with the packaged configuration, and runs a program through it.
sed -i 's/^library = "auto"/library = "sim"/; s/^#\[vm.vm1\]/[vm.vm1]/' "$toml"
expect 0 ': good: 1 VM' ivgpud --check --config "$toml"
mkfifo ready
ivgpud --config "$toml" --ready-fd 9 9>ready 2>log &
broker=$!
read -r _ <ready || fail "ivgpud does not start: $(cat log)"
[[ $(stat -c %G:%a /run/ivgpu/vm1.sock) == ivgpu:660 ]] || fail "the socket is $(stat -c %G:%a /run/ivgpu/vm1.sock)"
expect 0 '^VM vm1' ivgpu status
expect 0 '^vector_add: float, 1000 elements, checksum [0-9a-f]{16}$' env IVGPU_REGION=/run/ivgpu/vm1.sock ivgpu run \
  /test/vector_add --n 1000
expect 0 'the file says nothing new' ivgpu reload
expect 0 '^VM vm2: added' ivgpu add vm2 --set 'region_size = "64MiB"' --set 'slots = 2' --set 'spare = 0'
[[ $(stat -c %G:%a /run/ivgpu/vm2.sock) == ivgpu:660 ]] || fail "the socket of a VM that is added is another's"
expect 0 '^VM vm2: removed' ivgpu remove vm2
kill "$broker"
wait "$broker" || fail "ivgpud ends with $?: $(cat log)"
expect 0 '^vector_add: float, 1000 elements' ivgpu sim /test/vector_add --n 1000

expect 0 '' apt-get install -yq --reinstall "$(package host)" "$(package guest)" "$(package tools)"
grep -q '^library = "sim"' "$toml" || fail "installed again, the configuration is another"
expect 0 '' apt-get remove -yq ivgpu-host ivgpu-guest ivgpu-tools
grep -q '^library = "sim"' "$toml" || fail "the configuration is gone before it is purged"
[[ ! -e /usr/lib/ivgpu && ! -e /usr/bin/ivgpud ]] || fail "removed packages leave programs"
expect 0 '' runs_hook "$shmem" prepare begin
expect 0 '' apt-get purge -yq ivgpu-host ivgpu-guest ivgpu-tools
expect 0 '' apt-get autoremove -yq --purge
same_state before "installing, removing and purging"

# ---- an upgrade with another default, where the administrator has changed the file ----------------------------------
install "$(package host)"
echo '# mine' >>"$toml"
dpkg-deb -R "$(package host)" next
sed -i 's/^Version: .*/Version: 99/' next/DEBIAN/control
echo '# a new default' >>next/etc/ivgpu/ivgpud.toml
(cd next && find . -type f ! -path './DEBIAN/*' -printf '%P\0' | xargs -0 md5sum >DEBIAN/md5sums)
dpkg-deb --build next next.deb >/dev/null
# A fake systemctl that reports that the service runs.
mkdir -p /run/systemd/system
printf '#!/bin/sh\nexit 0\n' >/usr/bin/systemctl
chmod 755 /usr/bin/systemctl
expect 0 "ivgpud is still release $RELEASE's; 'systemctl restart ivgpud' takes this one" apt-get install -yq \
  -o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold ./next.deb
rm -r /run/systemd /usr/bin/systemctl
grep -qx '# mine' "$toml" || fail "an upgrade takes the administrator's configuration away"
grep -qx '# a new default' "$toml.dpkg-dist" || fail "the new default is not beside it"
expect 0 '' apt-get purge -yq ivgpu-host
expect 0 '' apt-get autoremove -yq --purge
same_state before "an upgrade"

# ---- whose libraries a program finds --------------------------------------------------------------------------------
plug
install "$(package guest)"
libraries_are "$ours" "with the device"
expect 1 "^ok +nvml +$ours/libnvidia-ml.so.1 is the guest library" ivgpu-check --guest
# podman reads this file and needs only these keys, so the test checks these lines of YAML.
lines=('kind: ivgpu/gpu' '- name: all' "    - hostPath: $device")
for library in "${libraries[@]}"; do
  lines+=("    - hostPath: $ours/$library" "      containerPath: /usr/lib/x86_64-linux-gnu/$library")
done
for line in "${lines[@]}"; do
  grep -qxF -- "$line" "$cdi" || fail "$cdi has no line '$line'"
done
while read -r path; do [[ -e $path ]] || fail "$cdi names $path, which is not there"; done < <(sed -n 's/.*hostPath: //p' "$cdi")
expect 0 '' /usr/libexec/ivgpu/ivgpu-guest-setup update
# A VM that is a host as well: ivgpud uses NVIDIA's library as the driver, and never ivgpu's own library.
install "$(package host)"
expect 2 'this machine has no libcuda.so.1' ivgpud --check --config <(printf '[gpu]\nlibrary = "auto"\n[vm.vm1]\n')
install ./played-nvidia.deb
libraries_are "$nvidia" "NVIDIA's installed after ours"
expect 1 "^warning +nvml +$nvidia/libnvidia-ml.so.1 is found first, and is not the guest library" ivgpu-check --guest
expect '[01]' "VM\(s\), $nvidia/libcuda.so.1|/x86_64-linux-gnu/libcuda.so.1" ivgpud --check --config <(printf '[gpu]\nlibrary = "auto"\n[vm.vm1]\n')
expect 0 '' apt-get purge -yq ivgpu-host
expect 0 '' apt-get autoremove -yq --purge
cp "$nvidia"/{libcuda,libnvidia-ml}.so.1 /lib/
/var/lib/dpkg/info/played-nvidia.prerm
ldconfig
libraries_are /lib "NVIDIA's in the loader's own folder"
rm /lib/{libcuda,libnvidia-ml}.so.1
/var/lib/dpkg/info/played-nvidia.postinst
ldconfig
expect 0 '' apt-get purge -yq played-nvidia
libraries_are "$ours" "NVIDIA's purged"
install ./played-nvidia.deb
state >with_nvidia
unplug
expect 0 '' /usr/libexec/ivgpu/ivgpu-guest-setup update
[[ ! -e $conf && ! -e $cdi ]] || fail "without a device $conf or $cdi stays"
libraries_are "$nvidia" "NVIDIA's, without our device"
plug
expect 0 '' /usr/libexec/ivgpu/ivgpu-guest-setup update
same_state with_nvidia "the device, gone and back,"
[[ $(readlink "$nvidia"/{libcuda,libnvidia-ml}.so.1 | xargs) == '/etc/alternatives/played /etc/alternatives/played-ml' ]] ||
  fail "an alternative of NVIDIA's libraries is touched"
expect 0 '' apt-get purge -yq ivgpu-guest
[[ ! -e $conf && ! -e $cdi ]] || fail "purged, it leaves $conf or $cdi"
libraries_are "$nvidia" "ours purged"
expect 0 '' dpkg --verify played-nvidia
expect 0 '' apt-get purge -yq played-nvidia
install ./played-nvidia.deb "$(package guest)"
libraries_are "$nvidia" "ours installed after NVIDIA's"
expect 0 '' apt-get purge -yq ivgpu-guest played-nvidia
unplug
same_state before "ours beside NVIDIA's"
# shellcheck disable=SC2016
expect 2 'there is no nonsense' bash -c 'dpkg-deb -x "$1" x && x/usr/libexec/ivgpu/ivgpu-guest-setup nonsense' _ "$(package guest)"
rm -rf x

# ---- a machine that is not as it should be --------------------------------------------------------------------------
# Unpacked alone, as by a power failure: it can be configured, and it can be purged.
expect 0 '' dpkg --unpack "$(package guest)"
expect 0 '' dpkg --purge ivgpu-guest
expect 0 '' dpkg --unpack "$(package guest)"
expect 0 '' dpkg --configure -a
expect 0 '' dpkg --purge ivgpu-guest
# The loader's configuration folder is missing.
plug
mv /etc/ld.so.conf.d kept
touch /etc/ld.so.conf.d
expect 0 'the loader finds neither libcuda.so.1 nor libnvidia-ml.so.1 yet' apt-get install -yq "$(package guest)"
[[ $(dpkg-query -W -f '${db:Status-Status}' ivgpu-guest) == installed ]] || fail "ivgpu-guest is not installed"
rm /etc/ld.so.conf.d
mv kept /etc/ld.so.conf.d
expect 0 '' apt-get purge -yq ivgpu-guest
unplug
same_state before "a half-configured system"

# Installs the module without headers: the installation reports that and continues.
expect 0 '[Hh]eaders' apt-get install -yq --no-install-recommends "$(package dkms)"
expect 0 "^ivgpu/$RELEASE: added" dkms status
expect 0 '' apt-get purge -yq ivgpu-dkms
same_state before "ivgpu-dkms"

# Installs the headers of the kernel KERNEL, for which dkms then builds the module automatically. The package of the
# headers would also install libelf1.
install libelf1
state >with_libelf
mkdir -p "/lib/modules/$KERNEL"
ln -s "/usr/src/linux-headers-$KERNEL" "/lib/modules/$KERNEL/build"
expect 0 '' apt-get install -yq --no-install-recommends "$(package dkms)"
expect 0 "^ivgpu/$RELEASE, $KERNEL, x86_64: installed" dkms status
module=$(find "/lib/modules/$KERNEL" -name 'ivgpu.ko*')
[[ $module ]] || fail "dkms has installed no module"
expect 0 "^vermagic: *$KERNEL " modinfo "$module"
expect 0 "^version: *$RELEASE" modinfo "$module"
expect 0 '' apt-get purge -yq ivgpu-dkms
[[ ! $(find "/lib/modules/$KERNEL" -name 'ivgpu.ko*') ]] || fail "ivgpu-dkms, purged, leaves a module"
rm -r "/lib/modules/$KERNEL"
rmdir --ignore-fail-on-non-empty /lib/modules
same_state with_libelf "ivgpu-dkms with headers"
exit "$status"
