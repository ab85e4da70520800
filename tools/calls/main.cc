// Prints docs/calls.md: every entry point of the table and how it is answered. A test holds the page to this.
#include <cstdio>
#include <string>
#include <vector>

namespace {

struct Line {
  const char* symbol;
  int since;
  std::string how;
};

std::string order_text(const std::string& order) {
  if (order == "null") return ", as on the NULL stream";
  if (order == "all") return ", after every posted call";
  return "";
}

std::vector<Line> lines() {
  std::vector<Line> all;
#define CALL(id, fn, since, way, order, ...) all.push_back({#fn, since, std::string(#way) + order_text(#order)});
#define CUSTOM(id, fn, since, way, order) \
  all.push_back({#fn, since, std::string(#way) + ", own code" + order_text(#order)});
#define LOCAL(fn, since) all.push_back({#fn, since, "Local"});
#define VARIANT(fn, since, of) all.push_back({#fn, since, "as `" #of "`"});
#define ABSENT(fn, since, why) all.push_back({#fn, since, std::string("refused: ") + why});
#include "ring/api/driver.def"
  return all;
}

}  // namespace

int main() {
  const std::vector<Line> all = lines();
  int served = 0;
  for (const Line& l : all) served += l.how.rfind("refused", 0) != 0;
  std::printf(
      "# Calls\n\nEvery entry point of cuda.h 13.0 and of its profiler header, made from `ring/api/driver.def` by ");
  std::printf("`tools/calls`. %d of %zu are served.\n\n", served, all.size());
  std::printf(
      "Local: answered in the guest. Posted: a record without a reply. Waited: a record and its reply. What is "
      "refused ");
  std::printf("returns CUDA_ERROR_NOT_SUPPORTED, and cuGetProcAddress does not know it.\n\n");
  std::printf("| entry point | since CUDA | answered |\n|---|---|---|\n");
  for (const Line& l : all)
    std::printf("| `%s` | %d.%d | %s |\n", l.symbol, l.since / 1000, l.since % 1000 / 10, l.how.c_str());
}
