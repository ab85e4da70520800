# Helpers of tests of VMs with their own ivgpud; sourced, never run. The caller sets `build` to the build folder.
# shellcheck shell=bash disable=SC2034,SC2154

# QEMU's options for a VM's processor. It is emulated, unless `accelerator` has another value. With maxcpus=1 QEMU would
# emulate without memory barriers and locked operations, which synchronise programs with the host's workers
# (docs/design/040-kvm-in-emulation.md).
processor=(-accel "${accelerator:-tcg,thread=multi}" -smp '1,sockets=2,maxcpus=2' -cpu max)

# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../patient.sh"
work=$(mktemp -d)
shm=/dev/shm/ivgpu-test-$$
broker=''
# shellcheck disable=SC2317
finish() {
  if [[ $broker ]]; then kill "$broker" 2>/dev/null || true; wait "$broker" || true; fi
  rm -rf "$work"
}
trap finish EXIT
status=0
fail() { echo "FAIL: $1"; status=1; }

# start_broker: starts ivgpud with $work/ivgpud.toml; its log is $work/log, its last status $work/last. The broker ends
# with the test.
start_broker() {
  mkfifo "$work/ready"
  "$build/bin/ivgpud" --config "$work/ivgpud.toml" --ready-fd 9 --last-status-fd 8 9>"$work/ready" 8>"$work/last" \
    2>"$work/log" &
  broker=$!
  read -r _ <"$work/ready" || { cat "$work/log"; exit 1; }
}

# start_kept_broker: same as start_broker, but under a stand-in for systemd (kept_broker.cc), so that restart_broker
# works.
start_kept_broker() {
  mkfifo "$work/ready"
  exec 250<>"$work/ready"
  "$build/tests/kept_broker" "$build/bin/ivgpud" --config "$work/ivgpud.toml" --ready-fd 250 --last-status-fd 251 \
    251>>"$work/last" 2>"$work/log" &
  broker=$!
  read -r -t 60 _ <&250 || { cat "$work/log"; exit 1; }
}

# restart_broker USR1|USR2: restarts the broker with SIGTERM (USR1) or kill -9 (USR2), and returns when the next broker
# serves.
restart_broker() {
  kill -"$1" "$broker"
  read -r -t 60 _ <&250 || { cat "$work/log"; fail "no next ivgpud serves"; }
}

# wait_for_line FILE PATTERN: waits for as long as a guest's boot may take.
wait_for_line() {
  local tries
  for ((tries = 0; tries < ${patience_s:-240} * 10; ++tries)); do
    ! grep -qsE "$2" "$1" || return 0
    sleep 0.1
  done
  fail "${1##*/} does not say: $2"
}

# make_ports VM: sets `ports`, QEMU's options for the guest's serial ports. A guest program's output goes to
# $work/VM.out; the program reads the words of `tell` from /dev/ttyS1.
make_ports() {
  : >"$work/$1.out"
  mkfifo "$work/$1.in"
  ports=(-serial "file:$work/$1.console" -chardev "pipe,id=said,path=$work/$1" -serial chardev:said
    -serial "file:$work/$1.err" -serial "file:$work/$1.control")
}
# tell VM WORD: opens the pipe for reading and writing, so that it does not block if QEMU has exited.
tell() { echo "$2" 1<>"$work/$1.in"; }

# restart_at_work VM...: restarts the broker in both ways while a program runs in each VM (guest_goes_on), and expects
# results after each restart.
restart_at_work() {
  local vm way
  for vm; do wait_for_line "$work/$vm.out" '^kept (begun|ended)'; done
  for way in USR1 USR2; do
    restart_broker "$way"
    for vm; do
      wait_for has_brought $(($(results_of "$vm") + 3)) "$vm" || fail "$vm: no results after a restart ($way)"
    done
  done
}
results_of() { grep -c '^kept right' "$work/$1.out" || true; }
# The first report may cover a result from before the restart.
has_brought() { (($(results_of "$2") >= $1)) || grep -qE '^kept (ended|wrong)' "$work/$2.out"; }

# await_ends VM...: ends the programs of restart_at_work. If a program hangs, prints the host's status while the VMs
# still run.
await_ends() {
  local vm task status_text all_ended=1
  for vm; do tell "$vm" end; done
  for vm; do wait_for grep -qE '^kept (to its end|ended|wrong)' "$work/$vm.out" || all_ended=0; done
  ((all_ended == 0)) || return 0
  fail "$*: a program does not end"
  status_text=$("$build/bin/ivgpu" status --json --runtime-dir "$work") || true
  echo "$status_text"
  for task in $(sed -n 's/"worker":/\n&/gp' <<<"$status_text" | sed -nE 's,^"worker":([1-9][0-9]*).*,/proc/\1/task/*,p'); do
    echo "$task: $(cat "$task/comm") $(cat "$task/wchan") $(cat "$task/syscall")"
  done
}

# The guest's commands for restart_at_work; faults_program must be in the guest's PATH.
guest_goes_on='faults_program libcuda.so.1 steady 0 kept & working=$!
read -r word </dev/ttyS1; kill $working; wait $working && echo "kept to its end" &&
vector_add --n 1000 >/dev/null && echo "new programs are served after restarts"'

# went_on VM...: expects right results from each program, and from a program after it.
went_on() {
  local vm
  for vm; do
    [[ $(grep -cE '^(kept to its end|new programs are served after restarts)' "$work/$vm.out") == 2 ]] ||
      fail "$vm: its program did not go on over restarts of ivgpud: $(grep '^kept' "$work/$vm.out" | tail -n 5)"
    grep -q " $vm: .* session(s) and .* connection(s) of before the restart go on" "$work/log" ||
      fail "$vm: nothing of it was taken over"
  done
}
