# kill -9 of random processes, round after round. Most rounds run on this machine; the rounds with a VM boot it twice.
if(TARGET simgpu AND NOT IVGPU_SANITIZE)
  find_package(nlohmann_json REQUIRED)

  # The program has its own folder, since the guest sees all files of that folder.
  add_executable(faults_program ${CMAKE_CURRENT_LIST_DIR}/program.cc)
  target_link_libraries(faults_program PRIVATE ivgpu_api ${CMAKE_DL_LIBS})
  set_target_properties(faults_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test-programs/faults)

  add_library(faults_host STATIC ${CMAKE_CURRENT_LIST_DIR}/host.cc ${CMAKE_CURRENT_LIST_DIR}/program_run.cc
                                 ${CMAKE_CURRENT_LIST_DIR}/vm.cc)
  target_link_libraries(faults_host PUBLIC ivgpu_tools nlohmann_json::nlohmann_json)

  add_executable(faults ${CMAKE_CURRENT_LIST_DIR}/main.cc)
  set_target_properties(faults PROPERTIES IVGPU_MERGE OFF)
  target_link_libraries(faults PRIVATE faults_host)
  target_compile_definitions(faults PRIVATE BUILD="${CMAKE_BINARY_DIR}" IVGPUD="$<TARGET_FILE:ivgpud>"
    PROGRAM="$<TARGET_FILE:faults_program>" GUEST_CUDA="${CMAKE_BINARY_DIR}/guest/libcuda.so.1")
  add_dependencies(faults faults_program guest_cuda ivgpud ivgpu-worker ivgpu simgpu)

  add_executable(faults_oracle_test ${CMAKE_CURRENT_LIST_DIR}/oracle_test.cc)
  target_link_libraries(faults_oracle_test PRIVATE faults_host GTest::gtest_main)
  target_compile_definitions(faults_oracle_test PRIVATE BUILD="${CMAKE_BINARY_DIR}" IVGPUD="$<TARGET_FILE:ivgpud>"
    PROGRAM="$<TARGET_FILE:faults_program>" GUEST_CUDA="${CMAKE_BINARY_DIR}/guest/libcuda.so.1")
  add_dependencies(faults_oracle_test faults_program guest_cuda ivgpud ivgpu-worker simgpu)
  ivgpu_discover(faults_oracle_test THOROUGH PREFIX faults. LABELS faults PROPERTIES RUN_SERIAL ON)

  add_executable(faults_restart_test ${CMAKE_CURRENT_LIST_DIR}/restart_test.cc)
  target_link_libraries(faults_restart_test PRIVATE faults_host ivgpu_api ivgpu_ring GTest::gtest_main)
  target_compile_definitions(faults_restart_test PRIVATE IVGPUD="$<TARGET_FILE:ivgpud>" IVGPU="$<TARGET_FILE:ivgpu>"
    FAKE_WORKER="" BUILD="${CMAKE_BINARY_DIR}" PROGRAM="$<TARGET_FILE:faults_program>" GUEST_CUDA="${CMAKE_BINARY_DIR}/guest/libcuda.so.1")
  add_dependencies(faults_restart_test faults_program guest_cuda ivgpud ivgpu-worker ivgpu simgpu)
  ivgpu_discover(faults_restart_test THOROUGH PREFIX faults. LABELS faults PROPERTIES RUN_SERIAL ON FIXTURES_REQUIRED guest_image)

  add_test(NAME faults.loopback COMMAND ${IVGPU_LIMITED} $<TARGET_FILE:faults> --vm-rounds 0)
  add_test(NAME faults.vm COMMAND ${IVGPU_LIMITED} $<TARGET_FILE:faults> --rounds 0)
  # These tests run alone, since they count the files in /dev/shm.
  set_tests_properties(faults.loopback faults.vm PROPERTIES LABELS "faults;thorough" TIMEOUT 900 RUN_SERIAL ON)
  set_tests_properties(faults.vm PROPERTIES FIXTURES_REQUIRED guest_image)
endif()
