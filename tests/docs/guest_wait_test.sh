#!/usr/bin/env bash
# usage: guest_wait_test.sh SOURCES
# The guide's wait for the VM: virsh first knows no address, then an old one, and the port opens only after an attempt.
# The wait must end when ssh would answer, and not before.
set -uo pipefail
sources=$1
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../patient.sh"
work=$(mktemp -d)
trap 'kill "$door" 2>/dev/null; rm -rf "$work"' EXIT
fail() { echo "FAIL: $1"; exit 1; }

port=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport')
cat >"$work/virsh" <<'SH'
#!/usr/bin/env bash
echo x >>"$0.asked"
case $(wc -l <"$0.asked") in
  1) ;;
  2) echo ' vnet0 52:54:00:00:00:01 ipv4 127.0.0.2/24' ;;
  *) echo ' vnet0 52:54:00:00:00:01 ipv4 127.0.0.1/24' ;;
esac
SH
# The guide sleeps a second between two attempts.
sleep=$(command -v sleep)
printf '#!/bin/sh\nexec %s 0.1\n' "$sleep" >"$work/sleep"
chmod +x "$work/virsh" "$work/sleep"
sed -n '/^address() {/,/^until guest=/p' "$sources/docs/guest.md" | sed "s,/22\",/$port\"," >"$work/wait.sh"
[[ $(wc -l <"$work/wait.sh") == 2 ]] || fail "the guide waits in another way"
grep -q "/$port" "$work/wait.sh" || fail "the guide does not ask for ssh's port"
# shellcheck disable=SC2016
echo 'echo "$guest"' >>"$work/wait.sh"
# The third attempt is the first with the right address; the fifth follows two failed ones.
has_looked() { [[ $(grep -cs x "$work/virsh.asked") -ge 5 ]]; }
(wait_for has_looked; : >"$work/open"; exec perl -MIO::Socket::INET -e 'alarm 300;
  $door = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1", LocalPort => $ARGV[0]) or die; $door->accept' "$port") &
door=$!
guest=$(PATH=$work:$PATH timeout 120 bash "$work/wait.sh") || fail "the wait does not end"
[[ $guest == 127.0.0.1 ]] || fail "it found $guest"
[[ -e $work/open ]] || fail "it ended before anybody answered"
