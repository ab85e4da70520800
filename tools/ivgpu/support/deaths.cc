#include "tools/ivgpu/support/deaths.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "tools/ivgpu/support/error.h"

namespace ivgpu {

std::string death_of(const std::string& who, int code, int sent) {
  const int number = code - exit_code::signal_base;
  if (number <= 0 || number == sent) return {};
  const char* name = sigabbrev_np(number);
  return who + " was killed by signal " + std::to_string(number) + " (" + (name != nullptr ? name : "?") + ")";
}

std::vector<std::string> deaths_of_workers(const std::string& last_status) {
  std::vector<std::string> deaths;
  const auto status = nlohmann::json::parse(last_status, nullptr, false);
  if (!status.is_object()) return {"ivgpud did not report how its workers ended"};
  for (const auto& vm : status.at("vms"))
    for (const auto& failure : vm.at("worker_ends").at("failures"))
      deaths.push_back("a worker of VM " + vm.at("name").get<std::string>() + " " +
                       failure.at("how").get<std::string>());
  return deaths;
}

int report_deaths(int code, const std::vector<std::string>& deaths) {
  for (const std::string& death : deaths) std::fprintf(stderr, "ivgpu: %s\n", death.c_str());
  const char* strict = std::getenv("IVGPU_STRICT");
  return deaths.empty() || strict == nullptr || *strict == '\0' ? code : exit_code::died;
}

}  // namespace ivgpu
