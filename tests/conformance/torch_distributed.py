"""NCCL, with one process as the whole group."""
import os

import torch
import torch.distributed as distributed

os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29555", RANK="0", WORLD_SIZE="1")
distributed.init_process_group("nccl")
values = torch.arange(100, device="cuda", dtype=torch.float32)
distributed.all_reduce(values)
distributed.broadcast(values, 0)
print("sum", float(values.sum()))
distributed.destroy_process_group()
