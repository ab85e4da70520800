// Cases for devices: ordinals, names, identifiers, attributes, peers.
#include "tests/contract/suite.h"

namespace contract {
namespace {

GROUP(devices, InContext) {
  CUdevice of = 0;
  int value = 0;
  char text[64];
  show("cuDeviceGet", CU(cuDeviceGet)(&of, 0));
  show("cuDeviceGet 99", CU(cuDeviceGet)(&of, 99));
  show("cuDeviceGet -1", CU(cuDeviceGet)(&of, -1));
  show("cuDeviceGet null", CU(cuDeviceGet)(nullptr, 0));
  show("cuDeviceGetCount null", CU(cuDeviceGetCount)(nullptr));
  show("cuDeviceGetName null", CU(cuDeviceGetName)(nullptr, 10, device));
  show("cuDeviceGetName length 4", CU(cuDeviceGetName)(text, 4, device));
  show("cuDeviceGetName device 99", CU(cuDeviceGetName)(text, 64, 99));
  show("attribute 0", CU(cuDeviceGetAttribute)(&value, odd<CUdevice_attribute>(0), device));
  show("attribute 147", CU(cuDeviceGetAttribute)(&value, odd<CUdevice_attribute>(147), device));
  show("attribute 148", CU(cuDeviceGetAttribute)(&value, odd<CUdevice_attribute>(148), device));
  show("attribute null", CU(cuDeviceGetAttribute)(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, device));
  show("attribute device 99", CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
  show("unknown attribute, device 99", CU(cuDeviceGetAttribute)(&value, odd<CUdevice_attribute>(999), 99));
  show("cuDeviceGetByPCIBusId nonsense", CU(cuDeviceGetByPCIBusId)(&of, "nonsense"));
  show("cuDeviceGetByPCIBusId absent", CU(cuDeviceGetByPCIBusId)(&of, "0000:fe:1f.0"));
  show("cuDeviceCanAccessPeer itself", CU(cuDeviceCanAccessPeer)(&value, device, device));
  show("cuDeviceCanAccessPeer itself, answer", value);
  show("P2P attribute of itself",
       CU(cuDeviceGetP2PAttribute)(&value, CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED, device, device));
}

GROUP(device_identity, Initialized) {
  char text[64] = "";
  char bus[32] = "";
  CUuuid first{}, second{};
  std::size_t bytes = 0;
  int count = 0, major = 0, minor = 0, value = 0;
  CUdevice found = 7;
  show("cuDeviceGetCount", CU(cuDeviceGetCount)(&count));
  show_flag("at least one", count >= 1);
  show("cuDeviceGetName", CU(cuDeviceGetName)(text, sizeof text, device));
  show_flag("it has a name", text[0] != '\0');
  // NVIDIA's driver treats a length of 0 as unlimited, and fills all available memory with zeros.
  show_guarded("cuDeviceGetName length 0", [&] { return CU(cuDeviceGetName)(fenced(64), 0, device); });
  show("cuDeviceGetName length 4", CU(cuDeviceGetName)(text, 4, device));
  show("characters of it", static_cast<long long>(std::strlen(text)));
  show("cuDeviceGetUuid", CU(cuDeviceGetUuid)(&first, device));
  show("cuDeviceGetUuid_v2", CU(cuDeviceGetUuid_v2)(&second, device));
  show_flag("they are one", std::memcmp(&first, &second, sizeof first) == 0);
  show("cuDeviceGetUuid null", CU(cuDeviceGetUuid)(nullptr, device));
  show("cuDeviceGetUuid_v2 null", CU(cuDeviceGetUuid_v2)(nullptr, device));
  show("cuDeviceGetUuid device 99", CU(cuDeviceGetUuid)(&first, 99));
  show("cuDeviceGetUuid_v2 device 99", CU(cuDeviceGetUuid_v2)(&first, 99));
  show("cuDeviceTotalMem", CU(cuDeviceTotalMem_v2)(&bytes, device));
  show_flag("it has some", bytes > 1 << 20);
  show("cuDeviceTotalMem null", CU(cuDeviceTotalMem_v2)(nullptr, device));
  show("cuDeviceTotalMem device 99", CU(cuDeviceTotalMem_v2)(&bytes, 99));
  show("cuDeviceTotalMem null, device 99", CU(cuDeviceTotalMem_v2)(nullptr, 99));
  show("cuDeviceComputeCapability", CU(cuDeviceComputeCapability)(&major, &minor, device));
  CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  show_flag("the attribute's major number", major == value);
  show("cuDeviceComputeCapability null", CU(cuDeviceComputeCapability)(nullptr, nullptr, device));
  show("cuDeviceComputeCapability major only", CU(cuDeviceComputeCapability)(&major, nullptr, device));
  show("cuDeviceComputeCapability device 99", CU(cuDeviceComputeCapability)(&major, &minor, 99));
  show("cuDeviceGetPCIBusId", CU(cuDeviceGetPCIBusId)(bus, sizeof bus, device));
  show("its length", static_cast<long long>(std::strlen(bus)));
  show("cuDeviceGetByPCIBusId", CU(cuDeviceGetByPCIBusId)(&found, bus));
  show("that device", found);
}

GROUP(device_bus, Initialized) {
  char bus[32] = "";
  CUdevice found = 7;
  CU(cuDeviceGetPCIBusId)(bus, sizeof bus, device);
  const std::string whole = bus;
  show("cuDeviceGetPCIBusId null", CU(cuDeviceGetPCIBusId)(nullptr, 32, device));
  show_guarded("cuDeviceGetPCIBusId length 0", [&] { return CU(cuDeviceGetPCIBusId)(fenced(32), 0, device); });
  show("cuDeviceGetPCIBusId length 12", CU(cuDeviceGetPCIBusId)(bus, 12, device));
  show("cuDeviceGetPCIBusId length 13", CU(cuDeviceGetPCIBusId)(bus, 13, device));
  show("cuDeviceGetPCIBusId device 99", CU(cuDeviceGetPCIBusId)(bus, 32, 99));
  show("cuDeviceGetByPCIBusId null", CU(cuDeviceGetByPCIBusId)(nullptr, whole.c_str()));
  show("cuDeviceGetByPCIBusId no id", CU(cuDeviceGetByPCIBusId)(&found, nullptr));
  show("cuDeviceGetByPCIBusId empty", CU(cuDeviceGetByPCIBusId)(&found, ""));
  show("without the domain", CU(cuDeviceGetByPCIBusId)(&found, whole.c_str() + 5));
  show("without the function", CU(cuDeviceGetByPCIBusId)(&found, whole.substr(0, whole.size() - 2).c_str()));
  show("with a tail", CU(cuDeviceGetByPCIBusId)(&found, (whole + "x").c_str()));
}

GROUP(device_peers, Initialized) {
  int value = 7;
  CUdevice found = 7;
  show("cuDeviceCanAccessPeer null", CU(cuDeviceCanAccessPeer)(nullptr, device, device));
  show("cuDeviceCanAccessPeer device 99", CU(cuDeviceCanAccessPeer)(&value, 99, device));
  show("cuDeviceCanAccessPeer peer 99", CU(cuDeviceCanAccessPeer)(&value, device, 99));
  show("cuDeviceGet null, ordinal 99", CU(cuDeviceGet)(nullptr, 99));
  show("cuDeviceGet twice", CU(cuDeviceGet)(&found, 0));
  show("it is", found);
  show("attribute -1", CU(cuDeviceGetAttribute)(&value, odd<CUdevice_attribute>(-1), device));
  show("attribute null, device 99", CU(cuDeviceGetAttribute)(nullptr, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
  show("attribute device -1", CU(cuDeviceGetAttribute)(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1));
}

}  // namespace
}  // namespace contract
