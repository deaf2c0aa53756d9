#!/bin/sh
# Submits what is not done yet, or joins: sh resubmit.sh model.plan.json
if missing=$(tenfold join "$1" --status --quiet); then
    tenfold join "$1"
else
    sbatch --array="$missing" "$(dirname "$0")/convert.sh" "$1"
fi
