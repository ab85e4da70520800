// Arrays: their parts, their ends, and copies with an array on a side.
#include <cstring>

#include "host/untrusted/calls/calls.h"
#include "host/untrusted/calls/copy_side.h"

namespace host::calls {
namespace {

// A part of an owner that `ask` finds: the driver gives the same handle each time, so it has one id.
template <class Owner, class A>
CUresult find_part(A& a) {
  CUarray part = nullptr;
  const auto which = static_cast<unsigned>(a.record.which);
  const CUresult result = a.call(&part, a.template handle<Owner>(&api::PartRecord::from), which);
  if (result != CUDA_SUCCESS) return result;
  const std::uint64_t id = a.put_once(part);
  return id == 0 ? a.request.broken() : a.answer(result, {{.id = id}});
}

using Record = api::CopyTexelsRecord;
using api::TexelsSide;

template <class R>
CUarray array_of(const Taken<R>& t, TexelsSide Record::*side) {
  return t.template handle<CUarray>(api::field::of(side, &TexelsSide::array));
}

template <class R>
CUDA_MEMCPY3D texels_of(const Taken<R>& t) {
  const Record& record = t.record;
  CUDA_MEMCPY3D copy;
  std::memset(&copy, 0, sizeof copy);
  set_sides(copy, side_of(t.session(), record.to.address, array_of(t, &Record::to)),
            side_of(t.session(), record.from.address, array_of(t, &Record::from)));
  copy.dstPitch = record.to.pitch, copy.dstHeight = record.to.rows;
  copy.srcPitch = record.from.pitch, copy.srcHeight = record.from.rows;
  copy.dstXInBytes = record.to.x, copy.dstY = record.to.y, copy.dstZ = record.to.z;
  copy.srcXInBytes = record.from.x, copy.srcY = record.from.y, copy.srcZ = record.from.z;
  copy.WidthInBytes = record.width, copy.Height = record.height, copy.Depth = record.depth;
  return copy;
}

template <class R>
void count_texels(const Taken<R>& t) {
  const Record& copy = t.record;
  const std::uint64_t bytes = copy.width * copy.height * copy.depth;
  if (copy.from.array == 0 && t.session().in_arena(copy.from.address)) t.request.to_device = bytes;
  if (copy.to.array == 0 && t.session().in_arena(copy.to.address)) t.request.from_device = bytes;
}

}  // namespace

CUresult cuMipmappedArrayGetLevel(asked::cuMipmappedArrayGetLevel& a) { return find_part<CUmipmappedArray>(a); }
CUresult cuArrayGetPlane(asked::cuArrayGetPlane& a) { return find_part<CUarray>(a); }

CUresult cuArrayDestroy(asked::cuArrayDestroy& a) { return a.call(a.handle<CUarray>(&api::CloseRecord::id)); }
CUresult cuMipmappedArrayDestroy(asked::cuMipmappedArrayDestroy& a) {
  return a.call(a.handle<CUmipmappedArray>(&api::CloseRecord::id));
}

// Every copy with an array on a side comes as one of these two, in the driver's most general form.
CUresult cuMemcpyAtoD_v2(asked::cuMemcpyAtoD_v2& a) {
  count_texels(a);
  const CUDA_MEMCPY3D copy = texels_of(a);
  return per_thread_or<api::id_of::cuMemcpy3D_v2>(a.request, a.driver().cuMemcpy3D_v2)(&copy);
}

CUresult cuMemcpyHtoAAsync_v2(asked::cuMemcpyHtoAAsync_v2& a) {
  count_texels(a);
  const CUDA_MEMCPY3D copy = texels_of(a);
  const auto function = per_thread_or<api::id_of::cuMemcpy3DAsync_v2>(a.request, a.driver().cuMemcpy3DAsync_v2);
  return function(&copy, a.handle<CUstream>(&Record::stream));
}

}  // namespace host::calls
