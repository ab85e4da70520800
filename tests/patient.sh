# Helpers for tests that pass on a machine of any speed; sourced, never run.
# shellcheck shell=bash

# By default the guest library gives up a silent host after a minute. A test of a silent host sets less.
export IVGPU_HOST_PATIENCE=600

# wait_for COMMAND...: retries until it succeeds; fails after a minute. POSIX sh, so that a guest's busybox runs it.
wait_for() {
  tries=0
  until "$@"; do
    [ "$((tries += 1))" -le 1200 ] || return 1
    sleep 0.05
  done
}
