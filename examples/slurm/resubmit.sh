#!/bin/sh
# Submits what is not done yet, or joins: sh resubmit.sh model.plan.json
missing=$(tenfold join "$1" --status --quiet)
case $? in
    0) tenfold join "$1" ;;
    1) sbatch --array="$missing" "$(dirname "$0")/convert.sh" "$1" ;;
    *) exit 2 ;; # it has said why
esac
