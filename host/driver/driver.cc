#include "host/driver/driver.h"

#include <dlfcn.h>

namespace host {
namespace {

template <class F>
void find(void* library, const char* name, F& into) {
  into = reinterpret_cast<F>(dlsym(library, name));
}

decltype(&::cuEventCreate) create_event_as_asked = nullptr;

CUresult create_sleeping_event(CUevent* event, unsigned flags) {
  return create_event_as_asked(event, flags | CU_EVENT_BLOCKING_SYNC);
}

}  // namespace

Result<std::unique_ptr<Driver>> Driver::load(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Error{"cannot load the driver library " + path + ": " + dlerror()};
  auto driver = std::make_unique<Driver>();
#define CALL(id, fn, ...) find(library, #fn, driver->fn);
#define CUSTOM(id, fn, ...) find(library, #fn, driver->fn);
#define LOCAL(fn, ...) find(library, #fn, driver->fn);
#define VARIANT(fn, ...) find(library, #fn, driver->fn);
#define ABSENT(...)
#include "ring/api/driver.def"
  if (driver->cuInit == nullptr || driver->cuLibraryLoadData == nullptr || driver->cuKernelGetParamInfo == nullptr) {
    return Error{
        path +
        " is no CUDA driver of version 12.4 or newer: it lacks cuInit, cuLibraryLoadData or cuKernelGetParamInfo"};
  }
  return driver;
}

void make_events_sleep(Driver& driver) {
  create_event_as_asked = driver.cuEventCreate;
  driver.cuEventCreate = create_sleeping_event;
}

}  // namespace host
