# Tests `ivgpu trace` from end to end: a program that nvcc built, on the simulated GPU, traced from its first call.
# Labelled programs.
find_package(nlohmann_json REQUIRED)
add_executable(trace_test ${CMAKE_CURRENT_LIST_DIR}/trace_test.cc)
target_link_libraries(trace_test PRIVATE ivgpu_ring ivgpu_options nlohmann_json::nlohmann_json GTest::gtest_main
                                         Threads::Threads)
target_compile_definitions(trace_test PRIVATE
  IVGPU="$<TARGET_FILE:ivgpu>" IVGPUD="$<TARGET_FILE:ivgpud>" FAKE_WORKER="$<TARGET_FILE:ivgpu-worker>"
  SIMULATED_GPU="${CMAKE_BINARY_DIR}/simgpu/libcuda.so.1" PROGRAM="${CMAKE_BINARY_DIR}/programs/vector_add")
add_dependencies(trace_test ivgpu ivgpud ivgpu-worker guest_cuda simgpu)
ivgpu_discover(trace_test PREFIX programs. LABELS programs)
