//! The packages that read beside us, and what each side may refuse alone.

/// A package that reads a format.
pub(super) struct Reference {
    pub(super) format: &'static str,
    /// What pip installs, the release itself first.
    pub(super) installs: &'static [&'static str],
    pub(super) program: &'static str,
    /// Rules under which we refuse what it takes. The page of the format lists them.
    pub(super) stricter: &'static [&'static str],
    /// Whether it refuses a file for one tensor, where we refuse the tensor.
    pub(super) all_or_nothing: bool,
    /// What it says when it refuses what we take, and why we take it.
    pub(super) laxer: &'static [(&'static str, &'static str)],
}

impl Reference {
    /// `numpy 2.4.6`
    pub(super) fn release(&self) -> String {
        self.installs.first().unwrap_or(&"").replace("==", " ")
    }
}

/// What NumPy does not read although ml_dtypes, which extends it, writes it.
const F8_E5M2: (&str, &str) = (
    "not a valid dtype descriptor: '<f1'",
    "ml_dtypes writes it for f8_e5m2, and NumPy does not load it again",
);

/// Why a version that torch does not read is taken.
const VERSION: &str =
    "the form has never changed: a version that is missing or unknown is a warning";

/// Why a dataset of HDF5 is found that the library does not find.
const SEARCHED: &str =
    "entries of a group are read as they are listed; it searches a damaged order for them";
/// Why damage in a file of HDF5 is no damage here.
const UNUSED: &str =
    "free lists, caches, extensions and times are not used to read, and not looked at";

pub(super) const REFERENCES: &[Reference] = &[
    Reference {
        format: "npy",
        installs: &["numpy==2.4.6", "ml_dtypes==0.6.0"],
        program: "numpy_files.py",
        stricter: &[
            "npy.dtype",
            "npy.fortran-order",
            "npy.header",
            "npy.keys",
            "npy.longdouble",
            "npy.shape",
            "npy.string",
            "npy.structured",
            "npy.subarray",
            "npy.time",
            "npy.void",
        ],
        all_or_nothing: false,
        laxer: &[F8_E5M2],
    },
    Reference {
        format: "npz",
        installs: &["numpy==2.4.6", "ml_dtypes==0.6.0"],
        program: "numpy_files.py",
        stricter: &[
            "npz.checksum",
            "npz.deflate",
            "npz.dtype",
            "npz.duplicate",
            "npz.fortran-order",
            "npz.header",
            "npz.keys",
            "npz.longdouble",
            "npz.magic",
            "npz.member-size",
            "npz.shape",
            "npz.string",
            "npz.structured",
            "npz.subarray",
            "npz.time",
            "npz.void",
            "zip.directory",
            "zip.disks",
            "zip.duplicate",
            "zip.encrypted",
            "zip.end",
            "zip.local-header",
            "zip.method",
            "zip.name",
            "zip.overlap",
            "zip.size",
            "zip.truncated",
            "zip.zip64",
        ],
        all_or_nothing: false,
        laxer: &[F8_E5M2],
    },
    Reference {
        format: "gguf",
        installs: &["gguf==0.19.0", "numpy"],
        program: "gguf_files.py",
        stricter: &[
            "gguf.bool",
            "gguf.bounds",
            "gguf.key",
            "gguf.offset",
            "gguf.overlap",
            "gguf.truncated",
            "gguf.value-type",
        ],
        all_or_nothing: false,
        laxer: &[
            (
                "version 1 which we cannot handle",
                "version 1 is read here, as by the first releases of the package",
            ),
            (
                "np.uint32(42) is not a valid GGMLQuantizationType",
                "Q2_0 is newer than the package",
            ),
            (
                "IndexError: tuple index out of range",
                "a bf16 without dimensions, which ggml reads; the package takes it for blocks",
            ),
        ],
    },
    Reference {
        format: "onnx",
        installs: &["onnx==1.23.2", "onnxruntime==1.31.1", "numpy"],
        program: "onnx_files.py",
        stricter: &[
            "onnx.count",
            "onnx.data",
            "onnx.name",
            "onnx.range",
            "onnx.segment",
            "onnx.size",
        ],
        all_or_nothing: false,
        laxer: &[(
            "Wire format was corrupt",
            "a graph is not interpreted, and a typed field that is no numbers costs its tensor, not the file",
        )],
    },
    Reference {
        format: "pytorch",
        installs: &["torch==2.15.0", "numpy"],
        program: "pytorch_files.py",
        stricter: &[
            "pytorch.checksum",
            "pytorch.duplicate",
            "pytorch.pickle-protocol",
            "pytorch.storage-size",
            "pytorch.tensor",
            "pytorch.view",
            "zip.truncated",
        ],
        all_or_nothing: true,
        laxer: &[
            ("PyTorch file with version", VERSION),
            ("parse the version", VERSION),
            ("hasRecord(\"version\")", VERSION),
            (
                "Unsupported operand",
                "all opcodes of all protocols are read, and torch knows those that it writes",
            ),
            (
                "was not an allowed global by default",
                "values of NumPy are read, which torch wants to be asked for",
            ),
            (
                "with TorchScript archives",
                "tensors of TorchScript archives are read as data, and torch runs them",
            ),
            (
                "expected dict, got dtype",
                "what a tensor says beside its elements is not read where it is no dict",
            ),
            (
                "codec can't decode byte",
                "version and serialization_id are not used to read",
            ),
            (
                "can require gradients",
                "requires_grad is a fact about a tensor, and changes no element",
            ),
            (
                "invalid literal for int() with base 10",
                "what .storage_alignment says is for writers alone",
            ),
        ],
    },
    Reference {
        format: "hdf5",
        installs: &["h5py==3.16.0", "numpy==2.4.6"],
        program: "hdf5_files.py",
        // It reads a structure when it is asked for it, and no attributes here; we read all of them, and a damaged one costs
        // the file. An external link alone is nothing.
        stricter: &[
            "hdf5.address",
            "hdf5.attribute",
            "hdf5.checksum",
            "hdf5.dataspace",
            "hdf5.external",
            "hdf5.header",
            "hdf5.heap",
            "hdf5.signature",
            "hdf5.truncated",
        ],
        all_or_nothing: false,
        laxer: &[
            ("listed and not found by its name", SEARCHED),
            ("addr overflow", UNUSED),
            ("attempting I/O in temporary file space", UNUSED),
            ("extension message should not be defined", UNUSED),
            ("bad object header version number", UNUSED),
            ("bad object header chunk size", UNUSED),
            ("address of object past end of allocation", UNUSED),
            ("unknown symbol table entry cache type", UNUSED),
            ("bad heap free list", UNUSED),
            ("free block size is zero", UNUSED),
            ("bad flag value for message", UNUSED),
            ("bad flag combination for message", UNUSED),
            ("unknown flag for fill value", UNUSED),
            ("bad object header message count", UNUSED),
            ("ran off end of input buffer", UNUSED),
            (
                "filter returned failure",
                "a chunk whose mask says that a filter was skipped is read so",
            ),
            (
                "dataset doesn't exist",
                "a layout without data has the fill value, whatever else is damaged",
            ),
            ("signal 14", "it does not come to an end within 5 seconds"),
        ],
    },
];
