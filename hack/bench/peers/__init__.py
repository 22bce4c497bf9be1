"""muster beside Kueue and Volcano alone, in one run on one testbed; `python -m hack.bench.peers --help`.

Each contender has a namespace and queues of its own, and its turn in each round: what belongs to another contender is
stopped meanwhile, or has nothing to do. Numbers of one round are from the same minutes of the same machine, so that
ratios within a round say most. `docs/comparison.md` says what each number means.
"""
