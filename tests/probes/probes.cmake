# Programs that ask a driver a question, by hand, on a machine with a GPU: docs/design/ has the answers. They are built so
# that they do not rot; nothing runs them here.
foreach(name capture cheats guesses launch_blocking managed memory nvml_answers quota turns value_waits)
  add_executable(probe_${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.cc)
  target_include_directories(probe_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  target_include_directories(probe_${name} SYSTEM PRIVATE ${IVGPU_CUDA_INCLUDE})
  target_link_libraries(probe_${name} PRIVATE Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(probe_${name} PROPERTIES IVGPU_TEST ON)  # no merge run has them
endforeach()
target_sources(probe_cheats PRIVATE ${CMAKE_SOURCE_DIR}/host/broker/nvml.cc)
target_sources(probe_value_waits PRIVATE ${CMAKE_SOURCE_DIR}/host/broker/nvml.cc)
target_sources(probe_quota PRIVATE ${CMAKE_SOURCE_DIR}/host/broker/nvml.cc)
target_link_libraries(probe_quota PRIVATE ivgpu_api)
target_link_libraries(probe_nvml_answers PRIVATE ivgpu_api)
# Two parts of one question: a process whose channels are switched off, and the driver of the worker that does it.
add_executable(probe_switch_off ${CMAKE_CURRENT_LIST_DIR}/switch_off.cc)
add_library(switch_off MODULE ${CMAKE_CURRENT_LIST_DIR}/switch_off.cc)
target_compile_definitions(switch_off PRIVATE AS_DRIVER CLIENT=0 CHANNELS=0)
set_target_properties(probe_switch_off PROPERTIES ENABLE_EXPORTS ON)
foreach(target probe_switch_off switch_off)
  set_target_properties(${target} PROPERTIES IVGPU_TEST ON)
  target_include_directories(${target} SYSTEM PRIVATE ${IVGPU_CUDA_INCLUDE})
  target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
endforeach()
