# Shared by the scripts in this folder, which source it after set -euo pipefail.
# shellcheck shell=bash

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

die() {
  echo "$(basename "$0"): $1" >&2
  exit "${2:-1}"
}

# Prints a heading. The next heading, or the end, prints the stage's duration; stage_times lists all of them.
stage_name='' stage_start=0 stages_done=''
stage() {
  stage_done
  stage_name=$1 stage_start=$EPOCHREALTIME
  echo "==> $1"
}
stage_done() {
  if [[ $stage_name ]]; then
    local seconds
    seconds=$(awk -v a="$stage_start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
    echo "    $seconds s"
    stages_done+=$(printf '%8s s  %s' "$seconds" "$stage_name")$'\n'
  fi
  stage_name=''
}
stage_times() { printf '%s' "$stages_done"; }

# configure PRESET BUILD [-Dname=value...]: runs cmake --preset if the build tree is missing or has other values. ninja
# runs cmake itself when a CMakeLists.txt changes.
configure() {
  local preset=$1 build=$2
  shift 2
  local arguments=("$@")
  if [[ ${IVGPU_BUNDLE:-} ]]; then
    arguments+=("-DCMAKE_PREFIX_PATH=$IVGPU_BUNDLE/dev/usr" "-DCMAKE_CXX_FLAGS=-isystem $IVGPU_BUNDLE/dev/usr/include"
      "-DIVGPU_QEMU=$IVGPU_BUNDLE/qemu")
  fi
  if [[ ! -e $build/build.ninja || ($# -gt 0 && $(cat "$build/configured" 2>/dev/null) != "$*") ]]; then
    cmake -S "$repo" --preset "$preset" -B "$build" "${arguments[@]}" >"$build.log" 2>&1 ||
      { cat "$build.log" >&2; rm -f "$build.log"; die "cmake could not configure $build" 3; }
    rm -f "$build.log"
    echo "$*" >"$build/configured"
  fi
}
