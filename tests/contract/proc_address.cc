// Cases for cuGetProcAddress and export tables, through which a runtime finds all other calls.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(proc_address, Loaded) {
  void* found = nullptr;
  CUdriverProcAddressQueryResult status{};
  const auto get = CU(cuGetProcAddress_v2);
  const auto old = CU(cuGetProcAddress);
  show("before cuInit", get("cuMemAlloc", &found, 12000, 0, &status));
  show_flag("it is found", found != nullptr);
  show("status", status);
  show_flag("it is the newest form", found == symbol("cuMemAlloc_v2"));
  show("the form of CUDA 2", get("cuMemAlloc", &found, 2000, 0, &status));
  show_flag("it is another", found != symbol("cuMemAlloc_v2"));
  show("before the call was there", get("cuStreamGetId", &found, 11000, 0, &status));
  show("status", status);
  show_flag("no function", found == nullptr);
  show("unknown", get("cuNothing", &found, 12000, 0, &status));
  show("status", status);
  show("empty name", get("", &found, 12000, 0, &status));
  show("with its version", get("cuMemAlloc_v2", &found, 12000, 0, &status));
  show("status", status);
  show("no status", get("cuMemAlloc", &found, 12000, 0, nullptr));
  show("unknown, no status", get("cuNothing", &found, 12000, 0, nullptr));
  show("flags 99", get("cuMemAlloc", &found, 12000, 99, &status));
  show("version 0", get("cuInit", &found, 0, 0, &status));
  show("version 99000", get("cuInit", &found, 99000, 0, &status));
  show("version -1", get("cuInit", &found, -1, 0, &status));
  show("per thread", get("cuMemcpy", &found, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM, &status));
  show_flag("the thread's form", found == symbol("cuMemcpy_ptds"));
  show("legacy", get("cuMemcpy", &found, 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status));
  show_flag("the plain form", found == symbol("cuMemcpy"));
  show_guarded("null", [&] { return get("cuMemAlloc", nullptr, 12000, 0, &status); });
  show("the old form", old("cuMemAlloc", &found, 12000, 0));
  show_flag("it is found", found == symbol("cuMemAlloc_v2"));
  show("the old form, unknown", old("cuNothing", &found, 12000, 0));
  show_guarded("the old form, null", [&] { return old("cuMemAlloc", nullptr, 12000, 0); });
  show("itself, CUDA 11", get("cuGetProcAddress", &found, 11030, 0, &status));
  show_flag("the old form", found == symbol("cuGetProcAddress"));
  show("itself, CUDA 12", get("cuGetProcAddress", &found, 12000, 0, &status));
  show_flag("the new form", found == symbol("cuGetProcAddress_v2"));
}

GROUP(export_tables, Initialized) {
  const void* table = nullptr;
  CUuuid unknown{};
  std::memset(&unknown, 0x5a, sizeof unknown);
  show("unknown", CU(cuGetExportTable)(&table, &unknown));
  show_flag("no table", table == nullptr);
  // The table that the runtime requests first.
  constexpr unsigned char runtimes[] = {0x6b, 0xd5, 0xfb, 0x6c, 0x5b, 0xf4, 0xe7, 0x4a,
                                        0x89, 0x87, 0xd9, 0x39, 0x12, 0xfd, 0x9d, 0xf9};
  CUuuid known{};
  std::memcpy(&known, runtimes, sizeof known);
  show("the runtime's", CU(cuGetExportTable)(&table, &known));
  show_flag("a table", table != nullptr);
}

}  // namespace
}  // namespace contract
