// Cases for queries about pointers.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(pointers, InContext) {
  CUdeviceptr a = 0, m = 0;
  void* p = nullptr;
  int pageable = 0;
  unsigned type = 9, managed = 9;
  int ordinal = 9;
  CUdeviceptr device_pointer = 9;
  unsigned long long id = 0;
  void* host_pointer = &id;
  CU(cuMemAlloc_v2)(&a, 100);
  CU(cuMemHostAlloc)(&p, 100, 0);
  CU(cuMemAllocManaged)(&m, 100, CU_MEM_ATTACH_GLOBAL);
  const auto stack = reinterpret_cast<CUdeviceptr>(&pageable);
  const auto host = reinterpret_cast<CUdeviceptr>(p);
  show("type of device memory", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
  show("that type", type);
  show("type of pinned memory", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host));
  show("that type", type);
  show("type of managed memory", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, m));
  show("that type", type);
  show("managed", CU(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, m));
  show("type of pageable memory", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, stack));
  show("host pointer of device memory", CU(cuPointerGetAttribute)(&host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, a));
  show("buffer id of device memory", CU(cuPointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
  show("buffer id of pageable memory", CU(cuPointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, stack));
  show("attribute 99 of device memory", CU(cuPointerGetAttribute)(&id, odd<CUpointer_attribute>(99), a));
  show("attribute into null", CU(cuPointerGetAttribute)(nullptr, CU_POINTER_ATTRIBUTE_BUFFER_ID, a));
  CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                      CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                      CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void* values[] = {&type, &ordinal, &device_pointer, &host_pointer, &managed};
  show("attributes of pageable memory", CU(cuPointerGetAttributes)(5, attributes, values, stack));
  show("its type", type);
  show("its ordinal", ordinal);
  show("its device pointer", static_cast<long long>(device_pointer));
  show("its host pointer", host_pointer == nullptr ? 0 : host_pointer == &pageable ? 1 : 2);
  show("it is managed", managed);
  show("attributes of device memory", CU(cuPointerGetAttributes)(5, attributes, values, a));
  show("its type", type);
  show("its ordinal", ordinal);
  show("its host pointer", host_pointer == nullptr ? 0 : 1);
  show("attributes of managed memory", CU(cuPointerGetAttributes)(5, attributes, values, m));
  show("its type", type);
  show("its host pointer", host_pointer == reinterpret_cast<void*>(m) ? 1 : 0);
  show("no attributes", CU(cuPointerGetAttributes)(0, attributes, values, a));
  show("attributes null", CU(cuPointerGetAttributes)(1, nullptr, values, a));
  CU(cuMemFree_v2)(a);
  CU(cuMemFree_v2)(m);
  CU(cuMemFreeHost)(p);
  show("type of freed memory", CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
}

// Queries each attribute for one kind of memory; callers include the stack, which CUDA does not know.
void every_attribute(const std::string& kind, CUdeviceptr at) {
  for (int i = 1; i <= CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE; ++i) {
    unsigned long long value[8] = {};  // as large as the type of the largest attribute
    show(kind + ", attribute " + std::to_string(i), CU(cuPointerGetAttribute)(value, odd<CUpointer_attribute>(i), at));
  }
}

GROUP(pointer_attributes, InContext) {
  CUdeviceptr a = 0;
  void* p = nullptr;
  CU(cuMemAlloc_v2)(&a, 100);
  CU(cuMemHostAlloc)(&p, 100, 0);
  every_attribute("device memory", a + 4);
  every_attribute("pinned memory", address_of(p) + 4);
  every_attribute("pageable memory", address_of(&a));
  every_attribute("null", 0);
}

GROUP(pointer_values, InContext) {
  CUdeviceptr a = 0, start = 0, seen = 0;
  std::size_t size = 0;
  void *p = nullptr, *host = nullptr;
  int ordinal = 9;
  unsigned mapped = 9;
  CUcontext context = nullptr;
  const auto get = CU(cuPointerGetAttribute);
  CU(cuMemAlloc_v2)(&a, 100);
  CU(cuMemHostAlloc)(&p, 100, 0);
  get(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, a + 4);
  show_flag("device memory's start", start == a);
  get(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, a + 4);
  show("device memory's size", static_cast<long long>(size));
  get(&seen, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, a + 4);
  show_flag("device memory's device pointer", seen == a + 4);
  get(&context, CU_POINTER_ATTRIBUTE_CONTEXT, a);
  show_flag("device memory's context", context == current_context());
  get(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, a);
  show("device memory's ordinal", ordinal);
  get(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, a);
  show("device memory is mapped", mapped & 0xff);
  get(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address_of(p) + 4);
  show_flag("pinned memory's start", start == address_of(p));
  get(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address_of(p) + 4);
  show("pinned memory's size", static_cast<long long>(size));
  get(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, address_of(p) + 4);
  show("pinned memory's host pointer, offset", static_cast<long long>(address_of(host) - address_of(p)));
  get(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, address_of(p));
  show("pinned memory is mapped", mapped & 0xff);
}

GROUP(pointers_without_context, Initialized) {
  CUcontext context = nullptr;
  CUdeviceptr a = 0;
  unsigned type = 9;
  CUpointer_attribute attribute = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* values[] = {&type};
  show("type of the stack", CU(cuPointerGetAttribute)(&type, attribute, address_of(&type)));
  show("attributes of the stack", CU(cuPointerGetAttributes)(1, &attribute, values, address_of(&type)));
  CU(cuDevicePrimaryCtxRetain)(&context, device);
  CU(cuCtxSetCurrent)(context);
  CU(cuMemAlloc_v2)(&a, 100);
  CU(cuCtxSetCurrent)(nullptr);
  show("type of device memory", CU(cuPointerGetAttribute)(&type, attribute, a));
  show("attributes of device memory", CU(cuPointerGetAttributes)(1, &attribute, values, a));
  void* no_value[] = {nullptr};
  show("an attribute into null", CU(cuPointerGetAttributes)(1, &attribute, no_value, a));
  show("attributes, no values", CU(cuPointerGetAttributes)(1, &attribute, nullptr, a));
  attribute = odd<CUpointer_attribute>(99);
  show("attribute 99 of device memory", CU(cuPointerGetAttributes)(1, &attribute, values, a));
  show("attribute 99 of the stack", CU(cuPointerGetAttributes)(1, &attribute, values, address_of(&type)));
  show("cuMemFree without context", CU(cuMemFree_v2)(a));
}

}  // namespace
}  // namespace contract
