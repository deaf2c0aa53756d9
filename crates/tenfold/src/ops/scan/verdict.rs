//! What classes and functions could do.

use core::fmt;

/// What a class or function is to whoever loads a pickle that names it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[non_exhaustive]
pub enum Verdict {
    /// It makes plain data.
    Harmless,
    /// It is on no list: what it does is up to its author.
    Unknown,
    /// It can be used to run code, or to reach files or the network.
    Dangerous,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Harmless => "harmless",
            Verdict::Unknown => "unknown",
            Verdict::Dangerous => "dangerous",
        })
    }
}

const COMMANDS: &str = "runs commands";
const CODE: &str = "runs any code";
const ATTRIBUTES: &str = "reaches any attribute, and so any code";
const FILES: &str = "reads, writes or removes files";
const NETWORK: &str = "uses the network";
const LOADS: &str = "loads another pickle or program";
const MEMORY: &str = "reaches memory and libraries of the process";
const DEBUGS: &str = "runs code, or waits for somebody";

/// Modules of which everything counts, with those in them.
const MODULES: &[(&str, &str)] = &[
    ("os", COMMANDS),
    ("posix", COMMANDS),
    ("nt", COMMANDS),
    ("subprocess", COMMANDS),
    ("_posixsubprocess", COMMANDS),
    ("commands", COMMANDS),
    ("popen2", COMMANDS),
    ("pty", COMMANDS),
    ("multiprocessing", COMMANDS),
    ("concurrent", COMMANDS),
    ("_aix_support", COMMANDS),
    ("_osx_support", COMMANDS),
    ("_pyrepl", COMMANDS),
    ("asyncio", COMMANDS),
    ("distutils", COMMANDS),
    ("setuptools", COMMANDS),
    ("pip", COMMANDS),
    ("ensurepip", COMMANDS),
    ("venv", COMMANDS),
    ("webbrowser", COMMANDS),
    ("antigravity", COMMANDS),
    ("uuid", COMMANDS),
    ("sys", CODE),
    ("code", CODE),
    ("codeop", CODE),
    ("runpy", CODE),
    ("importlib", CODE),
    ("imp", CODE),
    ("zipimport", CODE),
    ("pkgutil", CODE),
    ("pydoc", CODE),
    ("timeit", CODE),
    ("trace", CODE),
    ("cProfile", CODE),
    ("profile", CODE),
    ("doctest", CODE),
    ("unittest", CODE),
    ("idlelib", CODE),
    ("lib2to3", CODE),
    ("test", CODE),
    ("threading", CODE),
    ("_thread", CODE),
    ("sched", CODE),
    ("signal", CODE),
    ("gc", CODE),
    ("atexit", CODE),
    ("inspect", CODE),
    ("ast", CODE),
    ("dis", CODE),
    ("site", CODE),
    ("logging.config", CODE),
    ("numpy.testing", CODE),
    ("numpy.f2py", CODE),
    ("numpy.distutils", CODE),
    ("torch.hub", CODE),
    ("torch.package", CODE),
    ("torch.utils", CODE),
    ("torch._dynamo", CODE),
    ("torch._inductor", CODE),
    ("torch.fx", CODE),
    ("torch.distributed", CODE),
    ("torch.multiprocessing", CODE),
    ("torch.jit.frontend", CODE),
    ("tensorflow", CODE),
    ("keras", CODE),
    ("bdb", DEBUGS),
    ("pdb", DEBUGS),
    ("pickle", LOADS),
    ("_pickle", LOADS),
    ("cPickle", LOADS),
    ("dill", LOADS),
    ("cloudpickle", LOADS),
    ("marshal", LOADS),
    ("shelve", LOADS),
    ("jsonpickle", LOADS),
    ("ctypes", MEMORY),
    ("_ctypes", MEMORY),
    ("cffi", MEMORY),
    ("mmap", MEMORY),
    ("shutil", FILES),
    ("tempfile", FILES),
    ("io", FILES),
    ("_io", FILES),
    ("glob", FILES),
    ("fileinput", FILES),
    ("linecache", FILES),
    ("zipfile", FILES),
    ("tarfile", FILES),
    ("sqlite3", FILES),
    ("dbm", FILES),
    ("socket", NETWORK),
    ("_socket", NETWORK),
    ("ssl", NETWORK),
    ("socketserver", NETWORK),
    ("http", NETWORK),
    ("httplib", NETWORK),
    ("urllib", NETWORK),
    ("urllib2", NETWORK),
    ("requests", NETWORK),
    ("aiohttp", NETWORK),
    ("ftplib", NETWORK),
    ("smtplib", NETWORK),
    ("poplib", NETWORK),
    ("imaplib", NETWORK),
    ("nntplib", NETWORK),
    ("telnetlib", NETWORK),
    ("xmlrpc", NETWORK),
    ("operator", ATTRIBUTES),
    ("_operator", ATTRIBUTES),
    ("functools", ATTRIBUTES),
    ("copyreg", ATTRIBUTES),
];

/// Single names of modules that are no danger as a whole.
const NAMES: &[(&str, &[&str], &str)] = &[
    (
        "builtins",
        &[
            "eval",
            "exec",
            "compile",
            "execfile",
            "__import__",
            "breakpoint",
            "apply",
            "map",
            "filter",
            "reload",
        ],
        CODE,
    ),
    (
        "builtins",
        &[
            "getattr",
            "setattr",
            "delattr",
            "globals",
            "locals",
            "vars",
            "type",
            "super",
            "classmethod",
            "staticmethod",
            "property",
        ],
        ATTRIBUTES,
    ),
    (
        "builtins",
        &["open", "file", "input", "raw_input", "print"],
        FILES,
    ),
    ("builtins", &["memoryview", "id"], MEMORY),
    (
        "types",
        &[
            "CodeType",
            "FunctionType",
            "LambdaType",
            "MethodType",
            "ModuleType",
        ],
        CODE,
    ),
    ("torch", &["load", "save", "compile"], LOADS),
    (
        "torch.serialization",
        &["load", "save", "_load", "_legacy_load"],
        LOADS,
    ),
    ("torch.jit", &["load", "script", "trace"], LOADS),
    ("torch.storage", &["_load_from_bytes"], LOADS),
    (
        "numpy",
        &[
            "load",
            "save",
            "fromfile",
            "memmap",
            "loadtxt",
            "genfromtxt",
            "fromregex",
        ],
        FILES,
    ),
    ("joblib", &["load", "dump"], LOADS),
    ("joblib.numpy_pickle", &["load", "dump"], LOADS),
    ("pandas", &["read_pickle", "eval", "read_csv"], LOADS),
    ("pandas.io.pickle", &["read_pickle"], LOADS),
    ("numpy.lib.npyio", &["load", "save"], FILES),
];

/// Plain data beside what PyTorch's files have.
const HARMLESS: &[(&str, &[&str])] = &[
    ("collections", &["deque"]),
    (
        "datetime",
        &["date", "datetime", "time", "timedelta", "timezone"],
    ),
    ("decimal", &["Decimal"]),
    ("fractions", &["Fraction"]),
];

/// What a class or function is, and what it could do.
pub(super) fn judge(module: &str, name: &str) -> (Verdict, Option<&'static str>) {
    let module = if module == "__builtin__" {
        "builtins"
    } else {
        module
    };
    let is_in = |known: &str| {
        let rest = module.strip_prefix(known);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    // A path through a module reaches everything that it has imported: torch._utils.os.system.
    let first = name.split('.').next().unwrap_or_default();
    let names = NAMES.iter();
    let mut named = names.filter(|(known, names, _)| *known == module && names.contains(&first));
    if let Some((_, _, could)) = named.next() {
        return (Verdict::Dangerous, Some(could));
    }
    let mut modules = MODULES.iter();
    if let Some((_, could)) = modules.find(|(known, _)| is_in(known)) {
        return (Verdict::Dangerous, Some(could));
    }
    let mut parts = name.split('.').rev().skip(1);
    if let Some((_, could)) =
        parts.find_map(|part| MODULES.iter().find(|(known, _)| *known == part))
    {
        return (Verdict::Dangerous, Some(could));
    }
    if name.contains('.') || name.starts_with("__") {
        return (Verdict::Dangerous, Some(ATTRIBUTES));
    }
    let listed = HARMLESS
        .iter()
        .any(|(known, names)| *known == module && names.contains(&name));
    if listed || crate::formats::is_known_to_torch(module, name) {
        return (Verdict::Harmless, None);
    }
    (Verdict::Unknown, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_of_whole_names() {
        for (module, name, expected) in [
            ("os", "system", Verdict::Dangerous),
            ("os.path", "join", Verdict::Dangerous),
            ("oscillator", "system", Verdict::Unknown),
            ("builtins", "eval", Verdict::Dangerous),
            ("__builtin__", "exec", Verdict::Dangerous),
            ("builtins", "dict", Verdict::Harmless),
            ("builtins", "frozendict", Verdict::Unknown),
            ("torch._utils", "_rebuild_tensor_v2", Verdict::Harmless),
            ("torch._utils", "os.system", Verdict::Dangerous),
            ("torch._utils", "_rebuild_qtensor", Verdict::Unknown),
            ("torch.hub", "load", Verdict::Dangerous),
            ("torch", "FloatStorage", Verdict::Harmless),
            ("torch.nn.modules.linear", "Linear", Verdict::Unknown),
            ("collections", "OrderedDict", Verdict::Harmless),
            ("collections", "OrderedDict.__init__", Verdict::Dangerous),
            ("", "", Verdict::Unknown),
        ] {
            assert_eq!(judge(module, name).0, expected, "{module}.{name}");
        }
    }
}
