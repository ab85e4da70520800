# The contract suite compares the answers of our libraries with those of NVIDIA's driver. Each backend has a ctest.
set(contract ${CMAKE_CURRENT_LIST_DIR})
if(TARGET simgpu)
  add_executable(contract_test
    ${contract}/answers.cc
    ${contract}/answers_test.cc
    ${contract}/backends.cc
    ${contract}/contract_test.cc
    ${contract}/suite.cc
    ${contract}/abilities.cc
    ${contract}/array.cc
    ${contract}/array_copy.cc
    ${contract}/batches.cc
    ${contract}/batches_at_work.cc
    ${contract}/callbacks.cc
    ${contract}/callbacks_inside.cc
    ${contract}/capture_questions.cc
    ${contract}/captured.cc
    ${contract}/captured_graph.cc
    ${contract}/captured_more.cc
    ${contract}/captured_work.cc
    ${contract}/code.cc
    ${contract}/context.cc
    ${contract}/context_end.cc
    ${contract}/context_forms.cc
    ${contract}/context_settings.cc
    ${contract}/contexts_at_work.cc
    ${contract}/contexts_together.cc
    ${contract}/copy.cc
    ${contract}/created_context.cc
    ${contract}/dead_objects.cc
    ${contract}/device.cc
    ${contract}/event.cc
    ${contract}/everything.cc
    ${contract}/fault.cc
    ${contract}/function.cc
    ${contract}/graph.cc
    ${contract}/graph_any_node.cc
    ${contract}/graph_exec.cc
    ${contract}/graph_nodes.cc
    ${contract}/graph_nodes_more.cc
    ${contract}/graph_update.cc
    ${contract}/green.cc
    ${contract}/handles.cc
    ${contract}/init.cc
    ${contract}/kernel_lists.cc
    ${contract}/kernel_textures.cc
    ${contract}/launch.cc
    ${contract}/launch_hints.cc
    ${contract}/library.cc
    ${contract}/link.cc
    ${contract}/managed.cc
    ${contract}/managed_variable.cc
    ${contract}/memory.cc
    ${contract}/mipmapped_array.cc
    ${contract}/narrow.cc
    ${contract}/pointer.cc
    ${contract}/pool.cc
    ${contract}/proc_address.cc
    ${contract}/register.cc
    ${contract}/stream.cc
    ${contract}/stream_attributes.cc
    ${contract}/surface.cc
    ${contract}/surface_in_kernel.cc
    ${contract}/tensor_maps.cc
    ${contract}/texel_reads_in_kernel.cc
    ${contract}/texture.cc
    ${contract}/texture_in_kernel.cc
    ${contract}/texture_reference.cc
    ${contract}/virtual.cc)
  ivgpu_unity(contract_test)
  target_link_libraries(contract_test PRIVATE ivgpu_api ivgpu_broker GTest::gtest Threads::Threads ${CMAKE_DL_LIBS})
  target_compile_definitions(contract_test PRIVATE
    GOLDEN="${contract}/golden/580.159.04-h200.txt" EXPECTATIONS="${contract}/expectations.txt"
    SIMULATED_GPU="$<TARGET_FILE:simgpu>" GUEST_CUDA="${CMAKE_BINARY_DIR}/guest/libcuda.so.1"
    WORKER="$<TARGET_FILE:ivgpu-worker>" IVGPUD="$<TARGET_FILE:ivgpud>")
  add_dependencies(contract_test simgpu guest_cuda ivgpud ivgpu-worker)

  add_test(NAME contract.simulated COMMAND ${IVGPU_LIMITED} $<TARGET_FILE:contract_test> --gtest_filter=Simulated/*:Table.*:Answers.*)
  set(contract_tests contract.simulated)
  # The runtime of a sanitizer cannot run in the jail, and a library cannot load it into a program that lacks it.
  if(NOT IVGPU_SANITIZE)
    add_test(NAME contract.loopback COMMAND ${IVGPU_LIMITED} $<TARGET_FILE:contract_test> --gtest_filter=Loopback*)
    list(APPEND contract_tests contract.loopback)
  endif()
  set_tests_properties(${contract_tests} PROPERTIES LABELS contract)
endif()
