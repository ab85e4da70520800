# The oracle of tests that start their own ivgpud; sourced, never run.
# shellcheck shell=bash

# workers_failed FILE: succeeds, and prints why, if the output of `ivgpud --last-status-fd` is empty, or lists a worker
# that ended by a signal not from the broker, or with an unexpected code.
workers_failed() {
  [[ -s $1 ]] || { echo "the broker told no last status"; return; }
  grep -qE '"(signal|other_code)":[1-9]' "$1" || return 0
  echo "a worker failed: $(grep -o '"failures":\[{[^]]*\]' "$1")"
}
