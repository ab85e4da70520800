# The oracle of tests that start an ivgpud of their own; sourced, never run.
# shellcheck shell=bash

# workers_failed FILE: what `ivgpud --last-status-fd` wrote tells of a worker that a signal ended which the broker has
# not sent, or that ended with a code of its own; or it tells nothing. Then it is said which.
workers_failed() {
  [[ -s $1 ]] || { echo "the broker told no last status"; return; }
  grep -qE '"(signal|other_code)":[1-9]' "$1" || return 0
  echo "a worker failed: $(grep -o '"failures":\[{[^]]*\]' "$1")"
}
