// The spaces in which a memory operand of a form may lie, with the text of its address: in the named space, and
// generic.
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
