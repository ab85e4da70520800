# Tests of the broker, the worker's start and the jail.
add_executable(jail_test ${CMAKE_CURRENT_LIST_DIR}/jail/jail_test.cc ${CMAKE_CURRENT_LIST_DIR}/jail/client_test.cc)
target_link_libraries(jail_test PRIVATE ivgpu_jail GTest::gtest_main)
ivgpu_discover(jail_test SANITIZED LABELS unit)

add_executable(broker_fake_worker ${CMAKE_CURRENT_LIST_DIR}/broker/fake_worker.cc)
target_link_libraries(broker_fake_worker PRIVATE ivgpu_worker_start)

add_library(broker_fake_nvml SHARED ${CMAKE_CURRENT_LIST_DIR}/broker/fake_nvml.cc)
target_link_libraries(broker_fake_nvml PRIVATE ivgpu_options)

add_library(broker_vsock_by_unix SHARED ${CMAKE_CURRENT_LIST_DIR}/broker/vsock_by_unix.cc)
target_link_libraries(broker_vsock_by_unix PRIVATE ivgpu_options ${CMAKE_DL_LIBS})

find_program(IVGPU_QEMU NAMES qemu-system-x86_64 qemu HINTS ENV IVGPU_BUNDLE REQUIRED)
# The brokers of these tests use the simulated GPU's library.
set(with_simulated_gpu drop_ins facts gpus memory mps mps_connect_proxy mps_restart placement reload)
foreach(name parts config drop_ins facts gpus gpu_presence managed_memory memory placement metrics mps mps_connect_proxy mps_restart pins plain pmem reload restart restart_paths restart_sockets restart_vsock result server service sessions signal_watch slots start_check start_pace worker worker_history status top trace vsock)
  add_executable(broker_${name}_test ${CMAKE_CURRENT_LIST_DIR}/broker/${name}_test.cc)
  target_link_libraries(broker_${name}_test PRIVATE ivgpu_broker GTest::gtest_main)
  target_compile_definitions(broker_${name}_test PRIVATE IVGPUD="$<TARGET_FILE:ivgpud>"
                                                         FAKE_WORKER="$<TARGET_FILE:broker_fake_worker>"
                                                         IVGPU="$<TARGET_FILE:ivgpu>" QEMU="${IVGPU_QEMU}"
                                                         NVML="$<TARGET_FILE:ivgpu-nvml>"
                                                         VSOCK_BY_UNIX="$<TARGET_FILE:broker_vsock_by_unix>"
                                                         FAKE_NVML="$<TARGET_FILE:broker_fake_nvml>"
                                                         MPS_SUPERVISOR="$<TARGET_FILE:ivgpu-mps>"
                                                         FAKE_MPS="${CMAKE_SOURCE_DIR}/tests/fake/nvidia-cuda-mps-control")
  add_dependencies(broker_${name}_test ivgpud broker_fake_worker ivgpu ivgpu-nvml ivgpu-mps broker_fake_nvml broker_vsock_by_unix)
  set(where SANITIZED)
  if(name IN_LIST with_simulated_gpu)
    set(where)
    add_dependencies(broker_${name}_test simgpu)
  endif()
  ivgpu_discover(broker_${name}_test ${where} LABELS unit)
endforeach()
# Otherwise it is part of ivgpu-nvml.
target_sources(broker_managed_memory_test PRIVATE ${CMAKE_SOURCE_DIR}/host/broker/gpu/managed_memory.cc)
add_dependencies(broker_reload_test guest_cuda ivgpu-worker)  # `ivgpu run` uses these targets

# A sanitizer's run-time cannot run in the jail.
if(NOT IVGPU_SANITIZE)
  add_executable(worker_start_test ${CMAKE_CURRENT_LIST_DIR}/worker/start_test.cc)
  target_link_libraries(worker_start_test PRIVATE ivgpu_worker_start GTest::gtest_main)
  ivgpu_discover(worker_start_test LABELS unit)
endif()
