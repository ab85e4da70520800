// Modules. These calls are handwritten because an image contains its own length, and JIT options have buffers. The
// reply to a lookup also has the data that the guest needs to check and pack launches.
#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/image.h"
#include "host/untrusted/calls/lookup.h"

namespace host::calls {
namespace {

CUresult load_module(DecodedRequest<api::LoadModuleRecord>& t) {
  return load_image<CUmodule>(t, [&](LoadRequest& load, CUmodule* module) {
    return t.driver().cuModuleLoadDataEx(module, load.image(), load.option_count(), load.options(), load.values());
  });
}

}  // namespace

CUresult cuModuleLoadData(call_of::cuModuleLoadData& a) { return load_module(a); }
CUresult cuModuleLoadDataEx(call_of::cuModuleLoadDataEx& a) { return load_module(a); }

CUresult cuModuleEnumerateFunctions(call_of::cuModuleEnumerateFunctions& a) {
  return find_in_list<CUfunction, CUmodule>(a, a.driver().cuModuleGetFunctionCount, a.driver().cuFuncGetName);
}

CUresult cuModuleGetGlobal_v2(call_of::cuModuleGetGlobal_v2& a) { return find_global<CUmodule>(a); }

}  // namespace host::calls
