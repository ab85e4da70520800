#!/usr/bin/env python3
"""usage: rename.py [--list] [--no-format] TREE
Applies the glossary's renames to the names of a checkout: files, include paths, identifiers, test names, messages. What it
changes it prints. A second run changes nothing. --list prints the table of renames as Markdown, and changes nothing.

The table, in order: FILES (old path -> new path), EVERYWHERE (identifiers that have one meaning), SCOPES (identifiers that
have the meaning in some files only: in C++ these count outside comments and strings, and in comments between backquotes),
PATTERNS (exact text in some files), TESTS (names of tests). A scope is a list of prefixes of paths; '!' excludes one."""
import os, re, subprocess, sys

# ---- files -----------------------------------------------------------------------------------------------------------
FILES = {
    # control channel, liveness pipe
    'host/session/control_channel.h': 'host/session/control_channel.h',
    'host/session/control_channel.cc': 'host/session/control_channel.cc',
    'tests/unit/session/control_channel_test.cc': 'tests/unit/session/control_channel_test.cc',
    'host/base/process/liveness_pipe.h': 'host/base/process/liveness_pipe.h',
    # doorbells
    'ring/layout/doorbell_channel.h': 'ring/layout/doorbell_channel.h',
    'host/broker/transport/doorbell_poller.h': 'host/broker/transport/doorbell_poller.h',
    'host/broker/transport/doorbell_poller.cc': 'host/broker/transport/doorbell_poller.cc',
    'host/broker/transport/doorbell_server.h': 'host/broker/transport/doorbell_server.h',
    'host/broker/transport/doorbell_server.cc': 'host/broker/transport/doorbell_server.cc',
    'guest/region/doorbell.h': 'guest/region/doorbell.h',
    'guest/region/doorbell_channel.h': 'guest/region/doorbell_channel.h',
    'guest/region/doorbell_channel.cc': 'guest/region/doorbell_channel.cc',
    'guest/session/worker_doorbell.h': 'guest/session/worker_doorbell.h',
    'guest/session/worker_doorbell.cc': 'guest/session/worker_doorbell.cc',
    'tests/unit/broker/doorbell_port.h': 'tests/unit/broker/doorbell_port.h',
    'tests/models/doorbell.pml': 'tests/models/doorbell.pml',
    # page scrubber
    'host/broker/region/page_scrubber.h': 'host/broker/region/page_scrubber.h',
    'host/broker/region/page_scrubber.cc': 'host/broker/region/page_scrubber.cc',
    'host/broker/region/plain_file_space.h': 'host/broker/region/plain_file_space.h',
    'host/broker/region/plain_file_space.cc': 'host/broker/region/plain_file_space.cc',
    # memory: reserved, headroom
    'host/broker/alloc/memory_reservations.h': 'host/broker/alloc/memory_reservations.h',
    'host/broker/alloc/memory_reservations.cc': 'host/broker/alloc/memory_reservations.cc',
    'host/session/driver_jit_options.h': 'host/session/driver_jit_options.h',
    'host/session/driver_jit_options.cc': 'host/session/driver_jit_options.cc',
    'host/session/memory/excluded_ranges.h': 'host/session/memory/excluded_ranges.h',
    'host/session/memory/excluded_ranges.cc': 'host/session/memory/excluded_ranges.cc',
    'tests/unit/session/excluded_ranges_test.cc': 'tests/unit/session/excluded_ranges_test.cc',
    'host/session/memory/shadow_copies.h': 'host/session/memory/shadow_copies.h',
    'host/session/memory/shadow_copies.cc': 'host/session/memory/shadow_copies.cc',
    'tests/unit/session/shadow_copies_test.cc': 'tests/unit/session/shadow_copies_test.cc',
    'host/untrusted/marshal/shadowed.h': 'host/untrusted/marshal/shadowed.h',
    # MPS
    'host/broker/mps/mps_connect_proxy.h': 'host/broker/mps/mps_connect_proxy.h',
    'host/broker/mps/mps_connect_proxy.cc': 'host/broker/mps/mps_connect_proxy.cc',
    'tests/unit/broker/mps_connect_proxy_test.cc': 'tests/unit/broker/mps_connect_proxy_test.cc',
    'host/broker/mps/mps_supervisor_main.cc': 'host/broker/mps/mps_supervisor_main.cc',
    'tests/unit/broker/fake_fd_store.h': 'tests/unit/broker/fake_fd_store.h',
    # marshalling
    'host/untrusted/marshal/call_context.h': 'host/untrusted/marshal/call_context.h',
    'host/untrusted/marshal/decoded_request.h': 'host/untrusted/marshal/decoded_request.h',
    'host/untrusted/marshal/decoded_attributes.h': 'host/untrusted/marshal/decoded_attributes.h',
    'host/untrusted/marshal/field_validators.h': 'host/untrusted/marshal/field_validators.h',
    'host/untrusted/runs_concurrently.h': 'host/untrusted/runs_concurrently.h',
    # the other files called words.h
    'host/base/parse_text.h': 'host/base/parse_text.h',
    'ring/shared/atomic_operations.h': 'ring/shared/atomic_operations.h',
    'host/simgpu/vm/ops/lane_access.h': 'host/simgpu/vm/ops/lane_access.h',
    # callback slots
    'ring/queue/callback_slot.h': 'ring/queue/callback_slot.h',
    'host/untrusted/callbacks/callback_slot_pool.h': 'host/untrusted/callbacks/callback_slot_pool.h',
    'host/untrusted/callbacks/callback_slots.h': 'host/untrusted/callbacks/callback_slots.h',
    'host/untrusted/callbacks/callback_slots.cc': 'host/untrusted/callbacks/callback_slots.cc',
    'host/untrusted/callbacks/guest_waker.h': 'host/untrusted/callbacks/guest_waker.h',
    'host/untrusted/callbacks/guest_waker.cc': 'host/untrusted/callbacks/guest_waker.cc',
    'host/untrusted/callbacks/host_calls.h': 'host/untrusted/callbacks/host_calls.h',
    'host/untrusted/callbacks/host_calls.cc': 'host/untrusted/callbacks/host_calls.cc',
    'tests/loopback/callback_slots.cc': 'tests/loopback/callback_slots.cc',
    'tests/unit/session/callback_slots_test.cc': 'tests/unit/session/callback_slots_test.cc',
    'tests/models/callback_slots.pml': 'tests/models/callback_slots.pml',
    'tests/models/explore_callback_slots.cc': 'tests/models/explore_callback_slots.cc',
    # metrics
    'ring/ops/metrics.h': 'ring/ops/metrics.h',
    'host/broker/ops/metric_groups.h': 'host/broker/ops/metric_groups.h',
    'host/broker/ops/metric_groups.cc': 'host/broker/ops/metric_groups.cc',
    # commands
    'tools/ivgpu/support/standard_output.h': 'tools/ivgpu/support/standard_output.h',
    'tools/ivgpu/support/standard_output.cc': 'tools/ivgpu/support/standard_output.cc',
}

# ---- identifiers with one meaning ---------------------------------------------------------------------------------------
EVERYWHERE = {
    # Line, ControlChannel, LivenessPipe, DoorbellPoller -> control channel, liveness pipe, doorbell poller
    'ControlChannel': 'ControlChannel', 'LivenessPipe': 'LivenessPipe', 'liveness_pipe': 'liveness_pipe', 'DoorbellPoller': 'DoorbellPoller',
    # doorbells, rung -> doorbells, signalled
    'DoorbellServer': 'DoorbellServer', 'DoorbellChannel': 'DoorbellChannel', 'WorkerDoorbell': 'WorkerDoorbell', 'Doorbells': 'Doorbells',
    'doorbell_channels': 'doorbell_channels', 'IVGPU_DOORBELL_WORDS': 'IVGPU_DOORBELL_WORDS', 'doorbell_words': 'doorbell_words',
    'doorbell_port': 'doorbell_port', 'doorbell_ports': 'doorbell_ports', 'doorbell_look': 'doorbell_look',
    'doorbell_woken': 'doorbell_woken', 'scheduler_doorbell_fd': 'scheduler_doorbell_fd', 'child_scheduler_doorbell': 'child_scheduler_doorbell',
    'drain_doorbell': 'drain_doorbell', 'ring_doorbell': 'ring_doorbell', 'find_doorbells': 'find_doorbells',
    'make_doorbell': 'make_doorbell', 'on_doorbell': 'on_doorbell', 'open_doorbells': 'open_doorbells', 'use_doorbells': 'use_doorbells',
    'name_of_broker_doorbell': 'name_of_broker_doorbell', 'of_doorbells': 'of_doorbells', 'doorbell_clear': 'doorbell_clear',
    'doorbell_order': 'doorbell_order', 'WRONG_doorbell_clear': 'WRONG_doorbell_clear', 'WRONG_doorbell_order': 'WRONG_doorbell_order',
    'last_signalled_': 'last_signalled_', 'doorbell_by_broker': 'doorbell_by_broker', 'doorbell_by_broker_': 'doorbell_by_broker_',
    'is_signalled': 'is_signalled', 'ivgpu_slot_signalled': 'ivgpu_slot_signalled', 'Rung': 'Signalled',
    # scrubber; scrub -> page scrubber; scrub
    'Wiper': 'PageScrubber', 'ScrubQueue': 'ScrubQueue', 'last_scrubber_': 'last_scrubber_', 'rest_scrubber_': 'rest_scrubber_',
    # keeper; nap -> supervisor (of an MPS daemon); timed sleep
    'mps_supervisor': 'mps_supervisor', 'mps_supervisor_main': 'mps_supervisor_main', 'MPS_SUPERVISOR': 'MPS_SUPERVISOR',
    'MpsSupervisor': 'MpsSupervisor', 'FakeFdStore': 'FakeFdStore', 'of_store': 'of_store', 'supervisor_main': 'supervisor_main',
    'first_sleep_ns': 'first_sleep_ns', 'longest_sleep_ns': 'longest_sleep_ns', 'shortest_sleep_ns': 'shortest_sleep_ns',
    'sleep_ns': 'sleep_ns', 'sleep_ns_': 'sleep_ns_', 'CLAIM_SLEEP_NS': 'CLAIM_SLEEP_NS', 'CountedSleeps': 'CountedSleeps',
    'Naps': 'TimedSleeps', 'sleeps_of_this_thread': 'sleeps_of_this_thread', 'longest_sleep': 'longest_sleep',
    'short_sleep_ns': 'short_sleep_ns', 'short_sleeps': 'short_sleeps', 'sleeps_before': 'sleeps_before', 'sleep_us': 'sleep_us',
    # lent, room, pot -> reserved; headroom; budget
    'MemoryReservations': 'MemoryReservations', 'DriverJitOptions': 'DriverJitOptions', 'add_log_buffers': 'add_log_buffers',
    'take_reserved': 'take_reserved', 'try_to_reserve': 'try_to_reserve', 'more_headroom': 'more_headroom',
    'report_headroom': 'report_headroom', 'HasHeadroom': 'HasHeadroom', 'Lender': 'MemoryReserver',
    # avoided; plug -> excluded ranges; filler
    'Avoided': 'ExcludedRanges', 'ExcludeRecord': 'ExcludeRecord', 'max_excluded_bytes': 'max_excluded_bytes',
    'max_excluded_range': 'max_excluded_range', 'max_excluded_ranges': 'max_excluded_ranges',
    'SessionExcludedRanges': 'SessionExcludedRanges',
    # mirrors -> shadow copies
    'Mirrors': 'ShadowCopies', 'ShadowRecord': 'ShadowRecord', 'shadow_variable': 'shadow_variable',
    'max_shadowed_bytes': 'max_shadowed_bytes', 'call_shadowed': 'call_shadowed', 'SessionShadowCopies': 'SessionShadowCopies',
    # taken; asked; words -> decoded request; call context; field validators
    'DecodedImage': 'DecodedImage', 'DecodedAttributes': 'DecodedAttributes', 'DecodedValue': 'DecodedValue',
    'runs_concurrently': 'runs_concurrently', 'RACE_SCRUBBED': 'RACE_SCRUBBED',
    # front (of the region) -> header area
    'IVGPU_HEADER_AREA_BYTES': 'IVGPU_HEADER_AREA_BYTES', 'header_area_bytes': 'header_area_bytes', 'map_header_area': 'map_header_area',
    'last_of_header_area': 'last_of_header_area',
    # figures -> metrics
    'MetricKind': 'MetricKind', 'MetricGroup': 'MetricGroup', 'IVGPU_METRIC': 'IVGPU_METRIC',
    'work_metrics': 'work_metrics', 'end_metrics': 'end_metrics', 'held_metrics': 'held_metrics',
    'quota_metrics': 'quota_metrics', 'metrics_text': 'metrics_text', 'metric_as_json': 'metric_as_json',
    'metric_from': 'metric_from',
    # lane -> callback slot
    'CallbackRequest': 'CallbackRequest', 'CallbackCallee': 'CallbackCallee', 'CallbackCaller': 'CallbackCaller',
    'CallbackSlot': 'CallbackSlot', 'IvgpuCallbackSlot': 'IvgpuCallbackSlot', 'CallbackKind': 'CallbackKind',
    'IvgpuCallbackKind': 'IvgpuCallbackKind', 'IVGPU_CALLBACK_HOST_FUNCTION': 'IVGPU_CALLBACK_HOST_FUNCTION',
    'IVGPU_CALLBACK_STREAM_CALLBACK': 'IVGPU_CALLBACK_STREAM_CALLBACK', 'IVGPU_CALLBACK_FORGET': 'IVGPU_CALLBACK_FORGET',
    'IVGPU_MAX_CALLBACK_SLOTS': 'IVGPU_MAX_CALLBACK_SLOTS', 'IVGPU_CALLBACK_SLOTS_OFFSET': 'IVGPU_CALLBACK_SLOTS_OFFSET',
    'CallbackSlotPool': 'CallbackSlotPool', 'LockfreeCallbackSlots': 'LockfreeCallbackSlots', 'max_callback_slots': 'max_callback_slots',
    'callback_slot_offset': 'callback_slot_offset', 'callback_slots_offset': 'callback_slots_offset',
    'ivgpu_callback_slot_is_free': 'ivgpu_callback_slot_is_free', 'last_slot_': 'last_slot_', 'callback_early': 'callback_early',
    'callback_refilled': 'callback_refilled', 'WRONG_callback_early': 'WRONG_callback_early',
    'WRONG_callback_refilled': 'WRONG_callback_refilled', 'callback_slot_scenarios': 'callback_slot_scenarios',
    'explore_callback_slots': 'explore_callback_slots', 'callback_slots_two': 'callback_slots_two', 'worker_callback_slots': 'worker_callback_slots',
    # door; seat -> connect proxy; client registration
    'MpsConnectProxy': 'MpsConnectProxy', 'mps_connect_proxy': 'mps_connect_proxy', 'MpsRegistration': 'MpsRegistration',
    'VsockEndpoint': 'VsockEndpoint', 'open_proxy': 'open_proxy', 'open_endpoints': 'open_endpoints',
    'stop_admitting': 'stop_admitting', 'adopt_proxy': 'adopt_proxy', 'report_proxy': 'report_proxy', 'proxy_for': 'proxy_for',
    'proxy_of': 'proxy_of', 'holds_proxy_of': 'holds_proxy_of', 'ready_with_proxy': 'ready_with_proxy',
    'ready_without_proxy': 'ready_without_proxy', 'no_proxy_reported_': 'no_proxy_reported_', 'no_proxy': 'no_proxy',
    # told, tell, say -> report, notify
    'begin_reporting': 'begin_reporting', 'check_and_report': 'check_and_report', 'notify_adopted': 'notify_adopted',
    'report_begin': 'report_begin', 'report_cache': 'report_cache', 'report_channels_in': 'report_channels_in',
    'report_deaths': 'report_deaths', 'report_facts': 'report_facts', 'report_facts_by': 'report_facts_by',
    'report_failure': 'report_failure', 'report_full': 'report_full', 'report_gpus': 'report_gpus',
    'report_groups': 'report_groups', 'copy_info': 'copy_info', 'report_jail': 'report_jail',
    'report_last_status': 'report_last_status', 'report_left_out': 'report_left_out', 'report_managed': 'report_managed',
    'report_memory': 'report_memory', 'notify_now': 'notify_now', 'log_once': 'log_once', 'report_owner': 'report_owner',
    'notify_ready': 'notify_ready', 'report_samples': 'report_samples', 'report_start': 'report_start',
    'report_unknown_log_level': 'report_unknown_log_level', 'report_warm': 'report_warm',
    'publish_whether_on': 'publish_whether_on', 'report_to_worker': 'report_to_worker', 'report_all_on': 'report_all_on',
    'publish_use': 'publish_use', 'knows_peers': 'knows_peers', 'has_samples': 'has_samples', 'jail_reported_': 'jail_reported_',
    'missing_reported': 'missing_reported', 'no_memory_reported_': 'no_memory_reported_',
    'overcommitted_reported': 'overcommitted_reported', 'unread_reported': 'unread_reported',
    'call_flags_reported': 'call_flags_reported', 'other_flags_reported': 'other_flags_reported', 'reported_in': 'reported_in',
    'must_go': 'must_go', 'end_in_words': 'end_in_words', 'write_failed': 'write_failed', 'report_ready': 'report_ready',
    'send_quit': 'send_quit', 'print_missing': 'print_missing', 'print_use': 'print_use', 'print_attribute': 'print_attribute',
    'carries_length': 'carries_length', 'has_vectors': 'has_vectors', 'processor_is_tcg': 'processor_is_tcg',
    'ends_with_its_unit': 'ends_with_its_unit', 'claimed_of': 'claimed_of',
    # settle -> commit, resolve, place
    'commit_function': 'commit_function', 'commit_lookup': 'commit_lookup', 'commit_known': 'commit_known',
    'commit_range': 'commit_range', 'place_gpus': 'place_gpus', 'resolve_later': 'resolve_later',
    'resolve_timer_': 'resolve_timer_',
    # turn (of a loop over sessions)
    'passes_of_a_worker': 'passes_of_a_worker', 'most_of_a_pass': 'most_of_a_pass', 'copy_alternately': 'copy_alternately',
    'in_turn_': 'greeted_',
}
del EVERYWHERE['in_turn_']

# ---- identifiers with the meaning in some files ------------------------------------------------------------------------
LANE_SCOPE = ['ring/', 'guest/session/', 'host/untrusted/', 'host/session/', 'tests/loopback/', 'tests/unit/session/',
              'tests/unit/ring/', 'tests/bench/', 'tests/models/', 'tests/docs/', 'tests/other_side.h']
BROKER = ['host/broker/', 'tests/unit/broker/']
SESSION_MEMORY = ['host/session/', 'host/base/process/control.h', 'host/untrusted/serve.cc', 'host/broker/alloc/',
                  'host/broker/vm/', 'tests/unit/broker/memory_test.cc', 'tests/unit/broker/fake_worker.cc',
                  'tests/unit/session/', 'tests/fuzz/', 'tests/other_side.h']
SCOPES = [
    (LANE_SCOPE + ['!tests/bench/simgpu', '!ring/api/'],
     {'Lanes': 'CallbackSlots', 'lanes': 'callback_slots', 'lanes_': 'callback_slots_', 'lane': 'callback_slot',
      'lane_': 'callback_slot_', 'Lane': 'Entry', 'LANES': 'SLOTS'}),
    (['tests/fuzz/'], {'Lanes': 'CallbackSlots', 'lanes': 'callback_slots', 'lanes_': 'callback_slots_'}),
    # doorbells
    (['guest/', 'tests/unit/guest/', 'tests/bench/', 'host/scheduler/', 'tests/unit/scheduler/'],
     {'doorbell': 'doorbell', 'doorbell_': 'doorbell_', 'doorbells': 'doorbells', 'doorbells_': 'doorbells_'}),
    (['host/broker/transport/plain_transport.cc'], {'doorbell': 'broker_end', 'doorbells_': 'poller_'}),
    (['tests/models/'], {'Doorbell': 'Doorbell', 'BELL': 'DOORBELL', 'doorbell': 'doorbell'}),
    (['guest/', 'host/', 'tests/loopback/', 'tests/unit/broker/pmem_test.cc', 'tests/unit/session/', '!tests/unit/session/lanes'],
     {'rung': 'signalled', 'rung_': 'signalled_'}),
    # page scrubber
    (BROKER + ['tests/fuzz/'], {'scrubber': 'scrubber', 'scrubs': 'scrub_queue', 'wipes_': 'scrub_queue_', 'wiped_': 'scrubbed_',
                               'scrub': 'scrub', 'Scrubs': 'Scrubs', 'session_wiper': 'session_scrubber'}),
    (['host/broker/region/scrubber', 'host/broker/region/page_scrubber'],
     {'Lane': 'RegionQueue', 'lanes_': 'queues_', 'lane': 'queue', 'turn': 'work'}),
    # loop iterations, buffers
    (['host/base/event_loop'], {'Turns': 'Iterations', 'turns': 'iterations', 'turns_': 'iterations_', 'turn': 'iterate'}),
    (['host/broker/', '!host/broker/ops/figures', '!host/broker/ops/metric_groups', '!host/broker/region/', 'tests/unit/'],
     {'Turns': 'Iterations', 'turns': 'iterations'}),
    (['guest/calls/copy/staged_copy.cc'],
     {'Turn': 'Buffer', 'turn': 'buffer', 'turns_': 'buffers_', 'turn_of': 'buffer_of'}),
    (['tools/ivgpu/bench/program/'], {'Turn': 'Series', 'turn': 'series', 'turns': 'all_series', 'tell': 'report'}),
    (['tools/ivgpu/trace/source.cc'], {'turns': 'passes'}),
    (['host/untrusted/channel.cc'], {'in_turn': 'greeted'}),
    # keeper
    (['host/broker/'], {'keeper': 'supervisor', 'Keeper': 'Supervisor'}),
    (['guest/'], {'keeper': 'owning_context'}),
    (['host/untrusted/calls/'], {'keeper': 'user_object'}),
    (['tests/unit/broker/', 'tests/faults/', 'tests/hostile/', 'tests/vm/kept_broker.cc', '!tests/unit/broker/slots_test.cc'],
     {'keeper': 'fd_store', 'keeper_': 'fd_store_'}),
    (['tests/unit/broker/slots_test.cc'], {'keeper': 'holder'}),
    # timed sleep
    (['guest/', 'host/simgpu/api/', 'tests/vm/waking.cc'], {'nap': 'timed_sleep'}),
    (['guest/kmod/', 'tests/loopback/', 'tests/vm/waking.cc', 'tools/check/module.cc'], {'naps': 'sleeps'}),
    (['guest/session/channel'], {'Nap': 'Timed'}),
    # reserved, headroom, budget
    (['guest/calls/graph/'], {'Lent': 'KeptArrays', 'lent': 'kept', 'lent_': 'kept_'}),
    (['host/untrusted/'], {'lent': 'inline_bytes', 'lent_': 'inline_bytes_'}),
    (SESSION_MEMORY, {'lent': 'reserved', 'lender': 'reserver', 'lender_': 'reserver_', 'Lend': 'Reserved',
                      'Borrow': 'Reserve', 'borrow': 'reserve', 'lends': 'reserves', 'lend': 'reserve'}),
    (['host/base/process/control.h', 'host/broker/alloc/', 'host/session/memory/device_memory',
      'host/session/broker_line', 'host/session/control_channel', 'tests/unit/broker/memory_test.cc',
      'tests/unit/broker/fake_worker.cc', 'tests/unit/session/captures_test.cc', 'tests/unit/session/quota_test.cc',
      'tests/unit/session/control_channel_test.cc', 'tests/unit/session/control_channel_test.cc', 'tests/fuzz/'],
     {'Room': 'Headroom'}),
    (['host/broker/alloc/', 'host/session/memory/device_memory',
      'host/session/broker_line', 'host/session/control_channel', 'host/untrusted/counted.cc',
      'tests/unit/session/captures_test.cc', 'tests/unit/session/quota_test.cc', 'tests/unit/session/control_channel_test.cc',
      'tests/unit/session/control_channel_test.cc'], {'room': 'headroom'}),
    (['host/broker/alloc/', 'tests/unit/broker/memory_test.cc'], {'Pot': 'Budget'}),
    (['host/broker/region/plain_room', 'host/broker/region/plain_file_space'],
     {'Room': 'Space', 'rooms': 'spaces', 'room': 'space'}),
    # excluded ranges, filler, shadow copies
    (['host/session/session.h', 'host/untrusted/'], {'avoided': 'excluded_ranges', 'avoid': 'exclude'}),
    (['ring/api/session.def', 'guest/marshal/', 'tests/unit/session/'], {'avoid': 'exclude'}),
    (['guest/calls/memory/memory.cc'], {'Plugs': 'Fillers', 'plugs': 'fillers'}),
    (['host/session/', 'host/untrusted/', 'tests/unit/session/'], {'mirrors': 'shadow_copies'}),
    (['guest/calls/module/managed_variable.cc', 'tests/unit/session/'], {'mirror': 'shadow_copy'}),
    # decoded request, call context, field validators, commit
    (['host/untrusted/', 'tests/unit/session/'], {'Taken': 'DecodedRequest', 'Asked': 'CallContext'}),
    (['host/untrusted/marshal/decoded_request.h', 'host/untrusted/marshal/decoded_request.h'], {'taken': 'decoded'}),
    (['host/untrusted/marshal/', 'host/untrusted/dispatch.cc'], {'asked': 'context'}),
    (['host/untrusted/calls/'], {'asked': 'call_of'}),
    (['guest/marshal/', 'guest/objects/memory/virtual_ranges', 'host/session/memory/virtual_ranges', 'host/untrusted/',
      'tests/unit/session/', 'tests/unit/guest/'], {'settle': 'commit', 'settle_memory': 'commit_memory'}),
    (['guest/objects/copy/segments', 'host/broker/'], {'settle': 'resolve'}),
    (['host/broker/config/config.cc'], {'settle_memory': 'resolve_memory'}),
    # header area
    (['guest/nvml/'], {'front_': 'header_area_'}),
    (['host/broker/region/region.'], {'front_': 'header_area_', 'front': 'header_area'}),
    # metrics
    (['ring/ops/', 'host/broker/ops/', 'tools/ivgpu/', 'tests/unit/broker/', 'tests/unit/tools/', '!tests/unit/tools/bench_'],
     {'Figure': 'Metric', 'figure': 'metric', 'figures': 'metrics'}),
    # registration, proxy, endpoint
    (BROKER, {'seat': 'registration', 'seats_': 'registrations_'}),
    (['host/broker/', '!host/broker/transport/', '!host/broker/region/', 'tests/unit/broker/mps_'], {'door': 'proxy'}),
    (['host/broker/transport/'], {'door': 'endpoint', 'door_': 'endpoint_'}),
    # concurrently, pinned
    (['tools/ivgpu/support/output_file'], {'beside_': 'temporary_'}),
    (['host/broker/'], {'held_back': 'still_pinned'}),
    # report, notify
    (['guest/region/bell_channel', 'guest/region/doorbell_channel'], {'say': 'send_byte'}),
    (['host/session/broker_line', 'host/session/control_channel'], {'say': 'send_message'}),
    (['host/base/process/service_manager'], {'say': 'send_datagram'}),
    (['host/broker/', '!host/broker/config/', '!host/broker/gpu/'], {'say': 'reply'}),
    (['host/broker/gpu/nvml_main.cc', 'tools/ivgpu/trace/record_text.h', 'tools/ivgpu/support/', 'tools/ivgpu/commands/',
      'tools/ivgpu/top/'], {'say': 'print'}),
    (['host/broker/gpu/nvml_main.cc'], {'tell': 'print_facts'}),
    (['host/broker/config/config.cc'], {'say': 'fail'}),
    (['host/simgpu/api/'], {'say': 'report'}),
    (['host/worker/start.cc'], {'says': 'has'}),
    (['tools/ivgpu/vm/', 'tools/ivgpu/bench/'], {'say': 'show'}),
    (['host/worker/channel_report.cc'], {'tell_all': 'report_all', 'tell': 'report'}),
    (['host/broker/ops/trace_server'], {'tell_all': 'notify_all'}),
    (['guest/objects/memory/occupied'], {'is_told': 'is_reported', 'told_': 'reported_', 'told': 'reported'}),
    (['tools/ivgpu/', 'tests/unit/tools/', 'tests/unit/broker/'], {'is_told': 'is_known', 'not_told': 'not_known'}),
    (['guest/nvml/gpus'], {'told_': 'logged_'}),
    (['guest/nvml/'], {'told': 'reported'}),
    (['guest/objects/captures.h', 'host/broker/alloc/gputime_helper'], {'told_': 'reported_'}),
    (['guest/', 'ring/abi/', 'host/simgpu/api/context/'], {'said': 'given'}),
    (['host/'], {'said': 'reported'}),
    (['guest/', 'host/', '!host/simgpu/'], {'told': 'answered'}),
    (['host/simgpu/'], {'told': 'published'}),
    (['host/scheduler/scheduler'], {'Tell': 'ReportRequest'}),
]

# ---- exact text: (scope, pattern, replacement) ---------------------------------------------------------------------------
FIELD_SCOPE = ['guest/', 'host/', 'ring/', 'tests/', 'docs/wire-format.md']
PATTERNS = [
    # RegionHeader::rung
    (FIELD_SCOPE, r'\bRegionHeader::rung\b', 'RegionHeader::doorbell_bits'),
    (FIELD_SCOPE, r'\b(header(?:\(\))?(?:->|\.))rung\b(?=[\[)])', r'\1doorbell_bits'),
    (FIELD_SCOPE, r'(header\("[a-z0-9.]*"\)\.)rung\b', r'\1doorbell_bits'),
    (['ring/layout/layout_c.h'], r'\bIvgpuRegionHeader, rung\b', 'IvgpuRegionHeader, doorbell_bits'),
    (['ring/layout/layout_c.h'], r'\buint64_t rung\[', 'uint64_t doorbell_bits['),
    (['tests/'], r'FIELD\(ring, RegionHeader, rung\)', 'FIELD(ring, RegionHeader, doorbell_bits)'),
    (['ring/layout/', 'docs/', 'host/broker/transport/doorbell_poller.h', 'host/broker/transport/doorbell_poller.h'],
     r'(?<!Calls )`doorbell_bits`(?! is called)', '`doorbell_bits`'),
    (['host/', 'tests/', 'docs/'], r'--scheduler-doorbell-fd\b', '--scheduler-doorbell-fd'),
    (['host/', 'tests/', 'docs/'], r'(?<=-)rung-by\b', 'doorbell-by'),
    # the folder of the callback slots, where the path stands without a file
    (['host/', 'ring/', 'tools/', 'tests/', 'docs/', 'CONTRIBUTING.md'], r'\bhost/untrusted/lanes/', 'host/untrusted/callbacks/'),
    (['tests/models/models.cmake', 'ring/verify/', 'docs/models.md', 'ring/queue/', 'host/untrusted/', 'tests/models/'],
     r'\b(the model |scenario |spin_test\(|model )lanes\b', r'\1callback_slots'),
    (['ring/verify/mutants.def'], r', lanes\b', ', callback_slots'),
    (['tests/models/models.cmake'], r'\border lanes slots\b', 'order callback_slots slots'),
    (['tests/models/models.cmake'], r'(foreach\(model parking awaited )doorbell\b', r'\1doorbell'),
    (['tests/models/models.cmake'], r'callback_slots_two lanes\b', 'callback_slots_two callback_slots'),
    (['ring/verify/mutants.def'], r', doorbell\b', ', doorbell'),
    # namespace of the atomic operations
    (['ring/', 'tests/'], r'\bring::words\b', 'ring::atomics'),
    (['ring/shared/'], r'\bwords::', 'atomics::'),
    (['host/untrusted/marshal/', 'tests/unit/session/'], r'(?<!field::)\bWords(?=<|\b\()', 'FieldValidators'),
    (['host/untrusted/marshal/'], r'\b(class |~)Words\b', r'\1FieldValidators'),
    (['host/untrusted/marshal/'], r'(?<!field::)\bWords\b(?= ?[&(;{=])', 'FieldValidators'),
    (['host/untrusted/marshal/request.h'], r'^//   settle  note', '//   commit  note'),
    (['host/untrusted/marshal/request.h'], r'every other in asked\.h', 'every other in call_context.h'),
    (['docs/adding-a-call.md', 'docs/one-call.md'], r'\basked::', 'call_of::'),
    (['docs/adding-a-call.md', 'docs/one-call.md'], r'\bAsked<', 'CallContext<'),
    (['docs/adding-a-call.md', 'docs/one-call.md'], r'\bTaken<', 'DecodedRequest<'),
    (['docs/one-call.md'], r'`settle`', '`commit`'),
    (['docs/one-call.md'], r'\bsettle<', 'commit<'),
    (['ring/layout/layout_c.h'], r'^//   front      what', '//   header area  what'),
    (['host/broker/region/'], r'// turn\(\) sets', '// work() sets'),
    (['host/broker/ops/'], r'\b(status|broker)\.turns\.', r'\1.iterations.'),
    (['host/broker/ops/'], r'\b(s|b)\.turns\.', r'\1.iterations.'),
    # messages
    (['guest/', 'tools/', 'tests/', 'docs/', 'qemu-config/', 'host/'], r'\bwaits nap\b', 'waits use timed sleeps'),
    (['tools/check/', 'tests/unit/tools/'], r'\bslots nap:', 'slots use timed sleeps:'),
    (['host/broker/transport/'], r"the VM's programs nap until then", "the VM's programs use timed sleeps until then"),
    (['tests/vm/'], r'\bnaps in 300 ms', 'timed sleeps in 300 ms'),
    (['tests/vm/'], r'\blongest nap\b', 'longest timed sleep'),
    (['tests/vm/'], r'\bshort naps in a wait\b', 'short timed sleeps in a wait'),
    (['tests/vm/'], r'\bnaps beside the module\b', 'timed sleeps beside the module'),
    (['tests/vm/'], r'\|naps\|longest', '|timed sleeps|longest'),
    (['tests/vm/reclaim.sh'], r'^( *)naps(\(\) \{| \')', r'\1timed_sleeps\2'),
    (['guest/', 'host/', 'tools/', 'tests/', 'docs/', 'qemu-config/'], r'\b([Bb])ell channel', lambda m: {'b': 'doorbell channel', 'B': 'Doorbell channel'}[m.group(1)]),
    (['tools/check/', 'tests/unit/tools/'], r'"bells"', '"doorbells"'),
    (['tests/unit/tools/'], r'\+doorbells \+', '+doorbells +'),
    (['guest/nvml/', 'guest/region/module.cc'], r"\bregion's front\b", "region's header area"),
]

# After all others.
PROSE = ['guest/', 'host/', 'ring/', 'tools/', 'tests/', 'docs/', 'qemu-config/', 'README.md', 'CONTRIBUTING.md']
LATE = [
    (['tests/models/models.cmake'], r'callback_slots_two lanes\b', 'callback_slots_two callback_slots'),
    (PROSE, r'(?<![\w."/-])([Bb])ell(s?_?)\b(?![-".])', lambda m: {'b': 'doorbell', 'B': 'Doorbell'}[m.group(1)] + m.group(2)),
    (PROSE, r'(?<![\w."/-])([Bb])ell(s?)(?=\.(?:\s|$))', lambda m: {'b': 'doorbell', 'B': 'Doorbell'}[m.group(1)] + m.group(2)),
    (PROSE, r'\bwip(e|es|er|ers)\b', r'scrub\1'),
    (PROSE, r'\bscrube\b', 'scrub'), (PROSE, r'\bscrubes\b', 'scrubs'), (PROSE, r'\bscruber(s?)\b', r'scrubber\1'),
    (PROSE, r'\bwip(ed|ing)\b', r'scrubb\1'), (PROSE, r'\bWip(ed|ing)\b', r'Scrubb\1'), (PROSE, r'\bWipes\b', 'Scrubs'),
]

# Groups that must run once, since a new name is another's old one: (scope, marker that is gone afterwards, {old: new}).
ONCE = [
    (['host/broker/alloc/', 'tests/unit/broker/memory_test.cc'], ('host/broker/alloc/', r'\badd_headroom\b'),
     {'headroom': 'overhead_allowance', 'add_headroom': 'add_overhead_allowance'}),
]

# ---- names of tests ---------------------------------------------------------------------------------------------------
TESTS = {}

# Words of English as well, so code alone counts, and text between backquotes.
PLAIN = {k: EVERYWHERE.pop(k) for k in ('Doorbells', 'Rung', 'Wiper', 'Mirrors', 'Avoided', 'Naps', 'Lender')}

EXEMPT = ('CHANGELOG.md', 'docs/moved.md', 'debian/changelog', 'tests/fuzz/corpus/', 'LICENSE')
CXX = re.compile(r'\.(h|cc|c|cu|def)$')

# A word of a test's name -> the field's. The grammar of some names needs more: NAMES has these whole.
TEST_WORDS = {
    'Scrubbed': 'Scrubbed', 'Wiper': 'Scrubber', 'Doorbell': 'Doorbell', 'Doorbells': 'Doorbells', 'Rung': 'Signalled',
    'Lent': 'Reserved', 'Lends': 'Reserves', 'Keeper': 'Supervisor', 'Told': 'Reported', 'Tells': 'Reports', 'Tell': 'Report',
    'Said': 'Reported', 'Says': 'Reports', 'Say': 'Report', 'Mirrored': 'Shadowed', 'Avoided': 'Excluded', 'Figure': 'Metric',
    'Figures': 'Metrics', 'Front': 'HeaderArea', 'Lane': 'CallbackSlot', 'Lanes': 'CallbackSlots',
}
NAMES = {
    'ABusyMachineIsReported': 'ABusyMachineIsReported',
    'AForeignLockIsReportedAsItsPossibleCauses': 'AForeignLockIsReportedAsItsPossibleCauses',
    'SkipsAGroupThatIsExpectedToBeSkipped': 'SkipsAGroupThatIsExpectedToBeSkipped',
    'APartKeepsItsOwnSettings': 'APartKeepsItsOwnSettings',
    'WaitsUseTimedSleepsBesideAModuleWithoutSleepers': 'WaitsUseTimedSleepsBesideAModuleWithoutSleepers',
    'NotifiesAnAcceptedProgramWhichThenRingsAndIsWoken': 'NotifiesAnAcceptedProgramWhichThenRingsAndIsWoken',
    'SignalsAnUnansweredQuestionAgainEachSecond': 'SignalsAnUnansweredQuestionAgainEachSecond',
    'AResetAfterWhichTheDriverDisagreesEndsThoseOfLibraries': 'AResetAfterWhichTheDriverDisagreesEndsThoseOfLibraries',
    'ASpareWorkerReportsTheMemoryOfAContext': 'ASpareWorkerReportsTheMemoryOfAContext',
    'NotifiesASwitcherAgainThatHasSwitchedEverythingOn': 'NotifiesASwitcherAgainThatHasSwitchedEverythingOn',
    'ReportsALostSwitcherAndTheNextLetsAllOn': 'ReportsALostSwitcherAndTheNextLetsAllOn',
    'AnUnreportedVersionIsUnknown': 'AnUnreportedVersionIsUnknown',
    'AVmsSocketIsTheBrokersUnlessConfiguredOtherwise': 'AVmsSocketIsTheBrokersUnlessConfiguredOtherwise',
    'NotifiesAWorkerWhetherItsChannelsAreOff': 'NotifiesAWorkerWhetherItsChannelsAreOff',
    'DistinguishesAForeignKillFromTheBrokersOwn': 'DistinguishesAForeignKillFromTheBrokersOwn',
    'AWorkerThatReportsNothingHasAnOlderWorkersCalls': 'AWorkerThatReportsNothingHasAnOlderWorkersCalls',
    'KillsAWorkerThatSendsAnUnknownMessage': 'KillsAWorkerThatSendsAnUnknownMessage',
    'AWorkerThatItsBrokerSignalsLooksWhileTheBrokerStalls': 'AWorkerThatItsBrokerSignalsLooksWhileTheBrokerStalls',
    'AccountsReportGpuTimeAndWaitingTime': 'AccountsReportGpuTimeAndWaitingTime',
    'EveryLaterCallReturnsAFault': 'EveryLaterCallReturnsAFault',
    'ReportsAndGivesAllOfTheGpu': 'ReportsAndGivesAllOfTheGpu',
    'AnEmulatedProcessorReportsNothingAboutTheMapping': 'AnEmulatedProcessorReportsNothingAboutTheMapping',
    'AnEntryAndACallbackSlotLieAtTheirIndex': 'AnEntryAndACallbackSlotLieAtTheirIndex',
    'AnUnfinishedChunkIsBorrowedLast': 'AnUnfinishedChunkIsBorrowedLast',
    'TheCheckReportsItBefore': 'TheCheckReportsItBefore',
    'AnyRequestPassesWhereTheOperatorAllowsIt': 'AnyRequestPassesWhereTheOperatorAllowsIt',
    'BatchesOfWordsHaveTheirStatedLength': 'BatchesOfWordsHaveTheirStatedLength',
    'BeyondTheStoresMaximumAProgramUsesTimedSleepsAndItsSessionGoesOn': 'BeyondTheStoresMaximumAProgramUsesTimedSleepsAndItsSessionGoesOn',
    'ChunksAreBorrowedOnceAndRememberTheirLastUse': 'ChunksAreBorrowedOnceAndRememberTheirLastUse',
    'DropsClientsThatSendNothingOrDoNotRead': 'DropsClientsThatSendNothingOrDoNotRead',
    'CuMemGetInfoReportsTheVmsOwn': 'CuMemGetInfoReportsTheVmsOwn',
    'DoesNotAskAgainSoonForWhatIsUnknown': 'DoesNotAskAgainSoonForWhatIsUnknown',
    'EverySocketIsTheBrokersOwnByDefault': 'EverySocketIsTheBrokersOwnByDefault',
    'EveryRuleHasItsReason': 'EveryRuleHasItsReason',
    'FixedIsTheWholeListOfTheKey': 'FixedIsTheWholeListOfTheKey',
    'InManagedMemoryStayAsLongAsTheDriverKeepsThem': 'InManagedMemoryStayAsLongAsTheDriverKeepsThem',
    'IsAskedForAsTheCallerWants': 'IsAskedForAsTheCallerWants',
    'IsReservedWithinTheQuota': 'IsReservedWithinTheQuota',
    'IsReportedForEachProcess': 'IsReportedForEachProcess',
    'ReportsTheProcessorTimeOfItsLongestIteration': 'ReportsTheProcessorTimeOfItsLongestIteration',
    'ReservesAndReportsTheHeadroom': 'ReservesAndReportsTheHeadroom',
    'ListedRequestsPassAndOthersAreReportedByNumber': 'ListedRequestsPassAndOthersAreReportedByNumber',
    'ReportsManagedMemoryThatMayNotBeLookedAt': 'ReportsManagedMemoryThatMayNotBeLookedAt',
    'ManyThreadsStayWithinTheReservation': 'ManyThreadsStayWithinTheReservation',
    'ReservedMemoryStaysReserved': 'ReservedMemoryStaysReserved',
    'NoWakeUpIsLostWithoutAlternation': 'NoWakeUpIsLostWithoutAlternation',
    'ScrubsOneStepInEachIterationOfTheLoop': 'ScrubsOneStepInEachIterationOfTheLoop',
    'AnUnreportedFactIsUnknown': 'AnUnreportedFactIsUnknown',
    'OfEveryKeyAreReported': 'OfEveryKeyAreReported',
    'OneAloneIsNeverSwitchedOffAndItsTimeIsReported': 'OneAloneIsNeverSwitchedOffAndItsTimeIsReported',
    'OneWithoutANameIsReportedAMomentLater': 'OneWithoutANameIsReportedAMomentLater',
    'QemuAndTheConfigurationHaveDifferentNumbers': 'QemuAndTheConfigurationHaveDifferentNumbers',
    'QemuGetsTheOptionsOfTheConfigurationPages': 'QemuGetsTheOptionsOfTheConfigurationPages',
    'RegionsAlternateAndWithinOneTheFirstIsDoneFirst': 'RegionsAlternateAndWithinOneTheFirstIsDoneFirst',
    'RingsThatAWorkerHasNotTakenAreNotThoseOfTheNext': 'RingsThatAWorkerHasNotTakenAreNotThoseOfTheNext',
    'LabelEachSide': 'LabelEachSide',
    'ReportTheDifference': 'ReportTheDifference',
    'StartedAgainItBeginsFromTheFirstByteAndReportsOnce': 'StartedAgainItBeginsFromTheFirstByteAndReportsOnce',
    'StoppedOrGoneNothingIsCalledOrScrubbed': 'StoppedOrGoneNothingIsCalledOrScrubbed',
    'SwitchesEachChannelOnceHoweverOftenItIsOrdered': 'SwitchesEachChannelOnceHoweverOftenItIsOrdered',
    'ReportsItsOwnMemoryToAProgram': 'ReportsItsOwnMemoryToAProgram',
    'ReportsAtTheEndHowTheLastWorkersEnded': 'ReportsAtTheEndHowTheLastWorkersEnded',
    'DistinguishesTwoGpus': 'DistinguishesTwoGpus',
    'ThatEndsOrIsNotThereReportsNothing': 'ThatEndsOrIsNotThereReportsNothing',
    'TheBrokersEndIsReportedBehindTheScreen': 'TheBrokersEndIsReportedBehindTheScreen',
    'ReportsToTheCommandWhatIsNotThere': 'ReportsToTheCommandWhatIsNotThere',
    'TheDeviceHasTheConfiguredNumberOfInterrupts': 'TheDeviceHasTheConfiguredNumberOfInterrupts',
    'TheHeaderAreaIsForReadingToItsLastByte': 'TheHeaderAreaIsForReadingToItsLastByte',
    'TheNumberOfThreadsCanBeGiven': 'TheNumberOfThreadsCanBeGiven',
    'TheReplyNamesManagedMemory': 'TheReplyNamesManagedMemory',
    'TheWatchdogHearsEachIteration': 'TheWatchdogHearsEachIteration',
    'ThereIsNoneWhereTheFileNamesNone': 'ThereIsNoneWhereTheFileNamesNone',
    'TheyAreScrubbedToZeroAndAScrubbedPageIsGivenBack': 'TheyAreScrubbedToZeroAndAScrubbedPageIsGivenBack',
    'UnreportedTimeIsNoMetric': 'UnreportedTimeIsNoMetric',
    'TracesWhileItIsOrderedTo': 'TracesWhileItIsOrderedTo',
    'TwoThatWantTheGpuAlternate': 'TwoThatWantTheGpuAlternate',
    'VectorsAreTheExtraSettingsOwnWhereTheseHaveThem': 'VectorsAreTheExtraSettingsOwnWhereTheseHaveThem',
    'WaitForGivesUpAndStillReportsTheCodeLater': 'WaitForGivesUpAndStillReportsTheCodeLater',
    'WaitsUseTimedSleeps': 'WaitsUseTimedSleeps', 'WaitsUseTimedSleepsOnThisMachine': 'WaitsUseTimedSleepsOnThisMachine',
    'AttributesOfAFunction': 'AttributesOfAFunction',
    'SimultaneousEventsAreNotOneIteration': 'SimultaneousEventsAreNotOneIteration',
    'ACallbackMayStartAndEndAnyScrubber': 'ACallbackMayStartAndEndAnyScrubber',
    'FreeRangesAreNotReported': 'FreeRangesAreNotReported',
    'UnknownValuesAreDashesAndAWeightIsReported': 'UnknownValuesAreDashesAndAWeightIsReported',
    'LeavesInvalidTextToTheValidator': 'LeavesInvalidTextToTheValidator',
    'AnAdviceOfAByteHoldsForItsPage': 'AnAdviceOfAByteHoldsForItsPage',
    'OutputOfNoMeasuringProgram': 'OutputOfNoMeasuringProgram',
    'UnreportedValuesAreNotSupported': 'UnreportedValuesAreNotSupported',
    'OffsetsInTheProseAreThoseOfTheCode': 'OffsetsInTheProseAreThoseOfTheCode',
    'WhenAllSlotsAreTakenTheLogNamesTheKeyThatGivesMore': 'WhenAllSlotsAreTakenTheLogNamesTheKeyThatGivesMore',
    'WhereNoWorkerMayPollNoGuestPolls': 'WhereNoWorkerMayPollNoGuestPolls',
    'WhereNothingIsThereNothingIsReported': 'WhereNothingIsThereNothingIsReported',
    'TheLogReportsAForeignCid': 'TheLogReportsAForeignCid',
    'TheHeartbeatAnswersARing': 'TheHeartbeatAnswersARing',
    'PollsTwiceTheBoundForWaitsOfThatLengthWhereConfigured': 'PollsTwiceTheBoundForWaitsOfThatLengthWhereConfigured',
    'WithoutSpaceForTheHeaderAreaTheRegionIsNotMade': 'WithoutSpaceForTheHeaderAreaTheRegionIsNotMade',
    'WithoutVsockAndPortAProgramUsesTimedSleeps': 'WithoutVsockAndPortAProgramUsesTimedSleeps',
    'WithoutVsockInTheKernelTheStartReportsTheRemedy': 'WithoutVsockInTheKernelTheStartReportsTheRemedy',
    'StartsWorkersWhoseDoorbellTheBrokerSignals': 'StartsWorkersWhoseDoorbellTheBrokerSignals',
    'StartsWorkersWhoseDoorbellTheGuestSignals': 'StartsWorkersWhoseDoorbellTheGuestSignals',
    'AfterItTheNextBrokerReportsTheEndOfItsWorker': 'AfterItTheNextBrokerReportsTheEndOfItsWorker',
    'ReportsTheRemedyOnAMachineWithoutIt': 'ReportsTheRemedyOnAMachineWithoutIt',
    'AMetricsNameHasItsUnitAndKind': 'AMetricsNameHasItsUnitAndKind',
    'ReportsAMissingLibrary': 'ReportsAMissingLibrary', 'TheStatusReportsThem': 'TheStatusReportsThem',
    'SaysNothing': 'ReportsNothing', 'AsCudaSays': 'AsCudaSays', 'MakesRoomBeforeItGivesUp': 'MakesRoomBeforeItGivesUp',
    'AWorkerWhoseProxyWasNotKeptIsLostAlone': 'AWorkerWhoseProxyWasNotKeptIsLostAlone',
    'ReportsTheTransportAndVsocksNumbersWhereTheyDiffer': 'ReportsTheTransportAndVsocksNumbersWhereTheyDiffer',
    'ReportsOmissions': 'ReportsOmissions', 'ReportsMissingTools': 'ReportsMissingTools',
    'ReportsAndLeavesKeysThatNeedARestart': 'ReportsAndLeavesKeysThatNeedARestart',
    'ReportsAndLeavesForeignFilesInItsWay': 'ReportsAndLeavesForeignFilesInItsWay',
    'ReportsAFailedMapping': 'ReportsAFailedMapping', 'IsNotMadeWhereItCannotBeReported': 'IsNotMadeWhereItCannotBeReported',
    'ReportsAnImpossibleRegionAndLeavesNothing': 'ReportsAnImpossibleRegionAndLeavesNothing',
    'ReportsTheHoldersOfTheSlots': 'ReportsTheHoldersOfTheSlots',
    'BeginAndEndReturnTheDriversErrors': 'BeginAndEndReturnTheDriversErrors',
    'InstantiationReportsTheError': 'InstantiationReportsTheError',
    'ReportsDifferences': 'ReportsDifferences', 'ReportsTheGpusThatItCanSwitch': 'ReportsTheGpusThatItCanSwitch',
    'IsFoundAndReportsItsKind': 'IsFoundAndReportsItsKind', 'ReportsTheGpusOfTheWorkers': 'ReportsTheGpusOfTheWorkers',
    'ReportsCallsOutsideTheTable': 'ReportsCallsOutsideTheTable',
}
SIMGPU_TESTS = ('tests/unit/simgpu/', 'tests/ptx/', 'tests/contract/')

# ---- the engine ----------------------------------------------------------------------------------------------------------
TOKEN = re.compile(r'''R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|//(?:[^\n\\]|\\.)*|/\*.*?\*/|\b\d[\w.']*|'(?:\\.|[^'\\\n])+'|[A-Za-z_]\w*''', re.S)
IDENTIFIER = re.compile(r'[A-Za-z_]\w*')
CODE_IN_TEXT = re.compile(r'`[^`\n]*`')


def in_scope(path, scope):
    return any(path.startswith(p) for p in scope if p[0] != '!') and not any(path.startswith(p[1:]) for p in scope if p[0] == '!')


def replace_code(text, table):
    """Outside comments and strings; in comments between backquotes."""
    def one(m):
        token = m.group(0)
        if token.startswith(('//', '/*')):
            return CODE_IN_TEXT.sub(lambda c: IDENTIFIER.sub(lambda i: table.get(i.group(0), i.group(0)), c.group(0)), token)
        return table.get(token, token)
    return TOKEN.sub(one, text)


def replace_words(text, table):
    return IDENTIFIER.sub(lambda m: table.get(m.group(0), m.group(0)), text)


def git(*words):
    return subprocess.run(['git', *words], check=True, capture_output=True, text=True).stdout


def text_files():
    for path in git('ls-files', '-z').split('\0'):
        if not path or path.startswith(EXEMPT) or not os.path.isfile(path) or os.path.islink(path): continue
        if path.startswith('tests/fuzz/corpus'): continue
        with open(path, 'rb') as f: data = f.read()
        if b'\0' in data: continue
        try: yield path, data.decode()
        except UnicodeDecodeError: continue


def move_files():
    moved = {}
    for old, new in FILES.items():
        if os.path.exists(old) and not os.path.exists(new):
            os.makedirs(os.path.dirname(new), exist_ok=True)
            git('mv', old, new)
            print(f'moved {old} -> {new}')
            moved[old] = new
        elif not os.path.exists(old) and not os.path.exists(new):
            print(f'NEITHER {old} NOR {new}')
    return moved


def path_rules():
    """By folder, the relative paths that a list of CMake's there may have."""
    rules = {}
    for old, new in FILES.items():
        folder = os.path.dirname(old)
        while folder:
            if new.startswith(folder + '/'): rules.setdefault(folder, {})[old[len(folder) + 1:]] = new[len(folder) + 1:]
            folder = os.path.dirname(folder)
    return rules


def replace_paths(path, text, rules):
    for old, new in FILES.items():
        if old in text: text = re.sub(r'(?<![\w/.-])' + re.escape(old) + r'(?![\w-]|\.\w)', new, text)
        if old.startswith('tests/') and old[6:] in text and path.startswith('tests/'):
            text = re.sub(r'(?<![\w.])(/)' + re.escape(old[6:]) + r'(?![\w-])', r'\1' + new[6:], text)
    if not (path.endswith('CMakeLists.txt') or path.endswith('.cmake')): return text
    folder = os.path.dirname(path)
    for base, table in rules.items():
        for old, new in table.items():
            if old not in text: continue
            for prefix in {os.path.relpath(base, folder) + '/' if base != folder else '', '${models}/' if base == 'tests/models' else ''}:
                prefix = prefix.removeprefix('./')
                text = re.sub(r'(?<![\w/.}-])' + re.escape(prefix + old) + r'(?![\w-]|\.\w)', (prefix + new).replace('\\', ''), text)
            text = re.sub(r'(\$\{CMAKE_CURRENT_LIST_DIR\}/)' + re.escape(old) + r'(?![\w-])', r'\1' + new, text) if base == folder else text
    return text


def test_names(texts):
    found = {}
    for path, text in texts.items():
        if not path.startswith('tests/') or not path.endswith('.cc'): continue
        for suite, name in re.findall(r'^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)', text, re.M):
            if name in NAMES:
                found[name] = NAMES[name]
                continue
            if path.startswith(SIMGPU_TESTS): words = {k: v for k, v in TEST_WORDS.items() if k not in ('Lane', 'Lanes', 'Front', 'Mirrored')}
            else: words = TEST_WORDS
            parts = re.findall(r'[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+', name)
            if '_' in name or ''.join(parts) != name: continue
            if 'Apart' in parts: continue
            new = ''.join(words.get(p, p) for p in parts)
            if new != name: found[name] = new
    return {k: v for k, v in found.items() if k != v}


def moved_rows():
    page = 'docs/moved.md'
    with open(page) as f: text = f.read()
    rows = {}
    for old, new in FILES.items():
        if not os.path.exists(new): continue
        key = os.path.splitext(old)[0], os.path.splitext(new)[0]
        rows.setdefault(key, []).append(os.path.splitext(old)[1])
    if not text.endswith('\n'): text += '\n'
    for (old, new), ends in rows.items():
        row = f'| `{old}{ends[0] if len(ends) == 1 else ""}` | `{new}{ends[0] if len(ends) == 1 else ""}` |\n'
        if row not in text:
            text += row
            print('docs/moved.md:', row.strip())
    with open(page, 'w') as f: f.write(text)


def main():
    arguments = sys.argv[1:]
    if arguments == ['--list']: return show()
    formats = '--no-format' not in arguments
    arguments = [a for a in arguments if a != '--no-format']
    if len(arguments) != 1 or arguments[0].startswith('-'): sys.exit(__doc__)
    os.chdir(arguments[0])
    move_files()
    before = dict(text_files())
    texts = dict(before)
    rules = path_rules()
    for scope, (where, marker), table in ONCE:
        if not any(re.search(marker, t) for p, t in texts.items() if p.startswith(where)): continue
        for path in texts:
            if in_scope(path, scope): texts[path] = replace_code(texts[path], table)
    bare = {os.path.basename(o): os.path.basename(n) for o, n in FILES.items()
            if os.path.basename(o) not in ('figures.h', 'words.h', 'say.h', 'say.cc', 'bell.h', 'guest_waker.h', 'guest_waker.cc', 'host_calls.h', 'host_calls.cc')}
    for path in texts:
        text = texts[path]
        text = replace_paths(path, text, rules)
        if CXX.search(path) or path.endswith('.md'):
            text = re.sub(r'(?<![\w/.-])\w+\.(?:h|cc|pml)\b', lambda m: bare.get(m.group(0), m.group(0)), text)
        for scope, pattern, new in PATTERNS:
            if in_scope(path, scope): text = re.sub(pattern, new, text, flags=re.M)
        text = replace_words(text, EVERYWHERE)
        if CXX.search(path): text = replace_code(text, PLAIN)
        else: text = CODE_IN_TEXT.sub(lambda c: replace_words(c.group(0), PLAIN), text)
        if CXX.search(path) or path.endswith('.pml'):
            for scope, table in SCOPES:
                if in_scope(path, scope): text = replace_code(text, table)
        for scope, pattern, new in LATE:
            if in_scope(path, scope): text = re.sub(pattern, new, text, flags=re.M)
        texts[path] = text
    tests = test_names(texts)
    for old, new in tests.items(): print(f'test {old} -> {new}')
    changed = []
    for path, text in texts.items():
        if path.startswith(('tests/', 'docs/', 'tools/', 'cmake/', 'ring/', 'host/', 'guest/')): text = replace_words(text, tests)
        if text == before[path]: continue
        with open(path, 'w') as f: f.write(text)
        changed.append(path)
    moved_rows()
    formatted = [p for p in set(changed) | set(FILES.values()) if re.search(r'\.(h|cc)$', p) and os.path.exists(p)]
    formatted += [p for p in changed if re.search(r'^(ring|tests)/.*\.c$', p)]
    if formatted and formats: subprocess.run(['clang-format', '-i', *sorted(set(formatted))], check=True)
    for path in sorted(changed): print('changed', path)
    print(len(changed), 'files changed')


def show():
    print('| was | is | where |\n|---|---|---|')
    for old, new in FILES.items(): print(f'| `{old}` | `{new}` | file |')
    for old, new in (EVERYWHERE | PLAIN).items(): print(f'| `{old}` | `{new}` | everywhere |')
    for scope, table in SCOPES:
        for old, new in table.items(): print(f'| `{old}` | `{new}` | {", ".join(scope[:4])}{" …" if len(scope) > 4 else ""} |')


if __name__ == '__main__': main()
