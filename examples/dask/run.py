"""python run.py PLAN: every item is a task of Dask."""

import sys

import tenfold
from dask.distributed import Client, LocalCluster

if __name__ == "__main__":
    plan = tenfold.open_plan(sys.argv[1])
    client = Client(LocalCluster(n_workers=2))
    client.gather(client.map(plan.run, range(len(plan.items)), pure=False))
    print(plan.join())
