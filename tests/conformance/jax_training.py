"""JAX: steps of training under jit, loops and branches. With the argument on, XLA makes graphs; with off, none."""
import os
import sys

# XLA calls a graph a command buffer, and records also small ones with a least size of 1.
FLAGS = {
    "on": "--xla_gpu_enable_command_buffer=FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,CONDITIONAL,WHILE"
    " --xla_gpu_graph_min_graph_size=1",
    "off": "--xla_gpu_enable_command_buffer=",
}
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
os.environ["XLA_FLAGS"] = (os.environ.get("XLA_FLAGS", "") + " " + FLAGS[sys.argv[1]]).strip()

import jax
import jax.numpy as jnp
import numpy
from show import near

jax.config.update("jax_default_matmul_precision", "highest")
print("platform", jax.devices()[0].platform)
STEPS, RATE, MOMENTUM = 200, 0.05, 0.9
random = numpy.random.RandomState(1)
inputs, targets = random.randn(64, 16).astype("f4"), random.randn(64, 4).astype("f4")
start = {"in": (random.randn(16, 32) / 4).astype("f4"), "out": (random.randn(32, 4) / 6).astype("f4")}


def loss_of(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights["in"]) @ weights["out"] - y) ** 2)


@jax.jit
def step(weights, speeds, x, y):
    loss, slopes = jax.value_and_grad(loss_of)(weights, x, y)
    speeds = jax.tree_util.tree_map(lambda speed, slope: MOMENTUM * speed + slope, speeds, slopes)
    return jax.tree_util.tree_map(lambda w, speed: w - RATE * speed, weights, speeds), speeds, loss


def train():
    weights = jax.tree_util.tree_map(jnp.asarray, start)
    speeds = jax.tree_util.tree_map(jnp.zeros_like, weights)
    losses = []
    for i in range(STEPS):
        part = slice(16 * (i % 4), 16 * (i % 4) + 16)
        weights, speeds, loss = step(weights, speeds, inputs[part], targets[part])
        losses.append(loss)
    return numpy.asarray(jnp.stack(losses)), weights


def train_here():
    """The same with NumPy in doubles, the slopes by hand."""
    first, second = start["in"].astype("f8"), start["out"].astype("f8")
    speeds = [numpy.zeros_like(first), numpy.zeros_like(second)]
    losses = []
    for i in range(STEPS):
        x, y = inputs[16 * (i % 4) :][:16].astype("f8"), targets[16 * (i % 4) :][:16].astype("f8")
        hidden = numpy.tanh(x @ first)
        off = hidden @ second - y
        losses.append((off**2).mean())
        slope = 2 * off / off.size
        slopes = x.T @ ((slope @ second.T) * (1 - hidden**2)), hidden.T @ slope
        speeds = [MOMENTUM * speed + slope for speed, slope in zip(speeds, slopes)]
        first, second = first - RATE * speeds[0], second - RATE * speeds[1]
    return numpy.asarray(losses), {"in": first, "out": second}


losses, weights = train()
right, expected = train_here()
assert right[-1] < right[0]
near("losses", losses, right, 1e-3)
for name in start:
    near(f"weights {name}", weights[name], expected[name], 1e-2)


# A convolution, and a step that is called with new values each time.
def picture_loss(kernel, pictures):
    return jnp.mean(jax.nn.relu(jax.lax.conv(pictures, kernel, (1, 1), "SAME")) ** 2) - 0.1 * jnp.sum(kernel)


@jax.jit
def picture_step(kernel, pictures):
    loss, slope = jax.value_and_grad(picture_loss)(kernel, pictures)
    return kernel - 0.01 * slope, loss


kernel = jnp.full((4, 3, 3, 3), 0.1)
pictures = jax.random.uniform(jax.random.PRNGKey(3), (5, 2, 3, 16, 16))
seen = []
for i in range(50):
    kernel, loss = picture_step(kernel, pictures[i % 5])
    seen.append(float(loss))
assert seen[-1] < seen[0]
print("pictures", [f"{value:.2f}" for value in seen[::10]])


# Loops and branches that the GPU decides.
@jax.jit
def collatz(number):
    return jax.lax.while_loop(
        lambda state: state[0] != 1,
        lambda state: (jnp.where(state[0] % 2 == 0, state[0] // 2, 3 * state[0] + 1), state[1] + 1),
        (number, 0),
    )[1]


print("collatz", [int(collatz(number)) for number in (1, 6, 7, 27, 97)])


@jax.jit
def choose(which, values):
    taken = jax.lax.switch(which, [lambda v: v + 1, lambda v: v * 2, lambda v: jnp.flip(v)], values)
    return jax.lax.cond(jnp.sum(taken) > 10, lambda v: v - 10, lambda v: v, taken)


print("branches", [numpy.asarray(choose(which, jnp.arange(5))).tolist() for which in (0, 1, 2, 1, 0)])


@jax.jit
def scanned(values):
    return jax.lax.scan(lambda sum, value: ((sum * 3 + value) % 1009, sum), 1, values)


last, sums = scanned(jnp.arange(100))
print("scan", int(last), int(jnp.sum(sums)))
print("loop", int(jax.jit(lambda n: jax.lax.fori_loop(0, n, lambda i, sum: (sum * 5 + i) % 997, 1))(50)))
