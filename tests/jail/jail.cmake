# Tests the jail from inside, with a worker whose driver misbehaves. The tests run without sanitizers, since a
# sanitizer's run-time cannot run in the jail.
if(TARGET simgpu AND NOT IVGPU_SANITIZE)
  # The library is beside the simulated GPU: a worker's jail opens the folder of its driver, and this driver needs the
  # simulated GPU.
  add_library(misbehaving_driver SHARED ${CMAKE_CURRENT_LIST_DIR}/misbehaving_driver.cc
                                        ${CMAKE_CURRENT_LIST_DIR}/attempts.cc)
  target_link_libraries(misbehaving_driver PRIVATE simgpu ivgpu_api)
  set_target_properties(misbehaving_driver PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/simgpu
    BUILD_RPATH "$ORIGIN"
    BUILD_RPATH_USE_ORIGIN ON)

  add_executable(jail_program ${CMAKE_CURRENT_LIST_DIR}/program.cc)
  target_link_libraries(jail_program PRIVATE ivgpu_api ${CMAKE_DL_LIBS})

  add_executable(jail_holds_test ${CMAKE_CURRENT_LIST_DIR}/jail_holds_test.cc)
  target_link_libraries(jail_holds_test PRIVATE ivgpu_ring ivgpu_options GTest::gtest_main Threads::Threads)
  target_compile_definitions(jail_holds_test PRIVATE
    IVGPU="$<TARGET_FILE:ivgpu>" IVGPUD="$<TARGET_FILE:ivgpud>" FAKE_WORKER="$<TARGET_FILE:ivgpu-worker>" PROGRAM="$<TARGET_FILE:jail_program>"
    FAKE_MPS="${CMAKE_SOURCE_DIR}/tests/fake/nvidia-cuda-mps-control"
    DRIVER="$<TARGET_FILE:misbehaving_driver>" GUEST_CUDA="${CMAKE_BINARY_DIR}/guest/libcuda.so.1")
  add_dependencies(jail_holds_test jail_program misbehaving_driver guest_cuda ivgpu ivgpud ivgpu-worker)
  # A broker that shares a GPU reserves the GPU's name on the machine, and all these brokers use the simulated GPU.
  ivgpu_discover(jail_holds_test LABELS jail PROPERTIES RESOURCE_LOCK gpu_name COST 100)

  # tools/dev/record-ioctls preloads this library into a worker.
  add_library(ioctl_recorder SHARED ${CMAKE_CURRENT_LIST_DIR}/ioctl_recorder.cc)
  target_link_libraries(ioctl_recorder PRIVATE ivgpu_options)
  add_executable(every_device ${CMAKE_CURRENT_LIST_DIR}/every_device.cc)
  target_link_libraries(every_device PRIVATE ivgpu_api ${CMAKE_DL_LIBS})
  add_executable(ioctl_probe ${CMAKE_CURRENT_LIST_DIR}/ioctl_probe.cc)
  target_link_libraries(ioctl_probe PRIVATE ivgpu_options)
  add_test(NAME jail.ioctl_recorder
           COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/ioctl_recorder.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  set_tests_properties(jail.ioctl_recorder PROPERTIES LABELS jail)
endif()
