// Tests clusters through the driver calls: the choice of the cluster size, and the sizes that are refused.
#include <string>
#include <vector>

#include "tests/unit/simgpu/api_fixture.h"

namespace {

// Each block writes out[block] = rank of the block + 100 * number of blocks in its cluster.
constexpr char body[] = R"(
{
  .reg .u32 %r<5>;
  .reg .u64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, %cluster_nctarank;
  mad.lo.u32 %r4, %r3, 100, %r2;
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r4;
  ret;
}
)";

std::string kernel(const std::string& name, const std::string& directives) {
  return ".visible .entry " + name + "(.param .u64 out)\n" + directives + body;
}

const std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n" +  //
                         kernel("plain", "") +                                //
                         kernel("of_two", ".explicitcluster\n.reqnctapercluster 2, 1, 1") +
                         kernel("of_some", ".explicitcluster") + kernel("of_four_at_most", ".maxclusterrank 4") +
                         kernel("grid_of_clusters", ".blocksareclusters\n.reqntid 32\n.reqnctapercluster 2") +
                         kernel("of_sixteen", ".reqnctapercluster 16");

class Clusters : public InContext {
 protected:
  static constexpr unsigned blocks = 8;

  void SetUp() override {
    InContext::SetUp();
    OK(cuModuleLoadData(&module_, text.c_str()));
    OK(cuMemAlloc(&out_, 4 * 64));
  }
  void TearDown() override {
    EXPECT_EQ(cuMemFree(out_), CUDA_SUCCESS);
    EXPECT_EQ(cuModuleUnload(module_), CUDA_SUCCESS);
    InContext::TearDown();
  }
  CUfunction function(const char* name) const {
    CUfunction found = nullptr;
    EXPECT_EQ(cuModuleGetFunction(&found, module_, name), CUDA_SUCCESS) << name;
    return found;
  }
  CUresult launch(const char* name, unsigned grid = blocks, unsigned block = 1) {
    void* parameters[] = {&out_};
    EXPECT_EQ(cuMemsetD32(out_, 0xffff, 64), CUDA_SUCCESS);
    return cuLaunchKernel(function(name), grid, 1, 1, block, 1, 1, 0, nullptr, parameters, nullptr);
  }
  CUresult launch_in(const char* name, unsigned x, unsigned y = 1, unsigned z = 1) {
    CUlaunchAttribute attribute{};
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {x, y, z};
    CUlaunchConfig config{};
    config.gridDimX = blocks;
    config.gridDimY = config.gridDimZ = config.blockDimX = config.blockDimY = config.blockDimZ = 1;
    config.attrs = &attribute;
    config.numAttrs = 1;
    void* parameters[] = {&out_};
    EXPECT_EQ(cuMemsetD32(out_, 0xffff, 64), CUDA_SUCCESS);
    return cuLaunchKernelEx(&config, function(name), parameters, nullptr);
  }
  void expect_clusters_of(unsigned size, unsigned count = blocks) {
    std::vector<unsigned> words(64), expected(64, 0xffff);
    OK(cuMemcpyDtoH(words.data(), out_, 4 * words.size()));
    for (unsigned k = 0; k < count; ++k) expected[k] = 100 * size + k % size;
    EXPECT_EQ(words, expected);
  }
  int attribute(const char* name, CUfunction_attribute which) const {
    int value = -1;
    EXPECT_EQ(cuFuncGetAttribute(&value, which, function(name)), CUDA_SUCCESS) << name;
    return value;
  }

  CUmodule module_ = nullptr;
  CUdeviceptr out_ = 0;
};

TEST_F(Clusters, AKernelHasTheSizeOfItsDirective) {
  OK(launch("of_two"));
  expect_clusters_of(2);
  OK(launch_in("of_two", 2));
  expect_clusters_of(2);
  EXPECT_EQ(launch_in("of_two", 4), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(launch_in("of_two", 1, 2), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(launch("of_two", 3), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  expect_clusters_of(1, 0);  // no block has run
}

TEST_F(Clusters, ALaunchChoosesTheSizeOfOthers) {
  OK(launch("plain"));
  expect_clusters_of(1);
  for (const unsigned size : {1U, 2U, 4U, 8U}) {
    OK(launch_in("plain", size));
    expect_clusters_of(size);
  }
  EXPECT_EQ(launch_in("plain", 3), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(launch_in("plain", 2, 2), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(launch_in("plain", 0), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(launch_in("plain", 65536, 65536), CUDA_ERROR_INVALID_CLUSTER_SIZE);
}

TEST_F(Clusters, AnExplicitClusterMustBeGiven) {
  EXPECT_EQ(launch("of_some"), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  OK(launch_in("of_some", 4));
  expect_clusters_of(4);
  EXPECT_EQ(attribute("of_some", CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET), 1);
  EXPECT_EQ(attribute("plain", CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET), 0);
}

TEST_F(Clusters, TheLargestSizeIsTheDirectivesOrTheDevices) {
  OK(launch_in("of_four_at_most", 4));
  expect_clusters_of(4);
  EXPECT_EQ(launch_in("of_four_at_most", 8), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(launch("of_sixteen", 16), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  OK(cuFuncSetAttribute(function("of_sixteen"), CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  OK(launch("of_sixteen", 16));
  expect_clusters_of(16, 16);
  EXPECT_EQ(cuFuncSetAttribute(function("plain"), CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 2),
            CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Clusters, AGridOfClustersCountsThem) {
  OK(launch("grid_of_clusters", 3));  // a block of one thread here: the directive says 32
  expect_clusters_of(2, 6);
  OK(launch("grid_of_clusters", 3, 32));
  expect_clusters_of(2, 6);
  EXPECT_EQ(launch("grid_of_clusters", 3, 64), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launch("grid_of_clusters", 0x7fffffff), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Clusters, AttributesReportTheSizeAndSetIt) {
  EXPECT_EQ(attribute("of_two", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH), 2);
  EXPECT_EQ(attribute("of_two", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT), 1);
  EXPECT_EQ(attribute("of_two", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH), 1);
  EXPECT_EQ(attribute("plain", CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH), 0);
  EXPECT_EQ(cuFuncSetAttribute(function("of_two"), CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 4),
            CUDA_ERROR_NOT_PERMITTED);
  const CUfunction plain = function("plain");
  OK(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 4));
  EXPECT_EQ(launch("plain"), CUDA_ERROR_INVALID_CLUSTER_SIZE) << "its height and depth are 0";
  OK(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1));
  OK(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1));
  OK(launch("plain"));
  expect_clusters_of(4);
  EXPECT_EQ(launch_in("plain", 2), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  EXPECT_EQ(cuFuncSetAttribute(plain, CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, -1), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Clusters, OccupancyCountsClusters) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim = {2, 1, 1};
  CUlaunchConfig config{};
  config.gridDimX = blocks;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 1024;  // one block fits on each of the sixteen multiprocessors
  config.attrs = &attribute;
  int count = -1;
  OK(cuOccupancyMaxActiveClusters(&count, function("plain"), &config));
  EXPECT_EQ(count, 0) << "without clusters";
  OK(cuOccupancyMaxActiveClusters(&count, function("of_two"), &config));
  EXPECT_EQ(count, 8);
  config.numAttrs = 1;
  OK(cuOccupancyMaxActiveClusters(&count, function("plain"), &config));
  EXPECT_EQ(count, 8);
  attribute.value.clusterDim = {64, 1, 1};
  EXPECT_EQ(cuOccupancyMaxActiveClusters(&count, function("plain"), &config), CUDA_ERROR_INVALID_CLUSTER_SIZE);
  OK(cuOccupancyMaxPotentialClusterSize(&count, function("plain"), &config));
  EXPECT_EQ(count, 8);
  OK(cuOccupancyMaxPotentialClusterSize(&count, function("of_four_at_most"), &config));
  EXPECT_EQ(count, 4);
}

// Refuses a block of another size than .reqntid, and a block that is larger than .maxntid.
TEST_F(Clusters, BlocksObeyTheirDirectives) {
  const std::string bounded = ".version 9.0\n.target sm_90\n.address_size 64\n" +  //
                              kernel("exact", ".reqntid 16, 2") + kernel("bounded", ".maxntid 16, 2");
  CUmodule module = nullptr;
  CUfunction exact = nullptr, most = nullptr;
  OK(cuModuleLoadData(&module, bounded.c_str()));
  OK(cuModuleGetFunction(&exact, module, "exact"));
  OK(cuModuleGetFunction(&most, module, "bounded"));
  void* parameters[] = {&out_};
  const auto launched = [&](CUfunction f, unsigned x, unsigned y) {
    return cuLaunchKernel(f, 1, 1, 1, x, y, 1, 0, nullptr, parameters, nullptr);
  };
  EXPECT_EQ(launched(exact, 16, 2), CUDA_SUCCESS);
  EXPECT_EQ(launched(exact, 32, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launched(exact, 16, 1), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(launched(most, 32, 1), CUDA_SUCCESS) << "the product counts";
  EXPECT_EQ(launched(most, 33, 1), CUDA_ERROR_INVALID_VALUE);
  OK(cuCtxSynchronize());
  OK(cuModuleUnload(module));
}

}  // namespace
