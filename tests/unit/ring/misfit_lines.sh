#!/usr/bin/env bash
# A line of the table that contradicts its declaration in cuda.h must not compile, and the compiler must say why in one
# sentence (ring/api/call.h).
#
# usage: misfit_lines.sh COMPILER TOP CUDA_INCLUDE. Exit codes: 0 all lines behave, 1 a line does not.
set -euo pipefail
compiler=$1 top=$2 cuda=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

# Precompiles the common headers: the compiler uses lines.h.gch in place of lines.h.
flags=(-std=c++20 -D__CUDA_API_VERSION_INTERNAL -I"$top" -isystem "$cuda")
cat >"$work/lines.h" <<TEXT
#include "ring/api/call.h"
namespace api {
extern "C" CUresult takes_address(CUdeviceptr at);
extern "C" CUresult takes_number(int n);
extern "C" CUresult takes_void(const void* at, size_t bytes);
extern "C" CUresult takes_pointers(CUDA_MEMCPY2D* copy);
extern "C" CUresult takes_stream(CUstream stream);
extern "C" CUresult takes_constant(const int* n);
extern "C" CUresult takes_double(double d);
extern "C" CUresult takes_array(CUarray* array);
extern "C" CUresult takes_event(CUevent* event);
}
TEXT
"$compiler" "${flags[@]}" -x c++-header "$work/lines.h" -o "$work/lines.h.gch"

# compiles FUNCTION WORDS: leaves the compiler's messages in $work/said.
compiles() {
  echo "namespace api { static_assert(Shape<decltype(::api::$1), $2>::arity > 0); }" >"$work/line.cc"
  "$compiler" "${flags[@]}" -fsyntax-only -include "$work/lines.h" "$work/line.cc" 2>"$work/said"
}
fits() {
  compiles "$@" || { echo "FAIL: $1 with $2 does not compile:"; head -n 5 "$work/said"; status=1; }
}
misfits() {
  if compiles "$1" "$2"; then
    echo "FAIL: $1 with $2 compiles"
    status=1
  elif ! grep -qF "$3" "$work/said"; then
    echo "FAIL: $1 with $2 does not say '$3':"
    head -n 5 "$work/said"
    status=1
  fi
}

fits takes_address 'device(0)'
fits takes_address number
fits takes_number _
fits takes_void 'in(1), _'
fits takes_void 'maybe_in(1), _'
fits takes_stream closes
fits takes_array knows
fits takes_event knows
misfits takes_event finds 'a handle that is found may have been given before'
misfits takes_double _ 'of floating numbers, only float crosses'
misfits takes_address _ 'an unsigned long long may be an address, an object or a handle'
misfits takes_number '_, _' 'one word per parameter'
misfits takes_number closes 'only a handle can be closed'
misfits takes_stream ordinal 'ordinal is for devices'
misfits takes_number 'device(0)' 'device is for device addresses'
misfits takes_address device 'device needs its length'
misfits takes_void '_, _' 'a pointer parameter needs a word'
misfits takes_void 'in, _' 'void needs a length'
misfits takes_void 'in(5), _' 'a length must name an integer parameter'
misfits takes_pointers out 'this struct is not known to be plain bytes'
misfits takes_constant out 'out needs a pointer to non-const'
misfits takes_constant maybe_in 'maybe_in is NULL where there are none, so it needs their number'
exit "$status"
