"""Ctrl-C in the middle of batches on a device: it arrives, and nothing is lost or kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.device_scripts import run

pytestmark = pytest.mark.once


def test_ctrl_c_at_random_moments(emulator: Path) -> None:
    lines = run(
        emulator,
        """
        import random, signal, sys, threading
        sys.path.append("tests/support")
        import torch_cpu

        moments, main = random.Random(1), threading.main_thread().ident
        there = cpu.to("cuda")

        kinds = [
            lambda: sampler.sample(there, SEEDS),
            lambda: [sampler.submit(there, SEEDS) for _ in range(3)][1].result(),
            lambda: sampler.sample_many(there, [SEEDS] * 3),
            lambda: sampler.launch(there, SEEDS, **IN_FLIGHT).result(),
        ]

        def held():
            gc.collect()
            stats = pgs.cuda.memory_stats()
            return stats["flights"], stats["used"], pgs.engine.memory_stats()["live"]

        for work in kinds:
            work()
        before = held()
        for loop in range(100):
            moment = moments.uniform(0, 0.02)
            timer = threading.Timer(moment, signal.pthread_kill, (main, signal.SIGINT))
            try:
                timer.start()
                while True:
                    kinds[loop % 4]()
            except KeyboardInterrupt:
                timer.join()
            assert lists(sampler.sample(there, SEEDS, batch=2)) == want
        print(before[0], held() == before or (before, held()))
        """,
    )
    assert lines == ["0 True"]


def test_ctrl_c_at_every_moment(emulator: Path) -> None:
    lines = run(
        emulator,
        """
        import sys
        sys.path.append("tests/support")
        import torch_cpu
        from interrupts import at_every_moment

        there = cpu.to("cuda")
        kinds = {
            "sample": lambda: sampler.sample(there, SEEDS),
            "submit": lambda: sampler.submit(there, SEEDS).result(),
            "many": lambda: sampler.sample_many(there, [SEEDS] * 2),
            "launch": lambda: sampler.launch(there, SEEDS, **IN_FLIGHT).result(),
            "graph": lambda: sampler.sample(cpu.to("cuda"), SEEDS),
        }

        def held():
            stats = pgs.cuda.memory_stats()
            return stats["flights"], stats["used"], pgs.engine.memory_stats()["live"]

        for name, work in kinds.items():
            work()
            gc.collect()
            before = held()
            for moment in at_every_moment(work):
                if held() != before:
                    gc.collect()
                assert held() == before, (name, moment, held(), before)
            assert moment > 5
            assert lists(sampler.sample(there, SEEDS, batch=2)) == want
            print(name)
        """,
    )
    assert lines == ["sample", "submit", "many", "launch", "graph"]
