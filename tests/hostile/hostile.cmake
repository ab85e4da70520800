# A hostile guest program beside other programs. It is in the folder of the faults' program, which the guest sees.
if(TARGET faults_host)
  add_executable(hostile_program ${CMAKE_CURRENT_LIST_DIR}/program.cc)
  target_link_libraries(hostile_program PRIVATE ivgpu_guest)
  set_target_properties(hostile_program PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/test-programs/faults)

  add_executable(hostile ${CMAKE_CURRENT_LIST_DIR}/main.cc)
  set_target_properties(hostile PROPERTIES IVGPU_MERGE OFF)
  target_link_libraries(hostile PRIVATE faults_host)
  target_compile_definitions(hostile PRIVATE BUILD="${CMAKE_BINARY_DIR}" IVGPUD="$<TARGET_FILE:ivgpud>"
    PROGRAM="$<TARGET_FILE:faults_program>" HOSTILE="$<TARGET_FILE:hostile_program>"
    GUEST_CUDA="${CMAKE_BINARY_DIR}/guest/libcuda.so.1")
  add_dependencies(hostile hostile_program faults_program guest_cuda ivgpud ivgpu-worker ivgpu simgpu)

  # Malformed images. Here the simulated GPU loads them; tools/gpu-check loads them with NVIDIA's driver.
  add_executable(hostile_images ${CMAKE_CURRENT_LIST_DIR}/images.cc)
  target_link_libraries(hostile_images PRIVATE ivgpu_api ${CMAKE_DL_LIBS})
  set(images ${CMAKE_BINARY_DIR}/tests/programs/driver_api)
  add_test(NAME hostile.images
           COMMAND ${IVGPU_LIMITED} $<TARGET_FILE:ivgpu> run --private --gpu sim $<TARGET_FILE:hostile_images> libcuda.so.1 6x 1
                   ${images}/fatbin ${images}/ptx ${images}/cubin)
  set_tests_properties(hostile.images PROPERTIES LABELS faults)

  # `hostile --seconds 60` in tests/hostile runs 60 s of each part.
  add_test(NAME vm.hostile COMMAND ${IVGPU_LIMITED} $<TARGET_FILE:hostile>)
  set_tests_properties(vm.hostile PROPERTIES LABELS "vm;thorough" TIMEOUT 900 RUN_SERIAL ON FIXTURES_REQUIRED guest_image)
endif()

# Attacks during a worker's start. They run without sanitizers, since a sanitizer's run-time cannot run in the jail.
if(TARGET simgpu AND NOT IVGPU_SANITIZE)
  add_executable(hostile_starting_test ${CMAKE_CURRENT_LIST_DIR}/starting_test.cc)
  target_link_libraries(hostile_starting_test PRIVATE ivgpu_ring ivgpu_options GTest::gtest_main Threads::Threads)
  target_compile_definitions(hostile_starting_test PRIVATE IVGPUD="$<TARGET_FILE:ivgpud>"
    IVGPU="$<TARGET_FILE:ivgpu>" FAKE_WORKER="$<TARGET_FILE:ivgpu-worker>" SIMULATED_GPU="$<TARGET_FILE:simgpu>")
  add_dependencies(hostile_starting_test ivgpu ivgpud ivgpu-worker simgpu)
  ivgpu_discover(hostile_starting_test LABELS unit)
endif()

# A subverted worker that abuses the descriptors that it shares with the broker.
if(TARGET simgpu AND NOT IVGPU_SANITIZE)
  add_executable(hostile_descriptors_test ${CMAKE_CURRENT_LIST_DIR}/descriptors_test.cc)
  target_link_libraries(hostile_descriptors_test PRIVATE ivgpu_ring ivgpu_options GTest::gtest_main Threads::Threads)
  target_compile_definitions(hostile_descriptors_test PRIVATE IVGPUD="$<TARGET_FILE:ivgpud>" IVGPU="$<TARGET_FILE:ivgpu>"
    FAKE_WORKER="$<TARGET_FILE:ivgpu-worker>" FAKE_ONE="$<TARGET_FILE:broker_fake_worker>"
    SIMULATED_GPU="$<TARGET_FILE:simgpu>")
  add_dependencies(hostile_descriptors_test ivgpu ivgpud ivgpu-worker broker_fake_worker simgpu)
  ivgpu_discover(hostile_descriptors_test LABELS unit)
endif()

# Measures how one VM can affect another VM's time, and therefore runs alone. Prints the table of docs/threat-model.md.
if(TARGET flood AND TARGET hostile_program)
  find_package(nlohmann_json REQUIRED)
  add_executable(attacks_test ${CMAKE_CURRENT_LIST_DIR}/attacks_test.cc)
  target_link_libraries(attacks_test PRIVATE ivgpu_ring ivgpu_options GTest::gtest_main nlohmann_json::nlohmann_json
                                             Threads::Threads)
  target_compile_definitions(attacks_test PRIVATE IVGPU="$<TARGET_FILE:ivgpu>" IVGPUD="$<TARGET_FILE:ivgpud>"
    FAKE_WORKER="$<TARGET_FILE:ivgpu-worker>" PROGRAM="$<TARGET_FILE:faults_program>" FLOOD="$<TARGET_FILE:flood>"
    HOSTILE="$<TARGET_FILE:hostile_program>" SIMULATED_GPU="$<TARGET_FILE:simgpu>"
    GUEST_CUDA="${CMAKE_BINARY_DIR}/guest/libcuda.so.1")
  add_dependencies(attacks_test hostile_program faults_program flood guest_cuda ivgpu ivgpud ivgpu-worker simgpu)
  ivgpu_discover(attacks_test THOROUGH PREFIX hostile. LABELS faults PROPERTIES RUN_SERIAL ON)
endif()
