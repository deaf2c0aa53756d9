"""picklescan, modelscan and fickling: which of some files each of them warns of. Prints {file: [the names of those that do]}."""

import contextlib
import io
import json
import logging
import sys
import zipfile

from fickling.analysis import Severity, check_safety
from fickling.fickle import StackedPickle
from modelscan.modelscan import ModelScan
from picklescan.scanner import SafetyLevel, scan_file_path

logging.disable(logging.CRITICAL)


def picklescan(path):
    found = scan_file_path(path)
    return found.issues_count > 0 or any(g.safety == SafetyLevel.Dangerous for g in found.globals)


def modelscan(path):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        found = ModelScan().scan(path)
    return found["summary"]["total_issues"] > 0


def fickling(path):
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            programs = [archive.read(name) for name in archive.namelist() if name.endswith(".pkl")]
    else:
        with open(path, "rb") as file:
            programs = [file.read()]
    pickles = [pickle for program in programs for pickle in StackedPickle.load(io.BytesIO(program))]
    # Its lower degrees are given to every file of torch.save, sound ones too: they say nothing here.
    return any(check_safety(pickle).severity >= Severity.LIKELY_OVERTLY_MALICIOUS for pickle in pickles)


def warns(scanner, path):
    try:
        return scanner(path)
    except Exception:  # it gives up on damaged files, which is no warning
        return False


found = {}
# Scanners say things on the way.
with contextlib.redirect_stdout(sys.stderr):
    for file in sys.argv[1:]:
        scanners = (picklescan, modelscan, fickling)
        found[file] = [scanner.__name__ for scanner in scanners if warns(scanner, file)]
json.dump(found, sys.stdout)
