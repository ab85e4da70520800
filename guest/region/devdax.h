// The region in a VM whose device is persistent memory (an NVDIMM or virtio-pmem). This process opens a devdax device
// of the guest's kernel, which maps the memory itself. /dev/pmemN would map copies in the page cache.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "guest/region/vsock.h"

namespace guest {

class Region;
enum class Doorbells : std::uint8_t;  // defined in guest/region/region.h

// The folders of the devices; tests use folders of their own.
struct DevdaxPlaces {
  std::string devices = "/sys/bus/dax/devices", ports = "/sys/class/virtio-ports", nodes = "/dev";
  Dial dial = dial_host;
};

// Opens the first devdax device that carries our magic. Returns null if there is none. `why` then is "" if there is no
// devdax device at all; otherwise one sentence with the remedy.
std::unique_ptr<Region> open_devdax(const DevdaxPlaces& places, std::string& why, Doorbells doorbells);

}  // namespace guest
