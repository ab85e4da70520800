// Prints the kernel parameters for time under TCG, for tests that start QEMU themselves.
#include "tools/ivgpu/vm/emulated_clock.h"

#include <cstdio>

int main() { std::puts(ivgpu::emulated_clock().c_str()); }
