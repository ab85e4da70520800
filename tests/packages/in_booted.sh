#!/usr/bin/env bash
# booted.sh runs this script in a guest that systemd has booted with the packages. It tests the services as an
# administrator uses them.
set -uo pipefail
# shellcheck source=tests/packages/in_guest.sh
source "$(dirname "${BASH_SOURCE[0]}")/in_guest.sh"
journal_has() { journalctl -u ivgpud --no-pager -o cat | grep -qE -- "$1"; }
property_is() { [[ $(systemctl show -P "$1" ivgpud) == "$2" ]]; }
# a_program_works SECONDS: runs a program that checks every result.
a_program_works() { IVGPU_REGION=/run/ivgpu/vm1.sock ivgpu run /test/faults_program libcuda.so.1 busy "$1"000; }
starts_told() { journalctl -u ivgpud --no-pager -o cat | grep -c '^vm1: session . of faults_program .* starts$'; }
has_started() { [[ $(starts_told) == "$1" ]]; }
went_on() { [[ $(journalctl -u ivgpud --no-pager -o cat | grep -c '1 session(s) and 1 connection(s) of before the restart go on') -ge "$1" ]]; }
a_program_runs() { IVGPU_REGION=/run/ivgpu/vm1.sock timeout 300 ivgpu run /test/vector_add --n 1000; }
toml=/etc/ivgpu/ivgpud.toml

check "no unit has failed" test -z "$(systemctl --failed --no-legend)"
check "the guest's unit shows the library" sh -c 'ldconfig -p | grep /usr/lib/ivgpu/guest/libcuda.so.1'
check "and that for NVML" sh -c 'ldconfig -p | grep /usr/lib/ivgpu/guest/libnvidia-ml.so.1'
check "and the device to containers" grep hostPath:.*/sys/devices/pci /run/cdi/ivgpu.yaml
check "ivgpud waits for its administrator" test "$(systemctl is-enabled ivgpud) $(systemctl is-active ivgpud)" = "disabled inactive"
mv /etc/ivgpu/vms.d /test/
rmdir /run/ivgpu/vms.d
check "with neither a VM nor a folder for VMs it does not start" fails systemctl start ivgpud
check "and says why, as an error" sh -c "journalctl -u ivgpud -p err -o cat | grep 'there is no VM'"
check "and is not tried again" property_is NRestarts 0
mv /test/vms.d /etc/ivgpu/
check "tmpfiles makes the folder" sh -c 'systemd-tmpfiles --create && test -d /run/ivgpu/vms.d'

# An emulated machine may need longer to start a service than a worker waits.
sed -i '0,/^#*outlive_s = .*/s//outlive_s = 60/' "$toml"
grep -q '^outlive_s' "$toml" || sed -i 's/^\[broker\]/[broker]\noutlive_s = 60/' "$toml"
sed -i 's/^library = "auto"/library = "sim"/; s/^#\[vm.vm1\]/[vm.vm1]\nregion_size = "128MiB"\nslots = 2/' "$toml"
mkdir -p /etc/systemd/system/ivgpud.service.d
printf '[Service]\nWatchdogSec=20\n' >/etc/systemd/system/ivgpud.service.d/test.conf
systemctl daemon-reload
check "it starts, and is ready with its sockets" sh -c 'systemctl enable --now ivgpud && test -S /run/ivgpu/vm1.sock'
check "its status is systemd's" sh -c "systemctl show -P StatusText ivgpud | grep 'serving 1 VM'"
check "a program runs" a_program_runs
check "every layer of the jail holds" eventually journal_has 'jail is complete: no_new_privs, namespaces, rlimits, user, landlock, seccomp'
check "VMs have groups" test -d /sys/fs/cgroup/system.slice/ivgpud.service/ivgpu-vm1
check "sessions are in the journal, without times" journal_has '^vm1: session 0 of vector_add .* starts$'
check "nothing is a warning" test -z "$(journalctl -u ivgpud -p warning -o cat _COMM=ivgpud | grep -v 'there is no VM')"

sed -i 's/^slots = 2/slots = 2\nspare = 2/' "$toml"
check "a VM is added" ivgpu add vm2 --set 'region_size = "64MiB"' --set 'slots = 2'
check "and has its socket" test -S /run/ivgpu/vm2.sock
check "a reload is taken over" systemctl reload ivgpud
check "with its change in the journal" eventually journal_has 'VM vm1: spare 1 -> 2'
cp "$toml" /test/good
echo nonsense >>"$toml"
check "a reload with a mistake fails" fails systemctl reload ivgpud
check "and changes nothing" a_program_runs
cp /test/good "$toml"

check "an ivgpud that stands still" kill -STOP "$(systemctl show -P MainPID ivgpud)"
check "is ended by the watchdog and started anew" eventually property_is NRestarts 1
check "and serves" eventually sh -c 'systemctl is-active -q ivgpud && test -S /run/ivgpu/vm1.sock'
check "programs" a_program_runs
a_program_works 120 >/test/worked 2>&1 &
work=$!
check "a program works" eventually has_started 1
sockets() { stat -c %i /run/ivgpu/vm1.sock /run/ivgpu/ivgpud.control; }
sockets=$(sockets)
check "a restart" systemctl restart ivgpud
check "leaves it its session" eventually went_on 1
check "and its sockets" test "$sockets" = "$(sockets)"
check "within its VM's group" sh -c 'grep -q . /sys/fs/cgroup/system.slice/ivgpud.service/ivgpu-vm1/cgroup.procs'
check "which is bounded again" grep -qv max /sys/fs/cgroup/system.slice/ivgpud.service/ivgpu-vm1/pids.max
kill -9 "$(systemctl show -P MainPID ivgpud)"
check "a command that comes meanwhile waits" ivgpu reload
check "so does a fault leave it its session" eventually went_on 2
check "and its sockets" test "$sockets" = "$(sockets)"
[[ $status == 0 ]] || journalctl -u ivgpud --no-pager -o short-monotonic | tail -n 40 | sed "s/^/      /"
check "whose results are right" sh -c "wait_for() { while kill -0 $work 2>/dev/null; do sleep 0.5; done; }; wait_for; cat /test/worked; grep '^right' /test/worked"
a_program_works 600 >/test/worked 2>&1 &
work=$!
check "another one works" eventually has_started 2
check "it stops" systemctl stop ivgpud
check "which ends sessions" eventually fails kill -0 "$work"
check "and leaves no worker" eventually fails grep -qs ivgpu-worker /proc/[0-9]*/comm
check "with a line for each" journal_has 'session . of faults_program .* ends after'
check "and leaves no socket" test "$(ls /run/ivgpu)" = vms.d
check "started again, it has the VM that was added" sh -c 'systemctl start ivgpud && test -S /run/ivgpu/vm2.sock'
check "which is removed" sh -c 'ivgpu remove vm2 && test ! -e /run/ivgpu/vm2.sock'
check "purged while it runs" dpkg --purge ivgpu-tools ivgpu-host
check "it has ended" fails grep -qs ivgpud /proc/[0-9]*/comm
check "and nothing is left" fails ls /run/ivgpu /etc/ivgpu /usr/bin/ivgpud
check "the guest's package is purged" dpkg --purge ivgpu-guest
check "with its files" fails ls /etc/ld.so.conf.d/zz-ivgpu.conf /run/cdi/ivgpu.yaml
[[ $status == 0 ]] && echo "ok    all of it"
systemctl poweroff --force --force
