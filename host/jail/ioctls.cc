#include "host/jail/ioctls.h"

#include <fstream>
#include <regex>

namespace host::jail {

std::string kernel_driver(const std::string& version_file) {
  std::ifstream file(version_file);
  std::string line;
  std::getline(file, line);
  std::smatch found;
  static const std::regex version(R"(Kernel Module.*?\s(\d+\.\d+(\.\d+)?)\s)");
  return std::regex_search(line, found, version) ? found[1].str() : "";
}

Choice choose_requests(bool device_files, bool any_wanted, const std::string& driver, std::uint32_t gpus) {
  if (!device_files) return {Requests::None, {}};
  if (any_wanted) return {Requests::Any, {}};
  if (driver.empty()) return {Requests::Listed, {}};
  if (driver == recorded_driver && gpus > recorded_gpus)
    return {Requests::Any, "a list of what so many GPUs in one session need (it was recorded with " +
                               std::to_string(recorded_gpus) + ": give the VM no more by the key gpus, run " +
                               "tools/dev/record-ioctls, or set jail_ioctls = \"any\")"};
  if (driver == recorded_driver) return {Requests::Listed, {}};
  return {Requests::Any, "a list of this driver's ioctls (it is driver " + std::string(recorded_driver) +
                             "'s, this is " + driver + ": run tools/dev/record-ioctls, or set jail_ioctls = \"any\")"};
}

}  // namespace host::jail
