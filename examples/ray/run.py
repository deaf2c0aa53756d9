"""python run.py PLAN: every item is a task of Ray."""

import sys

import ray
import tenfold

plan = tenfold.open_plan(sys.argv[1])
ray.init()


@ray.remote(max_retries=3)
def run(item):
    return plan.run(item)


ray.get([run.remote(item) for item in range(len(plan.items))])
print(plan.join())
