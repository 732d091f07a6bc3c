"""Run a peer on a coded table: an interpreter that has dpmm runs this file, which imports nothing of accord.

    python peers.py METHOD EPSILON DELTA SEED IN.npz OUT.npz

IN holds ``codes`` and ``sizes``; OUT gets ``codes``, as many rows, and ``figures``: CPU seconds and MB. The guarantee
of dpmm is for adding or removing a record; it runs at the epsilon that gives (EPSILON, DELTA) under replacing one, by
halving rho, which is generous to it: its choices of tables cost more than that under replacing one.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import importlib.metadata
import resource
import sys
import time

import numpy as np

ROUNDS = 3  # a column; with its defaults AIM does not end in minutes
ITERATIONS = 500


def under_replacing(epsilon: float, delta: float) -> float:
    from dpmm.models.base.mechanisms.cdp2adp import cdp_eps, cdp_rho  # type: ignore[import-not-found]  # noqa: PLC0415

    return float(cdp_eps(cdp_rho(epsilon, delta) / 2, delta))


def main() -> None:
    if sys.argv[1:] == ["version"]:
        print("dpmm " + importlib.metadata.version("dpmm"))
        return
    method, epsilon, delta, seed, source, target = sys.argv[1:]
    import pandas as pd  # type: ignore[import-not-found]  # noqa: PLC0415
    from dpmm.models.aim import AIMGM  # type: ignore[import-not-found]  # noqa: PLC0415
    from dpmm.models.mst import MSTGM  # type: ignore[import-not-found]  # noqa: PLC0415

    given = np.load(source)
    names = [str(place) for place in range(len(given["sizes"]))]
    frame = pd.DataFrame(given["codes"], columns=names)
    terms = {
        "epsilon": under_replacing(float(epsilon), float(delta)),
        "delta": float(delta),
        "domain": dict(zip(names, given["sizes"].tolist(), strict=True)),
        "random_state": np.random.RandomState(int(seed)),
        "n_jobs": 1,
    }
    start = time.process_time()
    makers = {
        "AIM": lambda: AIMGM(**terms, rounds=ROUNDS * len(names), n_iters=ITERATIONS),
        "MST": lambda: MSTGM(**terms),
    }
    model = makers[method]()
    model.fit(frame)
    made = model.generate(len(frame))[names].to_numpy().astype(int)
    figures = [time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]
    np.savez(target, codes=made, figures=np.array(figures))


if __name__ == "__main__":
    main()
