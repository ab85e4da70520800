// System calls and copies that touch only the memory that is passed to them, for code that runs while other threads are
// stopped (guest/objects/memory/page_swap.h). Exception: the loader touches more memory when it first looks up a libc
// function.
#pragma once

#include <sys/syscall.h>

#include <cstddef>

namespace guest {

// Returns the kernel's own result: an error is a small negative number.
inline long raw(long number, unsigned long a = 0, unsigned long b = 0, unsigned long c = 0, unsigned long d = 0,
                unsigned long e = 0) {
  long result = number;
  register unsigned long fourth asm("r10") = d;
  register unsigned long fifth asm("r8") = e;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth) : "rcx", "r11", "memory");
  return result;
}

inline unsigned long word(const void* at) { return reinterpret_cast<unsigned long>(at); }

inline void raw_copy(void* to, const void* from, std::size_t bytes) {
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
}

}  // namespace guest
