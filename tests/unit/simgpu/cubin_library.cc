// A shared library that contains only machine code, like NVIDIA's libraries. A function returns the address of the
// code: if a program used a variable, the linker would copy that variable into the program.
extern "C" __attribute__((visibility("hidden"))) const char machine_code_bytes[];

asm(".pushsection .rodata\n"
    ".balign 8\n"
    ".globl machine_code_bytes\n"
    "machine_code_bytes:\n"
    ".incbin \"" IVGPU_TEST_CUBINS
    "\"\n"
    ".popsection\n");

extern "C" __attribute__((visibility("default"))) const void* machine_code() { return machine_code_bytes; }
