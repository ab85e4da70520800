// The export tables: sizes as in the real driver, callable slots, and the slots that runtime and libraries use.
#include "ring/abi/export_tables.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <cstring>
#include <string_view>
#include <vector>

#include "ring/abi/integrity.h"
#include "tests/unit/abi/fake_backend.h"

namespace {

CUuuid uuid(std::string_view hex) {
  CUuuid id;
  for (std::size_t i = 0; i < sizeof id.bytes; ++i)
    id.bytes[i] = static_cast<char>(std::stoi(std::string(hex.substr(2 * i, 2)), nullptr, 16));
  return id;
}

const void* const* table(std::string_view hex) {
  const CUuuid id = uuid(hex);
  const void* found = nullptr;
  EXPECT_EQ(cuabi::export_table(&found, &id), CUDA_SUCCESS) << hex;
  return static_cast<const void* const*>(found);
}

template <class F>
F* slot(std::string_view hex, std::size_t number) {
  return reinterpret_cast<F*>(const_cast<void*>(table(hex)[number]));
}

constexpr std::string_view cudart = "6bd5fb6c5bf4e74a8987d93912fd9df9", tools_tls = "42d85a8123f6cb478298f6e78a3aecdc",
                           hooks = "a094798c2e742e7493f20800200c0a66", storage = "c693336e1121df11a8c368f355d89593",
                           checks = "263e88607cd2614392f6bbd5006dfa7e", integrity = "d4082055bde6704b8d34ba123c66e1f2",
                           context = "21318c60971432488ca641ff7324c8f2", module = "6e163fbeb958444d835ce182aff1991e",
                           blas = "1734dc26800d47458726c0f1e7dd8bca";

class ExportTables : public testing::Test {
 protected:
  void SetUp() override { fake::reset(); }
};

TEST_F(ExportTables, unknown_ids_are_refused_with_null) {
  for (const std::string_view hex : {"f8cff95121468b4eb9e2fb469e7c0dd9", "00000000000000000000000000000000"}) {
    const CUuuid id = uuid(hex);
    const void* found = &id;
    EXPECT_EQ(cuabi::export_table(&found, &id), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(found, nullptr);
  }
  const void* found = nullptr;
  EXPECT_EQ(cuabi::export_table(&found, nullptr), CUDA_ERROR_INVALID_VALUE);
  const CUuuid id = uuid(cudart);
  EXPECT_EQ(cuabi::export_table(nullptr, &id), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(ExportTables, sizes_are_the_real_drivers_and_no_slot_is_a_hole) {
  const std::pair<std::string_view, std::size_t> sizes[] = {{cudart, 104}, {tools_tls, 24}, {hooks, 56},
                                                            {checks, 120}, {integrity, 24}, {context, 744},
                                                            {module, 792}, {blas, 136}};
  for (const auto& [hex, bytes] : sizes) {
    const void* const* words = table(hex);
    EXPECT_EQ(reinterpret_cast<std::size_t>(words[0]), bytes) << hex;
    for (std::size_t i = 1; i < bytes / 8; ++i) {
      const bool real_has_none = hex == cudart && i == 10;
      EXPECT_EQ(words[i] == nullptr, real_has_none) << hex << " slot " << i;
    }
  }
  EXPECT_EQ(table(storage)[3], nullptr);
}

TEST_F(ExportTables, an_unserved_slot_refuses_and_says_so_once) {
  EXPECT_EQ(slot<CUresult()>(context, 77)(), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(slot<CUresult()>(context, 77)(), CUDA_ERROR_NOT_SUPPORTED);
  std::vector<std::string> refusals;
  for (const std::string& line : fake::lines)
    if (line.starts_with("export table ")) refusals.push_back(line);
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_EQ(refusals[0].rfind("export table 2131: slot 77 was called", 0), 0U) << refusals[0];
  EXPECT_EQ(fake::lines[0], "asked for export table 2131: there");
  void* written = &written;
  EXPECT_EQ((slot<CUresult(void**, void**)>(blas, 4)(&written, &written)), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(written, &written);
}

TEST_F(ExportTables, cudart_interface) {
  CUcontext primary = nullptr;
  auto* primary_context = slot<CUresult(CUcontext*, CUdevice)>(cudart, 2);
  EXPECT_EQ(primary_context(&primary, 0), CUDA_SUCCESS);
  EXPECT_EQ(primary, fake::primary);
  EXPECT_EQ(primary_context(&primary, 1), CUDA_ERROR_INVALID_DEVICE);
  CUmodule loaded = nullptr;
  int image = 0;
  EXPECT_EQ((slot<CUresult(CUmodule*, const void*)>(cudart, 1)(&loaded, &image)), CUDA_SUCCESS);
  EXPECT_EQ(fake::loaded_image, &image);
  int other = 0;
  EXPECT_EQ(
      (slot<CUresult(const void*, CUmodule*, void*, void*, unsigned)>(cudart, 8)(&other, &loaded, nullptr, nullptr, 0)),
      CUDA_SUCCESS);
  EXPECT_EQ(fake::loaded_image, &other);
  fake::ready = CUDA_ERROR_NOT_INITIALIZED;
  EXPECT_EQ(primary_context(&primary, 0), CUDA_ERROR_NOT_INITIALIZED);
}

TEST_F(ExportTables, thread_context_is_the_calling_threads) {
  CUcontext found = nullptr;
  EXPECT_EQ(slot<CUresult(CUcontext*)>(tools_tls, 2)(&found), CUDA_SUCCESS);
  EXPECT_EQ(found, fake::primary);
}

TEST_F(ExportTables, hooks_give_zeroed_arrays_that_are_large_enough) {
  for (const auto& [number, least, told] :
       {std::tuple<std::size_t, std::size_t, std::size_t>{2, 523, 1024}, {6, 14, 14}}) {
    void* flags = nullptr;
    std::size_t count = 0;
    slot<void(void**, std::size_t*)>(hooks, number)(&flags, &count);
    EXPECT_EQ(count, told);
    EXPECT_GE(count, least);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(static_cast<std::uint32_t*>(flags)[i], 0U);
  }
}

TEST_F(ExportTables, context_checks_pass) {
  std::uint32_t verdict = 9;
  void* untouched = &verdict;
  EXPECT_EQ((slot<CUresult(CUcontext, std::uint32_t*, void**)>(checks, 2)(nullptr, &verdict, &untouched)),
            CUDA_SUCCESS);
  EXPECT_EQ(verdict, 0U);
  EXPECT_EQ(untouched, &verdict);
  EXPECT_EQ(slot<std::uint32_t()>(checks, 3)(), 0U);
}

TEST_F(ExportTables, integrity_covers_this_process_this_thread_and_the_addresses_handed_out) {
  cuabi::Digest digest;
  auto* check = slot<CUresult(std::uint32_t, std::uint64_t, std::uint8_t*)>(integrity, 1);
  ASSERT_EQ(check(13002, 1234567, digest.data()), CUDA_SUCCESS);
  const cuabi::IntegrityFacts facts{.driver_version = 13000,
                                    .version = 13002,
                                    .process = static_cast<std::uint32_t>(getpid()),
                                    .thread = static_cast<std::uint32_t>(pthread_self()),
                                    .cudart_table = reinterpret_cast<std::uint64_t>(table(cudart)),
                                    .integrity_table = reinterpret_cast<std::uint64_t>(table(integrity)),
                                    .integrity_function = reinterpret_cast<std::uint64_t>(table(integrity)[1]),
                                    .unix_seconds = 1234567};
  cuabi::DeviceIdentity device;
  std::memset(&device, 7, sizeof device);
  EXPECT_EQ(digest, cuabi::integrity_digest(facts, {&device, 1}));
}

TEST_F(ExportTables, distinct_streams_have_distinct_objects_and_ids) {
  auto* object_of = slot<CUresult(CUcontext, CUstream, void**)>(context, 51);
  auto* id_of = slot<CUresult(CUcontext, void*, std::uint64_t*)>(context, 39);
  std::uint64_t ids[2] = {};
  for (const std::uintptr_t i : {0U, 1U}) {
    void* object = nullptr;
    ASSERT_EQ(object_of(nullptr, fake::handle<CUstream>(100 + i), &object), CUDA_SUCCESS);
    ASSERT_NE(object, nullptr);
    ASSERT_EQ(id_of(nullptr, object, &ids[i]), CUDA_SUCCESS);
    EXPECT_EQ(ids[i], 140 + i);  // the ids that the backend reports
  }
  void* object = nullptr;
  EXPECT_EQ(object_of(nullptr, fake::handle<CUstream>(99), &object), CUDA_ERROR_INVALID_HANDLE);
  std::uint64_t id = 0;
  EXPECT_EQ((slot<CUresult(CUcontext, std::uint64_t*)>(context, 4)(fake::primary, &id)), CUDA_SUCCESS);
  EXPECT_EQ(id, 0x1001U);
}

TEST_F(ExportTables, functions_of_a_module_are_visited_once_each) {
  fake::functions = {fake::handle<CUfunction>(5), fake::handle<CUfunction>(6)};
  std::vector<CUfunction> seen;
  auto visit = [](void* opaque, CUfunction function, std::uint64_t) {
    static_cast<std::vector<CUfunction>*>(opaque)->push_back(function);
  };
  using Visitor = void(void*, CUfunction, std::uint64_t);
  EXPECT_EQ((slot<std::size_t(CUcontext, CUmodule, Visitor*, void*)>(module, 7)(nullptr, fake::handle<CUmodule>(1),
                                                                                static_cast<Visitor*>(visit), &seen)),
            2U);
  EXPECT_EQ(seen, fake::functions);
}

}  // namespace
