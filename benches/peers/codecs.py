"""Decoding alone: this project's codecs beside the field's libraries, on the same chunks, by `floor`.

codecs.py FLOOR DATA RUNS VARIANT..

FLOOR is the driver, DATA a folder of arrays, RUNS a file that each run is appended to. 11 rounds with one thread, and with two, taking turns. Prints a line for each: decoded
bytes, GB/s (10^9), medians, and the median of the rounds' ratios with its 95% interval (bootstrap).
"""

import json
import random
import statistics
import subprocess
import sys

ROUNDS = 11


def main():
    floor, data, path, *variants = sys.argv[1:]
    random.seed(1)
    with open(path, "a") as runs:

        def speed(variant, threads, codecs):
            command = [floor, str(threads), f"{data}/{variant}.zarr", "--repeat", "1", "--codecs", codecs]
            answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            runs.write(json.dumps({"variant": variant, "threads": threads, "codecs": codecs, **answer}) + "\n")
            return answer["n"] / answer["wall"] / 1e9

        for variant in variants:
            for threads in (1, 2):
                rounds = [(speed(variant, threads, "ours"), speed(variant, threads, "library")) for _ in range(ROUNDS)]
                ratios = [ours / library for ours, library in rounds]
                medians = sorted(statistics.median(random.choices(ratios, k=ROUNDS)) for _ in range(2000))
                ours, library = (statistics.median(speeds) for speeds in zip(*rounds))
                print(f"| {variant} | {threads} | **{ours:.2f}** | {library:.2f} | {statistics.median(ratios):.2f} [{medians[50]:.2f}, {medians[1949]:.2f}] |")


main()
