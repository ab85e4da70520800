#!/usr/bin/env bash
# usage: coverage.sh BUILD
# Tests `ivgpu coverage` with programs that use served calls, refused calls and no calls, and with files that are no
# programs.
set -uo pipefail
build=$1
# shellcheck source=tests/patient.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../patient.sh"
ivgpu=$build/bin/ivgpu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export TMPDIR=$work
status=0
# expect CODE PATTERN WORDS...: checks the exit code, and a line of standard output or error.
expect() {
  local code=$1 pattern=$2 output got
  shift 2
  output=$("$ivgpu" coverage "$@" 2>&1 </dev/null)
  got=$?
  if [[ $got != "$code" ]] || ! grep -qE -- "$pattern" <<<"$output"; then
    printf 'FAIL: coverage %s: exit code %s (wanted %s), wanted to read: %s\n%s\n' "$*" "$got" "$code" "$pattern" "$output"
    status=1
  fi
}

cat >"$work/asks.c" <<'C'
#include <dlfcn.h>
int main(void) {
  void* cuda = dlopen("libcuda.so.1", RTLD_NOW);
  int (*find)(const char*, void**, int, unsigned long long, void*) = (int (*)(const char*, void**, int, unsigned long long, void*))dlsym(cuda, "cuGetProcAddress_v2");
  int (*initialise)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
  int (*table)(void (***)(void), const unsigned char*) = (int (*)(void (***)(void), const unsigned char*))dlsym(cuda, "cuGetExportTable");
  static const unsigned char cudart_interface[16] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a, 0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
  void (**slots)(void) = 0;
  int (*graph)(void**, unsigned) = 0;
  void* graph_object = 0;
  if (initialise(0) != 0 || find("cuGraphAddMemFreeNode", (void**)&graph, 13000, 0, 0) != 0) return 2;
  if (table(&slots, cudart_interface) != 0) return 5;
  slots[12]();  // which prepares compilers; there are none
  slots[11]();
  return graph == 0 ? 3 : graph(&graph_object, 0) == 801 ? 0 : 4;
}
C
cc -o "$work/asks" "$work/asks.c" -ldl || exit 1
# A call that the library knows, checks and refuses counts as unserved, like a call that it does not know.
cat >"$work/asks-peers.c" <<'C'
#include <dlfcn.h>
#include <stdlib.h>
int main(void) {
  void *cuda = dlopen("libcuda.so.1", RTLD_NOW), *context = 0;
  int (*initialise)(unsigned) = (int (*)(unsigned))dlsym(cuda, "cuInit");
  int (*retain)(void**, int) = (int (*)(void**, int))dlsym(cuda, "cuDevicePrimaryCtxRetain");
  int (*join)(void*, unsigned) = (int (*)(void*, unsigned))dlsym(cuda, "cuCtxEnablePeerAccess");
  int (*use)(void*) = (int (*)(void*))dlsym(cuda, "cuCtxSetCurrent");
  int (*part)(void*) = (int (*)(void*))dlsym(cuda, "cuCtxDisablePeerAccess");
  if (initialise(0) != 0 || retain(&context, 0) != 0 || use(context) != 0) return 2;
  for (int i = 0; i < 3; ++i)
    if (part(context) == 0) return 3;
  return getenv("ASKS_PEER") == 0 || join(context, 0) == 217 ? 0 : 4;
}
C
cc -o "$work/asks-peers" "$work/asks-peers.c" -ldl || exit 1
refused="refused: needs several GPUs"
expect 1 "^cuCtxDisablePeerAccess +called +$refused\$" --gpu sim "$work/asks-peers"
expect 1 '; 1 of what was called is not served$' --gpu sim "$work/asks-peers"
expect 1 "\"calls\":3,\"name\":\"cuCtxDisablePeerAccess\",[^}]*\"state\":\"$refused\"" --gpu sim --json "$work/asks-peers"
export ASKS_PEER=1
expect 1 '^cuCtxEnablePeerAccess +called +refused: needs several GPUs$' --gpu sim "$work/asks-peers"
unset ASKS_PEER
# A program that names no call, with a library that names a call.
mkdir "$work/asks.lib"
echo 'const char* name(void) { return "cuGraphAddMemFreeNode"; }' >"$work/asks-library.c"
echo 'const char* name(void); int main(void) { return name() == 0; }' >"$work/asks-linked.c"
cc -shared -fPIC -Wl,-soname,libasks.so.1 -o "$work/asks.lib/libasks.so.1" "$work/asks-library.c" || exit 1
cc -o "$work/asks-linked" "$work/asks-linked.c" "$work/asks.lib/libasks.so.1" -Wl,-rpath,"$work/asks.lib" || exit 1
cc -static -o "$work/asks-static" -x c - <<<'int main(void) { return 0; }' || exit 1
expect 1 '^cuGraphAddMemFreeNode +called +refused: nodes that allocate or free memory are not served yet$' --gpu sim "$work/asks"
expect 1 '^cuInit +1 +local$' --gpu sim "$work/asks"
expect 1 "^ivgpu [0-9.]+, coverage of $work/asks --fast$" --gpu sim "$work/asks" --fast
expect 1 '"program":\["[^"]*/asks","--fast"\],.*"version":"[0-9.]+"' --gpu sim --json "$work/asks" --fast
expect 1 '^CUDART_INTERFACE slot 12 +called +served$' --gpu sim "$work/asks"
expect 1 '^CUDART_INTERFACE slot 11 +called +refused$' --gpu sim "$work/asks"
expect 1 '"not_served":2,' --gpu sim --json "$work/asks"
expect 0 'the program ended with 0 and made no driver call' --gpu sim true
printf '#!/bin/sh\n%s\nexit 7\n' "$work/asks" >"$work/asks-and-fails" && chmod +x "$work/asks-and-fails"
expect 1 '^ivgpu: the program ended with 7$' --gpu sim "$work/asks-and-fails"
expect 1 '^cuGraphAddMemFreeNode +named +refused' --static "$work/asks"
expect 1 '^cuGraphAddMemFreeNode +named +refused: nodes that allocate or free memory are not served yet, in libasks.so.1$' --static "$work/asks-linked"
expect 1 '"libraries":\["[^]]*/libasks.so.1"' --static --json "$work/asks-linked"
expect 1 '"not_served":1,' --static --json "$work/asks-linked"
expect 0 '^0 entry points are named, there and in 0 libraries; 0 of them are not served$' --static "$work/asks-static"
[[ ! -e $build/programs/vector_add_shared ]] ||
  expect 1 '^cuGraphAddMemFreeNode +named +refused: .*, in libcudart\.so' --static "$build/programs/vector_add_shared"
rm "$work/asks.lib/libasks.so.1"
expect 1 'the loader does not find libasks.so.1, so what it calls is not known' --static "$work/asks-linked"
expect 127 'cannot run .*nothing: No such file' --gpu sim "$work/nothing"
expect 127 'cannot be read' --static "$work/nothing"
expect 126 'is no ELF file' --static "$work/asks.c"
expect 2 'coverage needs a PROGRAM'
expect 2 'coverage has no option --fast' --fast ls
expect 3 "the GPU's libcuda is missing" --gpu /nowhere/libcuda.so.1 true
[[ -z $(find "$work" -mindepth 1 ! -name 'asks*') ]] || { echo "FAIL: something was left behind"; status=1; }
exit "$status"
