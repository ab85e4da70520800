// A shared library that ships machine code alone, as NVIDIA's do. By a function: the linker would copy a variable into
// the program that names it.
extern "C" __attribute__((visibility("hidden"))) const char machine_code_bytes[];

asm(".pushsection .rodata\n"
    ".balign 8\n"
    ".globl machine_code_bytes\n"
    "machine_code_bytes:\n"
    ".incbin \"" IVGPU_TEST_CUBINS
    "\"\n"
    ".popsection\n");

extern "C" __attribute__((visibility("default"))) const void* machine_code() { return machine_code_bytes; }
