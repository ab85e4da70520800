#!/usr/bin/env bash
# usage: bench_mps.sh IVGPU LIBCUDA
# `ivgpu bench --mps` with a MPS control that only plays one: that it is started in a folder of its own, told to quit
# whatever the end is, and that one which is missing or fails is told in a sentence. LIBCUDA is the simulated GPU's.
set -uo pipefail
ivgpu=$1 library=$2
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../patient.sh"
status=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "FAIL: $1"; status=1; }

# As a daemon (-f) it has its pipe and stays until it is told; else it passes on what it reads.
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

# run PATH WORDS...: what it says in $output, and how it ended in $code.
run() {
  local path=$1
  shift
  output=$(PATH=$path "$ivgpu" bench --gpu "$library" --quick --mps "$@" 2>&1 </dev/null)
  code=$?
}
# The daemon's folder is the one above its pipes.
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
