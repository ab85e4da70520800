# Unit tests of the simulated GPU's engine. Some run kernels from nvcc, in both dialects that it emits.
set(simgpu_kernels ${CMAKE_CURRENT_BINARY_DIR}/kernels)
file(MAKE_DIRECTORY ${simgpu_kernels})
set(simgpu_ptx)
foreach(arch 75 90 120)
  set(output ${simgpu_kernels}/simgpu_basic_${arch}.ptx)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${IVGPU_NVCC} -std=c++17 -ptx -arch=compute_${arch} -o ${output}
            ${CMAKE_CURRENT_LIST_DIR}/simgpu/kernels/simgpu_basic.cu
    DEPENDS ${CMAKE_CURRENT_LIST_DIR}/simgpu/kernels/simgpu_basic.cu
    COMMENT "PTX of simgpu_basic.cu for compute_${arch}"
    VERBATIM)
  list(APPEND simgpu_ptx ${output})
endforeach()
add_custom_target(simgpu_test_ptx DEPENDS ${simgpu_ptx})

unit_test(simgpu_ptx_test LIBRARIES simgpu_engine SOURCES simgpu/ptx_test.cc)

unit_test(simgpu_vm_test LIBRARIES simgpu_engine
          SOURCES simgpu/async_test.cc simgpu/cluster_test.cc simgpu/flow_test.cc simgpu/kernels_test.cc
                  simgpu/matrix_test.cc simgpu/memory_test.cc simgpu/nan_test.cc simgpu/stack_test.cc)
target_compile_definitions(simgpu_vm_test PRIVATE IVGPU_TEST_KERNELS="${simgpu_kernels}")
add_dependencies(simgpu_vm_test simgpu_test_ptx)

# Textures and surfaces: the sampler alone, and the instructions.
unit_test(simgpu_texture_test LIBRARIES simgpu_engine
          SOURCES simgpu/cube_test.cc simgpu/sampler_test.cc simgpu/surface_test.cc simgpu/texture_table_test.cc
                  simgpu/texture_test.cc)

unit_test(simgpu_schedule_test SANITIZED TSAN LIBRARIES ivgpu_boost
          SOURCES simgpu/schedule_test.cc ../../host/simgpu/api/stream/schedule.cc)

unit_test(simgpu_process_memory_test LIBRARIES simgpu_engine
          SOURCES simgpu/process_memory_test.cc ../../host/simgpu/api/memory/process_memory.cc)

# Benchmarks, no tests.
find_package(benchmark REQUIRED)
add_executable(simgpu_bench EXCLUDE_FROM_ALL ${CMAKE_CURRENT_SOURCE_DIR}/bench/simgpu_bench.cc)
target_compile_options(simgpu_bench PRIVATE ${IVGPU_OPTIMISED})
target_link_libraries(simgpu_bench PRIVATE simgpu_engine ivgpu_options benchmark::benchmark)
set(bench ${CMAKE_CURRENT_SOURCE_DIR}/bench)
add_executable(handover_bench EXCLUDE_FROM_ALL
  ${bench}/handover_bench.cc ${bench}/handover_callbacks.cc ${bench}/handover_ids.cc
  ${CMAKE_SOURCE_DIR}/host/simgpu/api/stream/schedule.cc)
target_compile_options(handover_bench PRIVATE ${IVGPU_OPTIMISED})
target_link_libraries(handover_bench PRIVATE ivgpu_boost ivgpu_guest ivgpu_untrusted simgpu_engine ivgpu_options
                                             benchmark::benchmark)
