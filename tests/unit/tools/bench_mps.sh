#!/usr/bin/env bash
# usage: bench_mps.sh IVGPU LIBCUDA
# Tests `ivgpu bench --mps` with a fake MPS control program. The daemon must start in its own folder and get the command
# quit, however the run ends. A missing or failing control program must be reported in one sentence. LIBCUDA is the
# simulated GPU's library.
set -uo pipefail
ivgpu=$1 library=$2
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../patient.sh"
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAIL: $1"; status=1; }

# As a daemon (-f) the fake program makes its pipe and stays until it gets a command. Otherwise it forwards the commands
# that it reads.
mkdir "$work/bin" "$work/none"
cat >"$work/bin/nvidia-cuda-mps-control" <<TEXT
#!/bin/bash
if [[ \$1 == -f ]]; then
  echo "daemon \$CUDA_MPS_PIPE_DIRECTORY" >>"$work/told"
  [[ -e $work/broken ]] && { echo "this one is broken"; exit 1; }
  mkfifo "\$CUDA_MPS_PIPE_DIRECTORY/control"
  read -r word <"\$CUDA_MPS_PIPE_DIRECTORY/control"
  echo "ends by \$word" >>"$work/told"
else
  cat >"\$CUDA_MPS_PIPE_DIRECTORY/control"
fi
TEXT
chmod +x "$work/bin/nvidia-cuda-mps-control"

# run PATH WORDS...: stores the output in $output, and the exit code in $code.
run() {
  local path=$1
  shift
  output=$(PATH=$path "$ivgpu" bench --gpu "$library" --quick --mps "$@" 2>&1 </dev/null)
  code=$?
}
# The daemon's folder is the parent folder of its pipes.
gone() {
  local pipes
  pipes=$(sed -n 's/^daemon //p' "$work/told" | tail -n 1)
  [[ $pipes && ! -e ${pipes%/*} ]] || fail "the daemon's folder is left: '$pipes'"
}

run "$work/bin:$PATH" start
[[ $code == 0 && $output == *'policy    MPS'* ]] || fail "exit code $code: $output"
[[ $(tail -n 1 "$work/told") == 'ends by quit' ]] || fail "the daemon was not told to quit: $(cat "$work/told")"
gone

: >"$work/told"
run "$work/bin:$PATH" start --region-size 3MiB
[[ $code == 3 && $(tail -n 1 "$work/told") == 'ends by quit' ]] || fail "after a failure: exit code $code: $output"
gone

run "$work/none" start
[[ $code == 3 && $output == 'ivgpu: --mps needs nvidia-cuda-mps-control, which is not in the PATH' ]] ||
  fail "without one: exit code $code: $output"

touch "$work/broken"
run "$work/bin:$PATH" start
[[ $code == 3 && $output == 'ivgpu: nvidia-cuda-mps-control did not start: this one is broken' ]] ||
  fail "a broken one: exit code $code: $output"
gone
exit "$status"
