# The functions by which a script of booted.sh reports each check in its guest; sourced in the guest, never run.
# shellcheck shell=bash disable=SC2034

status=0
check() {
  local what=$1
  shift
  if "$@" >/test/said 2>&1; then echo "ok    $what"; else echo "FAIL  $what"; sed 's/^/      /' /test/said; status=1; fi
}
eventually() {
  for ((i = 0; i < 600; ++i)); do
    "$@" && return
    sleep 0.2
  done
  return 1
}
fails() { ! "$@"; }
