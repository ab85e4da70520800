"""usage: bench_plot.py PLOT
Tests the script that draws for `ivgpu bench`: its output is XML with one mark for each value, and bad input gives exit
code 2 and one sentence.
"""
import collections
import copy
import json
import math
import runpy
import subprocess
import sys
import types
import unittest
import xml.etree.ElementTree as ElementTree

PLOT = sys.argv.pop(1)
plot = types.SimpleNamespace(**runpy.run_path(PLOT))


def summary(median, ascending=True):
    """101 samples around the median, each a percentile of its own."""
    samples = [median * 2 ** ((rank - 50) / 50) for rank in range(101)]
    if not ascending:
        samples.reverse()
    return {"samples": 101, "best": samples[0], "p50": median, "p90": samples[90], "p99": samples[99],
            "worst": samples[100], "percentiles": samples}


def figure(group, name, unit="us", native=10, ivgpu=12, **more):
    medians = {"native": native, "ivgpu": ivgpu}
    sides = {side: summary(median, unit in ("us", "ms")) for side, median in medians.items() if median}
    return {"group": group, "name": name, "unit": unit, **sides, **more}


def run(*figures, **more):
    setting = {"ivgpu": "0.1.0", "made": "2026-01-02T03:04:05Z", "processor": "Some CPU <fast> & \"cheap\"\x1b",
               "processors": 16, "kernel": "6.1.0", "gpu": "Some GPU", "driver": "driver 580.1",
               "policy": "time slices"}
    return {"format": 1, "setting": setting, "figures": list(figures), **more}


def some_run():
    return run(figure("latency", "launch_synchronize"), figure("latency", "idle_host_processor", "%", None, 1),
               figure("memory", "texture_kernel", "ms", 5, None),
               *(figure("copy", "pinned_h2d", "GB/s", size / 1e3, size / 2e3, bytes=size) for size in (4096, 1 << 20)),
               *(figure("sessions", "launch_synchronize", sessions=number) for number in (1, 2, 4)))


def did(per_second=900, of_alone=0.25):
    p50, p99 = (549, 700) if per_second else (0, 0)
    return {"per_second": per_second, "mean_us": 540, "p50_us": p50, "p99_us": p99, "of_alone": of_alone,
            "by_weight": 0.97, "jain": 0.98, "jain_least": 0.96}


def load(mix="wait, full", weight=1, **ways):
    return {"mix": mix, "load": "wait", "vms": 1, "weight": weight, "native": did(), "time_slice": did(),
            "leases": did(), **ways}


def call(text, *arguments):
    return subprocess.run([PLOT, *arguments], input=text, capture_output=True, encoding="utf-8", check=False)


def drawn(document):
    """The document's elements by their tag, and all of its text."""
    done = call(json.dumps(document))
    assert (done.returncode, done.stderr) == (0, ""), done
    for word in ("nan", "inf"):
        assert word not in done.stdout, done.stdout
    elements = collections.defaultdict(list)
    for element in ElementTree.fromstring(done.stdout.encode()):
        elements[element.tag.rpartition("}")[2]].append(element)
    return elements, [element.text for element in elements["text"]]


def dots(elements, radius, color=None):
    return sum(dot.get("r") == radius and color in (None, dot.get("fill")) for dot in elements["circle"])


class OfARun(unittest.TestCase):
    def test_has_a_mark_for_each_value(self):
        elements, _ = drawn(some_run())
        self.assertEqual(dots(elements, "3.0"), 2 * 2 + 2 * 2 * 3)  # copies; sessions, p50 and p99
        self.assertEqual(dots(elements, "6.0", "#ffffff"), 3)  # the rims of the medians
        self.assertEqual(dots(elements, "4.0"), 3 + 2 + 2)  # the medians and two legends
        self.assertEqual(len(elements["polygon"]), 2)
        self.assertEqual(len(elements["rect"]), 1 + 3)  # the ground, and the middle half of each side

    def test_has_a_panel_for_what_was_measured_and_no_other(self):
        _, texts = drawn(some_run())
        for text in ("Latencies", "launch_synchronize", "texture_kernel", "A launch and its wait: how often which time",
                     "Copies to the device", "GB/s", "bytes of one copy", "1 MiB", "pinned, native", "pinned, ivgpu",
                     "processes at once on one GPU", "ivgpu, p99", "2026-01-02T03:04:05Z, ivgpu 0.1.0, time slices"):
            self.assertIn(text, texts)
        self.assertNotIn("Copies from the device", texts)
        self.assertNotIn("idle_host_processor", texts)
        _, texts = drawn(run(figure("copy", "pinned_d2h", "GB/s", bytes=4096)))
        self.assertIn("Copies from the device", texts)
        for text in ("Latencies", "processes at once on one GPU"):
            self.assertNotIn(text, texts)

    def test_takes_no_copy_of_the_group_memory_for_a_point_of_a_curve(self):
        elements, texts = drawn(run(figure("memory", "pinned_h2d", "GB/s", bytes=4096)))
        self.assertNotIn("Copies to the device", texts)
        self.assertEqual(elements["circle"], [])

    def test_escapes_texts(self):
        _, texts = drawn(run())
        self.assertIn("Some GPU, driver 580.1, Some CPU <fast> & \"cheap\"  (16 processors), Linux 6.1.0", texts)

    def test_says_that_a_gpu_was_simulated_and_where_figures_are_from(self):
        document = run(source="page 7")
        self.assertTrue(any(text.endswith("; page 7") for text in drawn(document)[1]))
        document["setting"]["simulated"] = True
        self.assertIn("the simulated GPU: these figures say nothing about a GPU", drawn(document)[1])

    def test_draws_medians_where_nothing_else_is_known(self):
        of = {"group": "latency", "name": "launch_synchronize", "unit": "us", "native": {"p50": 9}, "ivgpu": {"p50": 0}}
        elements, texts = drawn(run(of))
        self.assertEqual(dots(elements, "6.0"), 2)
        self.assertIn("dot: median", texts)
        self.assertEqual((len(elements["rect"]), elements["polygon"]), (1, []))

    def test_draws_percentiles_that_contradict_each_other(self):
        for percentiles in ([1e6] * 101, list(range(101, 0, -1)), [5, 0] * 50 + [0]):
            of = figure("latency", "launch_synchronize", ivgpu=None)
            of["native"] |= {"p50": 3, "p99": 2, "best": 4, "percentiles": percentiles}
            self.assertEqual(len(drawn(run(of))[0]["polygon"]), 1)

    def test_is_the_same_bytes_for_the_same_run(self):
        text = json.dumps(some_run())
        self.assertEqual(call(text).stdout, call(text).stdout)


class OfShare(unittest.TestCase):
    def test_has_a_point_for_the_rate_the_progress_and_the_time_of_each_way(self):
        self.assertEqual(dots(drawn([load()])[0], "4.0"), 3 + 9)  # three in the legend
        self.assertEqual(dots(drawn([load(time_slice=did(of_alone=None))])[0], "4.0"), 3 + 8)

    def test_has_a_row_for_each_load(self):
        nothing = did(0, None)
        for loads in ([load(), load("4 wait", 4)], []):
            _, texts = drawn([*loads, load("4 busy", native=nothing, time_slice=nothing, leases=nothing)])
            for text in ("wait, full: wait", "4 wait: wait, weight 4"):
                self.assertEqual(text in texts, bool(loads))
            self.assertIn("4 busy: wait", texts)
            self.assertEqual(texts.count("0.970"), len(loads) + 1)
        self.assertIn("Loads that share a GPU", drawn([])[1])


class BadInput(unittest.TestCase):
    def refused(self, text, sentence, *arguments):
        done = call(text, *arguments)
        self.assertEqual((done.returncode, done.stdout, done.stderr.count("\n")), (2, "", 1), (text[:80], done))
        self.assertIn(sentence, done.stderr)

    def test_is_refused_in_one_sentence(self):
        for text in ("", "{", "7", "{}", "null", "[" * 100000, "\0", "{\"figures\": []}"):
            self.refused(text, "plot: standard input is no JSON of ivgpu bench")
        self.refused("{\"format\": 2}", "is of another version of ivgpu bench: its format is not 1")
        self.refused("", "plot: /nowhere/run.json cannot be read: No such file or directory", "/nowhere/run.json")
        self.refused("", "plot: / cannot be read: Is a directory", "/")
        for arguments in (("--fast",), ("a", "b")):
            self.refused("", "see plot --help", *arguments)
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([PLOT], input=b"[]", stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr, b"plot: the picture cannot be written: No space left on device\n")

    def test_a_field_that_is_missing_or_another_is_refused_or_left_out(self):
        def places(value, place=()):
            if isinstance(value, (dict, list)):
                for key, inner in value.items() if isinstance(value, dict) else enumerate(value[:1]):
                    yield (*place, key)
                    yield from places(inner, (*place, key))

        refused = set()
        for document in (run(figure("latency", "launch_synchronize")), [load()]):
            for place in places(document):
                for other in (None, {}, "text", -1, 1e300, math.nan):
                    changed = inner = copy.deepcopy(document)
                    for key in place[:-1]:
                        inner = inner[key]
                    inner[place[-1]] = other
                    try:
                        ElementTree.fromstring(plot.picture(json.dumps(changed)).encode())
                    except plot.BadInput:
                        refused.add(place[-1])
        for name in ("format", "setting", "gpu", "figures", "unit", "p50", "percentiles", "mix", "weight", "leases",
                     "p99_us"):
            self.assertIn(name, refused)


class Axis(unittest.TestCase):
    def test_gives_equal_factors_equal_distances(self):
        axis = plot.Axis([1, 100], 0, 200, 1)
        for number, at in ((1, 0), (10, 100), (100, 200), (1e9, 200), (0, 0)):
            self.assertAlmostEqual(axis.at(number), at)

    def test_has_ticks_at_powers_of_ten_or_finer(self):
        for low, high, ticks in ((0.5, 2000, [1, 10, 100, 1000]), (1.5, 30, [2, 5, 10, 20]),
                                 (12.5, 44.7, [15, 20, 25, 30, 35, 40])):
            self.assertEqual(plot.Axis([low, high], 0, 1, 1).ticks(), ticks)
        self.assertEqual(len(plot.Axis([7.9, 8.4], 0, 1, 1).ticks()), 6)  # the range from 7.9 to 8.4


class Numbers(unittest.TestCase):
    def test_have_the_digits_that_count(self):
        for number, text in ((0.01234, "0.0123"), (0.3584, "0.358"), (9.7944, "9.794"), (90.294, "90.29"),
                             (317.36, "317.4"), (12345.6, "12346")):
            self.assertEqual(plot.number_text(number), text)
        for size, text in ((4096, "4 KiB"), (256 << 20, "256 MiB"), (8 << 30, "8 GiB"), (1000, "1000 B")):
            self.assertEqual(plot.size_text(size), text)
        for time, text in ((0.5, "500 ns"), (1, "1 µs"), (2000, "2 ms"), (5e6, "5 s")):
            self.assertEqual(plot.time_text(time), text)

    def test_samples_between_percentiles_count_in_proportion(self):
        side = plot.Summary({"p50": 50, "percentiles": list(range(101))})
        for value, part in ((-1, 0), (0, 0), (25, 0.25), (25.5, 0.255), (100, 1), (1000, 1)):
            self.assertAlmostEqual(side.below(value), part)
        self.assertEqual(plot.Summary({"p50": 7, "percentiles": [7] * 101}).below(7), 1)


if __name__ == "__main__":
    unittest.main()
