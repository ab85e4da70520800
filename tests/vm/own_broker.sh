# For tests of VMs with an ivgpud of their own; sourced, never run. `build` is the build folder.
# shellcheck shell=bash disable=SC2034,SC2154

# A VM's processor in QEMU's words: emulated, unless `accelerator` says otherwise. maxcpus: QEMU emulates a VM that can never have a
# second one without memory barriers and locked operations, by which programs and the host's workers meet
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

# start_broker: with the configuration $work/ivgpud.toml; its log is $work/log, its last status $work/last. It ends with the test.
start_broker() {
  mkfifo "$work/ready"
  "$build/bin/ivgpud" --config "$work/ivgpud.toml" --ready-fd 9 --last-status-fd 8 9>"$work/ready" 8>"$work/last" \
    2>"$work/log" &
  broker=$!
  read -r _ <"$work/ready" || { cat "$work/log"; exit 1; }
}

# start_kept_broker: the same with a stand-in for systemd (kept_broker.cc), so that restart_broker can restart it.
start_kept_broker() {
  mkfifo "$work/ready"
  exec 250<>"$work/ready"
  "$build/tests/kept_broker" "$build/bin/ivgpud" --config "$work/ivgpud.toml" --ready-fd 250 --last-status-fd 251 \
    251>>"$work/last" 2>"$work/log" &
  broker=$!
  read -r -t 60 _ <&250 || { cat "$work/log"; exit 1; }
}

# restart_broker USR1|USR2: in order, or by kill -9; returns when that one serves.
restart_broker() {
  kill -"$1" "$broker"
  read -r -t 60 _ <&250 || { cat "$work/log"; fail "no next ivgpud serves"; }
}

# wait_for_line FILE PATTERN: until it is there, for as long as a guest takes to boot and to get there.
wait_for_line() {
  local tries
  for ((tries = 0; tries < ${patience_s:-240} * 10; ++tries)); do
    ! grep -qsE "$2" "$1" || return 0
    sleep 0.1
  done
  fail "${1##*/} does not say: $2"
}

# make_ports VM: sets `ports`, QEMU's words for the guest's serial ports. What a guest's program writes is in $work/VM.out, and what
# `tell` writes it reads from /dev/ttyS1.
make_ports() {
  : >"$work/$1.out"
  mkfifo "$work/$1.in"
  ports=(-serial "file:$work/$1.console" -chardev "pipe,id=said,path=$work/$1" -serial chardev:said
    -serial "file:$work/$1.err" -serial "file:$work/$1.control")
}
# tell VM WORD. Opened for both ways: it waits for no QEMU that has ended.
tell() { echo "$2" 1<>"$work/$1.in"; }

# restart_at_work VM...: both ways while a program of each is at work (guest_goes_on), and brings results after each.
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
# The first report may be of a result before the restart.
has_brought() { (($(results_of "$2") >= $1)) || grep -qE '^kept (ended|wrong)' "$work/$2.out"; }

# await_ends VM...: of those programs. Where one does not end, what the host does for them is shown while the VMs are there still.
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

# What a guest runs for that: faults_program has to be in its PATH.
guest_goes_on='faults_program libcuda.so.1 steady 0 kept & working=$!
read -r word </dev/ttyS1; kill $working; wait $working && echo "kept to its end" &&
vector_add --n 1000 >/dev/null && echo "new programs are served after restarts"'

# went_on VM...: each program has right results, and so had one after it.
went_on() {
  local vm
  for vm; do
    [[ $(grep -cE '^(kept to its end|new programs are served after restarts)' "$work/$vm.out") == 2 ]] ||
      fail "$vm: its program did not go on over restarts of ivgpud: $(grep '^kept' "$work/$vm.out" | tail -n 5)"
    grep -q " $vm: .* session(s) and .* connection(s) of before the restart go on" "$work/log" ||
      fail "$vm: nothing of it was taken over"
  done
}
