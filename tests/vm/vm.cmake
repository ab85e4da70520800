# Tests that boot a guest in QEMU.
find_program(IVGPU_QEMU NAMES qemu-system-x86_64 qemu HINTS ENV IVGPU_BUNDLE REQUIRED)
# The first guest of a build tree downloads its kernel and reports that; later guests reuse the kernel.
add_test(NAME vm.image COMMAND ${IVGPU_LIMITED} ${CMAKE_BINARY_DIR}/bin/ivgpu vm --gpu sim --timeout 280 -- true)
set_tests_properties(vm.image PROPERTIES LABELS vm COST 300 FIXTURES_SETUP guest_image)
add_test(NAME vm.programs COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/programs.sh ${CMAKE_BINARY_DIR})
add_test(NAME vm.command COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/command.sh ${CMAKE_BINARY_DIR})
add_test(NAME vm.install COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/install.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
add_executable(waking ${CMAKE_CURRENT_LIST_DIR}/waking.cc)
target_link_libraries(waking PRIVATE ivgpu_api ivgpu_ring ivgpu_options ${CMAKE_DL_LIBS})
# A helper of scripts that start QEMU themselves.
add_executable(emulated_clock ${CMAKE_CURRENT_LIST_DIR}/emulated_clock.cc
                              ${CMAKE_SOURCE_DIR}/tools/ivgpu/vm/emulated_clock.cc)
target_link_libraries(emulated_clock PRIVATE ivgpu_options)
# A program for vsock.sh, which a developer runs.
add_executable(vsock_program ${CMAKE_CURRENT_LIST_DIR}/vsock_program.cc)
target_link_libraries(vsock_program PRIVATE ivgpu_guest)
# A program that runs a broker, which own_broker.sh restarts.
add_executable(kept_broker ${CMAKE_CURRENT_LIST_DIR}/kept_broker.cc)
target_link_libraries(kept_broker PRIVATE ivgpu_ring GTest::gtest)
target_compile_definitions(kept_broker PRIVATE IVGPUD="" IVGPU="" FAKE_WORKER="")
add_test(NAME vm.reclaim COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/reclaim.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
add_test(NAME vm.qemu_config
         COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/qemu_config.sh ${CMAKE_BINARY_DIR} ${IVGPU_QEMU})
add_test(NAME vm.pmem COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/pmem.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR} ${IVGPU_QEMU})
add_test(NAME vm.bad_input COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/bad_input.sh ${CMAKE_BINARY_DIR})
set_tests_properties(vm.programs vm.command PROPERTIES LABELS vm COST 200 FIXTURES_REQUIRED guest_image)
set_tests_properties(vm.bad_input vm.install vm.qemu_config vm.reclaim
                     PROPERTIES LABELS "vm;thorough" FIXTURES_REQUIRED guest_image)
set_tests_properties(vm.pmem PROPERTIES LABELS "vm;thorough" SKIP_RETURN_CODE 77 FIXTURES_REQUIRED guest_image)

# Checks that the tests notice the death of a worker, ivgpud or QEMU.
add_test(NAME vm.oracle COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/oracle.sh ${CMAKE_BINARY_DIR})
set_property(TEST vm.install PROPERTY RESOURCE_LOCK installed_units)
set_tests_properties(vm.oracle PROPERTIES LABELS "vm;thorough" FIXTURES_REQUIRED guest_image)

# Gives libvirt the files of qemu-config/ and docs/host.md; no guest boots.
add_test(NAME vm.libvirt COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/libvirt.sh ${CMAKE_BINARY_DIR})
set_tests_properties(vm.libvirt PROPERTIES LABELS vm SKIP_RETURN_CODE 77)

# Tests the guest's kernel module with a host program of the test; skipped if a bundle's kernel has no headers. The
# module's fuzzer runs for two minutes: 100 s, then a fifth of that.
add_test(NAME vm.module COMMAND ${IVGPU_LIMITED} ${CMAKE_CURRENT_LIST_DIR}/module.sh ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
set_tests_properties(vm.module PROPERTIES LABELS "vm;thorough" SKIP_RETURN_CODE 77 TIMEOUT 1800 FIXTURES_REQUIRED guest_image
                     ENVIRONMENT "CC=${CMAKE_C_COMPILER};IVGPU_FUZZ_SECONDS=100")
