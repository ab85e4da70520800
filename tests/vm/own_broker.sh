# For tests of VMs with an ivgpud of their own; sourced, never run. `build` is the build folder.
# shellcheck shell=bash disable=SC2034,SC2154

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
