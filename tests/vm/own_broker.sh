# For tests of VMs with an ivgpud of their own; sourced, never run. `build` is the build folder.
# shellcheck shell=bash disable=SC2034,SC2154

# A VM's processor in QEMU's words: emulated, unless `accelerator` says otherwise. maxcpus: QEMU emulates a VM that can never have a
# second one without memory barriers and locked operations, by which programs and the host's workers meet
# (docs/design/040-kvm-in-emulation.md).
processor=(-accel "${accelerator:-tcg,thread=multi}" -smp '1,sockets=2,maxcpus=2' -cpu max)

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

# wait_for FILE PATTERN: until a line is there, for as long as a guest takes to boot and to get there.
wait_for() {
  local tries
  for ((tries = 0; tries < ${patience_s:-240} * 10; ++tries)); do
    ! grep -qsE "$2" "$1" || return 0
    sleep 0.1
  done
  fail "${1##*/} does not say: $2"
}

# restart_at_work VM...: both ways while a program of theirs is at work (guest_goes_on). It must be in one of them at least still.
restart_at_work() {
  local vm way at_work
  for vm; do wait_for "$work/$vm.out" '^kept begun'; done
  for way in USR1 USR2; do
    at_work=0
    for vm; do grep -q '^kept right' "$work/$vm.out" || at_work=1; done
    ((at_work)) || fail "$*: no program is at work at a restart ($way)"
    restart_broker "$way"
    sleep 0.7
  done
}

# await_ends VM...: of those programs. Where one does not end, what the host does for them is shown while the VMs are there still.
await_ends() {
  local vm task tries=0 status_text
  for vm; do
    until grep -qE '^kept (right|ended|wrong)' "$work/$vm.out" || ((++tries > 1000)); do sleep 0.1; done
  done
  ((tries > 1000)) || return 0
  fail "$*: a program does not end"
  status_text=$("$build/bin/ivgpu" status --json --runtime-dir "$work") || true
  echo "$status_text"
  for task in $(sed -n 's/"worker":/\n&/gp' <<<"$status_text" | sed -nE 's,^"worker":([1-9][0-9]*).*,/proc/\1/task/*,p'); do
    echo "$task: $(cat "$task/comm") $(cat "$task/wchan") $(cat "$task/syscall")"
  done
}

# What a guest runs for that: faults_program has to be in its PATH. `work_mode` is "again" where a restart may outlast what a call waits: its
# calls then fail meanwhile, and it must end well all the same, which it does in its own session only.
guest_goes_on='faults_program libcuda.so.1 '${work_mode:=busy}' '${work_ms:=8000}' kept && vector_add --n 1000 >/dev/null && echo "new programs are served after restarts"'

# went_on VM...: each program has right results, and so had one after it.
went_on() {
  local vm
  for vm; do
    [[ $(grep -cE '^(kept right|new programs are served after restarts)' "$work/$vm.out") == 2 ]] ||
      fail "$vm: its program did not go on over restarts of ivgpud: $(grep '^kept' "$work/$vm.out")"
    grep -q " $vm: .* session(s) and .* connection(s) of before the restart go on" "$work/log" ||
      fail "$vm: nothing of it was taken over"
  done
}
