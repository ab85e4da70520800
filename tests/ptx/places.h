// Where a form's operand in memory may lie, and how its address is written: by name of the space, and generic.
#pragma once

namespace ptx_forms {

struct Place {
  const char* space;
  const char* address;
  const char* prepare;
};
inline constexpr Place places[] = {
    {".global", "%mem", ""},
    {".shared", "%tile", ""},
    {"", "%mem", ""},
    {"", "%rd7", "cvt.u64.u32 %rd7, %tile; cvta.shared.u64 %rd7, %rd7;\n"},
};

}  // namespace ptx_forms
