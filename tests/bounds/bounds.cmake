# A program that floods its worker. It runs without sanitizers, since a sanitizer's run-time has its own memory, which
# would be measured as well.
if(TARGET simgpu AND NOT IVGPU_SANITIZE)
  add_executable(flood ${CMAKE_CURRENT_LIST_DIR}/flood.cc)
  target_link_libraries(flood PRIVATE ivgpu_api ${CMAKE_DL_LIBS})

  # tools/gpu-check runs `spinners` on a machine with a GPU.
  add_executable(spinners ${CMAKE_CURRENT_LIST_DIR}/spinners.cc)
  target_link_libraries(spinners PRIVATE ivgpu_api ivgpu_options Threads::Threads ${CMAKE_DL_LIBS})

  add_executable(bounds_test ${CMAKE_CURRENT_LIST_DIR}/bounds_test.cc)
  target_link_libraries(bounds_test PRIVATE ivgpu_ring ivgpu_options GTest::gtest_main Threads::Threads)
  target_compile_definitions(bounds_test PRIVATE
    IVGPU="$<TARGET_FILE:ivgpu>" IVGPUD="$<TARGET_FILE:ivgpud>" FAKE_WORKER="$<TARGET_FILE:ivgpu-worker>" FLOOD="$<TARGET_FILE:flood>"
    LIBRARY="$<TARGET_FILE:simgpu>" GUEST_CUDA="${CMAKE_BINARY_DIR}/guest/libcuda.so.1")
  add_dependencies(bounds_test flood simgpu guest_cuda ivgpu ivgpud ivgpu-worker)
  ivgpu_discover(bounds_test LABELS jail)

  # Tests control groups of version 2, in a guest that acts as host.
  add_test(NAME vm.bounds COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/../vm/bounds.sh ${CMAKE_BINARY_DIR})
  set_tests_properties(vm.bounds PROPERTIES LABELS "vm;thorough" FIXTURES_REQUIRED guest_image)
endif()
