#!/usr/bin/env bash
# usage: bounds.sh BUILD
# Tests a VM's control group, in a guest that acts as host: the guest mounts cgroup v2, delegates a group to ivgpud, and
# runs programs in loopback. The kernel must kill one VM's worker for its memory and refuse threads to another VM's
# worker. A third session and the broker must survive, and the broker's status must report both events. The test then
# repeats without delegation.
set -euo pipefail
build=$1
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../patient.sh"
code=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir "$work/host"
for file in bin/ivgpud bin/ivgpu-worker bin/ivgpu bin/ivgpu-check tests/flood simgpu/libcuda.so.1; do
  strip -o "$work/host/$(basename "$file")" "$build/$file"
done
cat >"$work/host/ivgpud.toml" <<'TOML'
[broker]
runtime_dir = "/run/ivgpu"
cgroups = "required"
[gpu]
library = "/programs/host/libcuda.so.1"
[defaults]
region_size = "64MiB"
slots = 2
session_image_bytes = "16GiB"
[vm.memory]
memory_max = "128MiB"
[vm.threads]
pids_max = 50
[vm.quiet]
cpu_max = "0.5"
TOML

job() {
  declare -f wait_for
  cat <<'JOB'
# A worker's environment is built from scratch, so its libraries must be where the loader looks by default.
for file in /lib/ivgpu/*; do
  case $file in */libcuda.so.1 | */libnvidia-ml.so.1) ;; *) ln -s "$file" /lib/ ;; esac
done
export PATH=$PATH:/programs/host
tree=/sys/fs/cgroup
own=$tree/system.slice/ivgpud.service
start() {
  mkfifo /tmp/ready
  # A separate process enters the group and becomes the broker, as a unit's process does.
  sh -c "echo \$\$ >$own/cgroup.procs; exec ivgpud --config /programs/host/$1 --ready-fd 3" 3>/tmp/ready 2>/tmp/log &
  broker=$!
  read -r word </tmp/ready
  echo "broker: ${word:-not ready}"
  rm /tmp/ready
}
in_vm() { IVGPU_REGION=/run/ivgpu/$1.sock flood /lib/ivgpu/libcuda.so.1 $2 $3 $4; }
told() { ivgpu status | sed -n "/^VM $1:/,/^ *bounds/p" | tail -n 1; }

groups() { ivgpu-check --host | grep -o '^[a-z]* *groups'; }
groups
mount -t cgroup2 none $tree
echo "+memory +pids +cpu" >$tree/cgroup.subtree_control
mkdir -p $own
echo "+memory +pids +cpu" >$tree/system.slice/cgroup.subtree_control
groups

start ivgpud.toml
cat $own/ivgpu-memory/memory.max $own/ivgpu-threads/pids.max $own/ivgpu-quiet/cpu.max
# This program stays idle while the others flood, and works again afterwards.
mkfifo /tmp/quiet
in_vm quiet works </tmp/quiet >/tmp/worked &
exec 9>/tmp/quiet
has_worked() { [ "$(wc -l </tmp/worked)" = "$1" ]; }
wait_for has_worked 1

echo "memory: $(in_vm memory images 400 2 </dev/null | sed 's/ [0-9]* / some /')"
told memory | sed 's/memory [0-9]* MiB/memory some/; s/threads [0-9]*/threads some/'
echo "memory: the next $(in_vm memory works </dev/null)"

mkfifo /tmp/waits
in_vm threads waits 200 </tmp/waits >/dev/null &
exec 8>/tmp/waits
# The kernel's counter shows the refusals. A worker that gets no further thread may end at once, and a worker that was
# started in the meantime is in the group, too.
wait_for grep -q 'max [1-9]' $own/ivgpu-threads/pids.events && echo 'threads refused beyond 50'
told threads | grep -o 'threads [0-9]* of 50;' | sed 's/threads [0-9]*/threads some/'
exec 8>&-

echo >&9
wait_for has_worked 2
sed 's/^/quiet: its session /' /tmp/worked
echo "quiet: the next $(in_vm quiet works </dev/null)"
exec 9>&-
kill -0 $broker && echo "the broker lives"
# Only the kernel may have ended workers by a signal, for lack of memory.
for vm in memory quiet; do
  echo "$vm: $(ivgpu status | sed -n "/^VM $vm:/,/^$/p" | grep -o '[0-9]* by another signal' || echo none by a signal)"
done
kill $broker
wait $broker
echo "the broker ended with $?, left: $(cd $own && ls -d */ 2>/dev/null)"

# A group with other processes is refused if control groups are required; otherwise the broker prints one warning.
sleep 1000 &
echo $! >$own/cgroup.procs
start ivgpud.toml
grep -c 'has other processes, too' /tmp/log
sed 's/required/best-effort/' /programs/host/ivgpud.toml >/programs/host/loose.toml
start loose.toml
grep -c 'warning.*has other processes, too' /tmp/log
told quiet | grep -c 'of each session alone, .*missing: '
echo "quiet: the next $(in_vm quiet works </dev/null)"
kill $broker
wait $broker
JOB
}
"$build/bin/ivgpu" vm --gpu sim --memory 768M --program-dir "$work/host" --timeout 1500 >"$work/out" 2>"$work/err" < <(job) || code=$?

cat >"$work/wanted" <<'TEXT'
warning  groups
ok       groups
broker: ready
134217728
50
50000 100000
memory: images some CUDA_ERROR_DEVICE_UNAVAILABLE
  bounds: memory some of 128 MiB, killed beyond it 1; threads some of 4096; processors unbounded
memory: the next works
threads refused beyond 50
threads some of 50;
quiet: its session works
quiet: its session works
quiet: the next works
the broker lives
memory: 1 by another signal
quiet: none by a signal
the broker ended with 0, left: 
broker: not ready
1
broker: ready
1
1
quiet: the next works
TEXT
diff -u --label wanted --label guest "$work/wanted" "$work/out" || { cat "$work/err"; exit 1; }
[[ $code == 0 ]] || { echo "ivgpu vm ended with $code"; cat "$work/err"; exit 1; }
