// Prints the words by which a guest's kernel keeps time under TCG, for the tests' own command lines of QEMU.
#include "tools/ivgpu/vm/emulated_clock.h"

#include <cstdio>

int main() { std::puts(ivgpu::emulated_clock().c_str()); }
