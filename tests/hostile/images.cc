// Loads randomly changed images through any libcuda, in one process after another, each with its own session. We cannot
// fix NVIDIA's compilers and loaders, so a worker may die of an image. In that case only the worker's own program may
// get an error. A program may also crash on its own image, natively and with ivgpu: a load passes no length, so the
// library has to find the image's size. An endless compilation may block only its own session.
//
// usage: hostile_images LIBCUDA BOUND SEED IMAGE...
// bound.h explains BOUND; a round is a process. IMAGE is a file: a cubin, a fat binary, PTX. Prints the numbers of
// loaded and refused images and of ended sessions. Exit codes: 0; 1: a process ended in another way, or a kind of image
// was never tried; 2: usage.
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "tests/hostile/bound.h"
#include "tests/named_driver.h"

namespace {

using Image = std::vector<char>;

constexpr int images_per_process = 200;
constexpr unsigned patience_s = 60;  // seconds per process: a compiler may be slow, or never end

enum class Told : std::size_t { Loaded, Refused, Lost, Fell, Hung, Count };
using Counts = std::array<unsigned, static_cast<std::size_t>(Told::Count)>;

// Changes a few bytes, mostly in the first pages with headers and tables; or truncates the image; or does both.
Image changed(Image image, std::mt19937_64& random) {
  const std::size_t near_by = std::min<std::size_t>(image.size(), 4096);
  for (auto changes = 1 + random() % 16; changes > 0; --changes) {
    const std::size_t at = random() % (random() % 4 != 0 ? near_by : image.size());
    image[at] = random() % 2 != 0 ? static_cast<char>(random()) : static_cast<char>(image[at] ^ (1 << random() % 8));
  }
  if (random() % 8 == 0) image.resize(1 + random() % image.size());
  return image;
}

// Memory for an image. A load passes no length, so the driver trusts the image's headers. Zeros therefore follow the
// image as far as a header may claim.
class Place {
 public:
  const void* put(const Image& image) {
    madvise(at_, before_, MADV_DONTNEED);
    std::memcpy(at_, image.data(), image.size());
    before_ = image.size();
    return at_;
  }

 private:
  static constexpr std::size_t room = std::size_t{64} << 30;
  void* const at_ = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  std::size_t before_ = 0;
};

// Loads the image and looks up functions, since some drivers read parts of an image only at a lookup.
Told load(const void* image) {
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  const CUresult result = CU(cuModuleLoadData)(&module, image);
  if (result == CUDA_ERROR_DEVICE_UNAVAILABLE) return Told::Lost;
  if (result != CUDA_SUCCESS) return Told::Refused;
  for (const char* name : {"many_parameters", "large_parameters"}) CU(cuModuleGetFunction)(&function, module, name);
  return CU(cuModuleUnload)(module) == CUDA_ERROR_DEVICE_UNAVAILABLE ? Told::Lost : Told::Loaded;
}

[[noreturn]] void one_process(const char* path, const std::vector<Image>& images, unsigned long seed, int report) {
  alarm(patience_s);
  CUcontext context = nullptr;
  if (open_library(path) == nullptr || CU(cuInit)(0) != CUDA_SUCCESS ||
      CU(cuDevicePrimaryCtxRetain)(&context, 0) != CUDA_SUCCESS || CU(cuCtxSetCurrent)(context) != CUDA_SUCCESS)
    _exit(2);
  std::mt19937_64 random(seed);
  Place place;
  for (int i = 0; i < images_per_process; ++i) {
    const Told told = load(place.put(changed(images[random() % images.size()], random)));
    if (write(report, &told, sizeof told) != sizeof told || told == Told::Lost) break;
  }
  _exit(0);
}

// False if the process did not exit by itself.
bool run_process(const char* path, const std::vector<Image>& images, unsigned long seed, Counts& counts) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  const pid_t child = fork();
  if (child == 0) one_process(path, images, seed, ends[1]);
  close(ends[1]);
  for (Told told; read(ends[0], &told, sizeof told) == sizeof told;) ++counts[static_cast<std::size_t>(told)];
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return ++counts[static_cast<std::size_t>(Told::Hung)], true;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV) return ++counts[static_cast<std::size_t>(Told::Fell)], true;
  std::printf("seed %lu: the process ended with %s %d\n", seed, WIFEXITED(status) ? "code" : "signal",
              WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  std::vector<Image> images;
  for (int i = 4; i < argc; ++i) {
    std::ifstream file(argv[i], std::ios::binary);
    images.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    if (images.back().empty()) return std::fprintf(stderr, "hostile_images: %s holds nothing\n", argv[i]), 2;
  }
  unsigned long seed = std::strtoul(argv[3], nullptr, 10);
  Counts counts{};
  bool good = true;
  for (hostile::Bound bound(argv[2]); good && !bound.is_over(); bound.round_over())
    good = run_process(argv[1], images, seed++, counts);
  std::printf("images: %u loaded, %u refused, %u sessions lost, %u programs fell over their own, %u hung\n", counts[0],
              counts[1], counts[2], counts[3], counts[4]);
  return good && counts[0] + counts[1] > 0 ? 0 : 1;
}
