#include "host/simgpu/ptx/types.h"

#include <algorithm>
#include <array>

namespace simgpu::ptx {
namespace {

struct Row {
  Type type;
  std::string_view name;
  unsigned size;
};

constexpr std::array<Row, 27> rows{{
    {Type::None, "", 0},         {Type::Pred, "pred", 0},     {Type::B8, "b8", 1},         {Type::B16, "b16", 2},
    {Type::B32, "b32", 4},       {Type::B64, "b64", 8},       {Type::B128, "b128", 16},    {Type::U8, "u8", 1},
    {Type::U16, "u16", 2},       {Type::U32, "u32", 4},       {Type::U64, "u64", 8},       {Type::S8, "s8", 1},
    {Type::S16, "s16", 2},       {Type::S32, "s32", 4},       {Type::S64, "s64", 8},       {Type::U16x2, "u16x2", 4},
    {Type::S16x2, "s16x2", 4},   {Type::F16, "f16", 2},       {Type::F16x2, "f16x2", 4},   {Type::Bf16, "bf16", 2},
    {Type::Bf16x2, "bf16x2", 4}, {Type::F32, "f32", 4},       {Type::F64, "f64", 8},       {Type::F32x2, "f32x2", 8},
    {Type::Tf32, "tf32", 4},     {Type::E4m3x2, "e4m3x2", 2}, {Type::E5m2x2, "e5m2x2", 2},
}};

}  // namespace

Type type_of(std::string_view name) {
  if (name.empty()) return Type::None;
  const auto* row = std::find_if(rows.begin(), rows.end(), [&](const Row& r) { return r.name == name; });
  return row == rows.end() ? Type::None : row->type;
}

std::string_view name_of(Type type) { return rows[static_cast<std::size_t>(type)].name; }

unsigned size_of(Type type) { return rows[static_cast<std::size_t>(type)].size; }

bool is_signed(Type type) { return type >= Type::S8 && type <= Type::S64; }

bool is_float(Type type) { return type >= Type::F16; }

bool is_half(Type type) { return type == Type::F16 || type == Type::Bf16; }

bool is_half_pair(Type type) { return type == Type::F16x2 || type == Type::Bf16x2; }

}  // namespace simgpu::ptx
