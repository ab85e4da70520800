#!/usr/bin/env bash
# usage: oracle.sh BUILD
# Tests the oracle of the VM tests: a worker, ivgpud or QEMU is killed while a command succeeds. `ivgpu` must report
# each kill and, with IVGPU_STRICT, exit with 5. Without a kill it must do neither.
set -euo pipefail
build=$1
# shellcheck source=tests/oracle.sh
source "$(dirname "${BASH_SOURCE[0]}")/../oracle.sh"
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../patient.sh"
ivgpu=$build/bin/ivgpu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0
fail() { echo "FAIL: $1"; status=1; }

# expect CODE WORDS COMMAND...: expects this exit code and these words on standard error; empty WORDS mean no report.
expect() {
  local wanted=$1 words=$2 code=0
  shift 2
  "$@" </dev/null >"$work/out" 2>"$work/said" || code=$?
  [[ $code == "$wanted" ]] || fail "$* ended with $code, not $wanted: $(cat "$work/said")"
  if [[ $words ]]; then
    grep -qxF -- "$words" "$work/said" || fail "$* does not say '$words', but: $(cat "$work/said")"
  elif [[ -s $work/said ]]; then
    fail "$* says: $(cat "$work/said")"
  fi
}

# child NAME OF: waits for a child of process OF with this name, and prints it.
child() { wait_for find_child "$@" && echo "$found"; }
find_child() {
  local pids=()
  read -ra pids <"/proc/$2/task/$2/children" || true
  for found in "${pids[@]}"; do if [[ $(cat "/proc/$found/comm") == "$1" ]]; then return; fi; done
  return 1
}
is_dead() { ! grep -qs '^State:.[^Z]' "/proc/$1/status"; }
# True if the parent has reaped the process.
is_gone() { [[ ! -e /proc/$1 ]]; }
# kills PROCESS STATE: kills the process, and returns when STATE is true.
kills() { kill -SEGV "$1" && wait_for "$2" "$1"; }
export -f wait_for child find_child is_dead is_gone kills

# In loopback the program is a sibling of its ivgpud.
# shellcheck disable=SC2016
kill_worker='kills "$(child ivgpu-worker "$(child ivgpud $PPID)")" is_gone'
# shellcheck disable=SC2016
kill_broker='kills "$(child ivgpud $PPID)" is_dead'
run=("$ivgpu" run --private --gpu sim bash -c)
died='ivgpu: a worker of VM local was killed by signal 11 (SEGV)'
export IVGPU_STRICT=1
expect 0 '' "${run[@]}" true
expect 5 "$died" "${run[@]}" "$kill_worker"
expect 5 "$died" "${run[@]}" "$kill_worker; exit 7"
expect 5 'ivgpu: ivgpud was killed by signal 11 (SEGV)' "${run[@]}" "$kill_broker"
expect 0 "$died" env -u IVGPU_STRICT "${run[@]}" "$kill_worker"
expect 7 "$died" env -u IVGPU_STRICT "${run[@]}" "$kill_worker; exit 7"

# Kills a worker of a VM, while the guest boots and is stopped.
# shellcheck disable=SC2317
kill_worker_of() {
  local ivgpu_pid machine
  "$@" &
  ivgpu_pid=$!
  machine=$(child qemu-system-x86 "$ivgpu_pid")
  kill -STOP "$machine"
  kills "$(child ivgpu-worker "$(child ivgpud "$ivgpu_pid")")" is_gone
  kill -CONT "$machine"
  wait "$ivgpu_pid"
}
vm=("$ivgpu" vm --gpu sim --timeout 240 -- 'echo in the guest')
expect 5 'ivgpu: a worker of VM guest was killed by signal 11 (SEGV)' kill_worker_of "${vm[@]}"
grep -qx 'in the guest' "$work/out" || fail "the command's output is lost"

# Tests a QEMU that faults after its guest has powered off.
mkdir "$work/bundle"
bundle=${IVGPU_BUNDLE:-$build/guest-image}
qemu=$(command -v "${IVGPU_BUNDLE:-/nowhere}/qemu" || command -v qemu-system-x86_64)
ln -s "$bundle/vmlinuz" "$bundle/busybox" "$work/bundle/"
printf '#!/usr/bin/env bash\n%q "$@"\nkill -SEGV $$\n' "$qemu" >"$work/bundle/qemu"
chmod +x "$work/bundle/qemu"
expect 5 'ivgpu: QEMU was killed by signal 11 (SEGV)' env IVGPU_BUNDLE="$work/bundle" "${vm[@]}"

# Tests the same oracle in tests with their own ivgpud.
printf '[broker]\nruntime_dir = "%s"\n[gpu]\nlibrary = "sim"\n[vm.a]\nregion_size = "256MiB"\n' "$work" >"$work/ivgpud.toml"
own_broker() {
  mkfifo "$work/ready"
  "$build/bin/ivgpud" --config "$work/ivgpud.toml" --ready-fd 9 --last-status-fd 8 \
    9>"$work/ready" 8>"$work/last" 2>"$work/log" &
  broker=$!
  read -r _ <"$work/ready"
  rm "$work/ready"
  worker=$(child ivgpu-worker "$broker")
}
own_broker
kill "$broker"
wait "$broker" || fail "ivgpud ended with $?"
[[ -z $(workers_failed "$work/last") ]] || fail "all went well: $(workers_failed "$work/last")"
own_broker
kills "$worker" is_gone
kill "$broker"
wait "$broker" || fail "ivgpud ended with $?"
[[ $(workers_failed "$work/last") == *"\"worker\":$worker}"* ]] || fail "a worker's death is not told: $(workers_failed "$work/last")"
[[ $(workers_failed /dev/null) ]] || fail "a broker that told nothing is believed"
exit "$status"
