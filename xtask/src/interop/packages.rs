//! The releases that files are exchanged with.

use crate::project::Build;

/// A release of a real package, and what it can be asked to do.
pub(super) struct Package {
    pub(super) format: &'static str,
    pub(super) extension: &'static str,
    /// What pip installs, the release itself first.
    pub(super) installs: &'static [&'static str],
    pub(super) program: &'static str,
    /// The kinds of files that its program writes.
    pub(super) writes: &'static [&'static str],
    /// The versions of the format that it loads, its own first.
    pub(super) loads: &'static [&'static str],
    /// Loads metadata alone: 0.1.2 has no code that reads a tensor.
    pub(super) metadata_only: bool,
    /// Ways to write its own kinds of files, each given to `tenfold convert`.
    pub(super) options: &'static [&'static str],
    /// Fixtures that it must load once converted: how their names start.
    pub(super) fixtures: &'static [&'static str],
    /// Has no other type, or one tensor only, so that the files of other packages are not for it.
    pub(super) f32_only: bool,
    /// Has no bool, which the files of other packages have.
    pub(super) no_bool: bool,
    /// How it is made from its sources, where pip alone does not know.
    pub(super) build: Option<&'static Build>,
    /// Those of them that it does not load, and why.
    pub(super) except: &'static [(&'static str, &'static str)],
}

impl Package {
    /// `magnetron 0.1.2`
    pub(super) fn release(&self) -> String {
        self.installs.first().unwrap_or(&"").replace("==", " ")
    }

    /// The version that it writes itself.
    pub(super) fn version(&self) -> &'static str {
        self.loads.first().unwrap_or(&"")
    }
}

/// In the order of their releases. A static, because packages are told apart by address.
pub(super) static PACKAGES: &[Package] = &[
    Package {
        format: "mag",
        extension: "mag",
        installs: &["magnetron==0.1.2"],
        program: "magnetron_archive.py",
        writes: &["basic", "full"],
        loads: &["archive-1"],
        metadata_only: true,
        options: &[],
        fixtures: &["archive_", "spec_metadata_"],
        f32_only: false,
        no_bool: false,
        build: None,
        except: &[],
    },
    Package {
        format: "mag",
        extension: "mag",
        installs: &["magnetron==0.1.6"],
        program: "magnetron_snapshot.py",
        writes: &["basic", "full"],
        loads: &["snapshot-0.1.0"],
        metadata_only: false,
        options: &[],
        fixtures: &["snap010_"],
        f32_only: false,
        no_bool: false,
        build: None,
        except: &[],
    },
    Package {
        format: "mag",
        extension: "mag",
        installs: &["magnetron==0.1.9"],
        program: "magnetron_snapshot.py",
        writes: &["basic", "full"],
        loads: &["snapshot-0.2.0"],
        metadata_only: false,
        options: &[],
        fixtures: &["snap020_"],
        f32_only: false,
        no_bool: false,
        build: None,
        except: &[(
            "snap020_zero_dim_real_reader_refuses",
            "its reader refuses dimensions of 0",
        )],
    },
    Package {
        format: "mag",
        extension: "mag",
        installs: &["magnetron==0.2.2"],
        program: "magnetron_manifest.py",
        writes: &["basic", "full"],
        loads: &["snapshot-0.3.0"],
        metadata_only: false,
        options: &[],
        fixtures: &["snap030_", "spec_"],
        f32_only: false,
        no_bool: false,
        build: None,
        except: &[
            (
                "snap030_own_nested_metadata",
                "metadata is nested deeper than its JSON can be read again",
            ),
            ("snap030_own_rank_65", "it holds up to 16 dimensions"),
        ],
    },
    Package {
        format: "ztensor",
        extension: "zt",
        installs: &["ztensor==0.1.4", "numpy", "ml_dtypes"],
        program: "ztensor_0.py",
        writes: &["basic", "full"],
        loads: &["0.1"],
        metadata_only: false,
        options: &[
            "--zstd 3",
            "--checksum crc32c",
            "--checksum sha256",
            "--zstd 19 --checksum crc32c",
        ],
        fixtures: &["v01_"],
        f32_only: false,
        no_bool: false,
        build: None,
        except: &[
            (
                "v01_hand_custom_layout",
                "it refuses a file with a layout that it does not know",
            ),
            ("v01_hand_unknown_dtype", "a tensor of it cannot be read"),
            ("v01_hand_unknown_encoding", "a tensor of it cannot be read"),
            ("v01_hand_unknown_layout", "a tensor of it cannot be read"),
            (
                "v01_layout_sparsecoo",
                "it hands sparse bytes out as dense elements",
            ),
            (
                "v01_layout_sparsecsr",
                "it hands sparse bytes out as dense elements",
            ),
            ("v01_names", "its C interface has no names with a NUL"),
        ],
    },
    Package {
        format: "ztensor",
        extension: "zt",
        installs: &["ztensor==1.2.3", "numpy", "ml_dtypes"],
        program: "ztensor_1.py",
        writes: &[
            "basic",
            "full",
            "sparse",
            "basic-zstd-sha256",
            "full-crc32c",
            "full-sha256",
            "sparse-zstd-crc32c",
        ],
        loads: &["1.2", "0.1"],
        metadata_only: false,
        options: &[
            "--zstd 3",
            "--checksum crc32c",
            "--checksum sha256",
            "--zstd 19 --checksum sha256",
        ],
        fixtures: &["v10_", "v11_", "v12_"],
        f32_only: false,
        no_bool: false,
        build: None,
        except: &[],
    },
    Package {
        format: "ztensor",
        extension: "zt",
        installs: &["ztensor==2.1.2", "numpy"],
        program: "ztensor_2.py",
        writes: &[
            "basic",
            "full",
            "sparse",
            "basic-zstd",
            "full-zstd",
            "full-align",
            "full-canonical",
            "sparse-canonical",
        ],
        loads: &["2"],
        metadata_only: false,
        options: &[
            "-O align=4096",
            "-O canonical=true",
            "--zstd 3",
            "--checksum xxh3",
            "--checksum sha256",
            "--zstd 19 --checksum xxh3 -O align=4096",
        ],
        fixtures: &["v2_"],
        f32_only: false,
        no_bool: false,
        build: None,
        except: &[("v2_unknown_type", "a tensor of it cannot be read")],
    },
    Package {
        format: "primitiv",
        extension: "primitiv",
        installs: &["primitiv==0.3.0.83"],
        program: "primitiv_0.py",
        writes: &["model", "model-stats", "parameter", "optimizer"],
        loads: &["0.1"],
        metadata_only: false,
        options: &["--check"],
        fixtures: &[
            "model_",
            "param_",
            "py_",
            "optimizer_",
            "hand_model",
            "hand_param",
        ],
        f32_only: true,
        no_bool: false,
        build: Some(&Build {
            requires: &[
                "cmake<4",
                "cython<3",
                "ninja",
                "numpy<2",
                "scikit-build==0.6.1",
                "setuptools<60",
                "wheel",
            ],
            environment: &[
                // Part of the version, which pip compares.
                ("PRIMITIV_PYTHON_BUILD_NUMBER", "83"),
                ("CMAKE_GENERATOR", "Ninja"),
                // Its build takes warnings for errors, and today's compilers have more of them.
                (
                    "CXXFLAGS",
                    "-Wno-catch-value -Wno-parentheses -Wno-range-loop-construct",
                ),
            ],
        }),
        except: &[
            ("hand_model_unsorted", "it drops dimensions of 1 at the end"),
            (
                "hand_param_trailing_ones",
                "it drops dimensions of 1 at the end",
            ),
            (
                "optimizer_custom_many",
                "no optimizer of its own has these settings",
            ),
        ],
    },
    Package {
        format: "safetensors",
        extension: "safetensors",
        installs: &["safetensors==0.8.0", "numpy", "ml_dtypes"],
        program: "safetensors_numpy.py",
        writes: &["basic", "full"],
        loads: &["-"],
        metadata_only: false,
        options: &[
            "-O reserve=10000",
            "-O align=4096",
            "--shard-size 100B",
            "--shard-size 1MB",
        ],
        fixtures: &[""],
        f32_only: false,
        no_bool: false,
        build: None,
        except: &[],
    },
    Package {
        format: "gguf",
        extension: "gguf",
        installs: &["gguf==0.19.0", "numpy"],
        program: "gguf_python.py",
        writes: &["plain", "full", "quantized"],
        loads: &["3"],
        metadata_only: false,
        options: &["-O align=64"],
        fixtures: &[
            "quant_big_endian",
            "quant_iq",
            "quant_k",
            "quant_legacy",
            "quant_ternary_fp4",
            "ranks_",
            "plain_types",
            "kv_no_nested",
            "v1_",
            "v2_",
        ],
        f32_only: false,
        no_bool: true,
        build: None,
        except: &[],
    },
    Package {
        format: "npy",
        extension: "npy",
        installs: &["numpy==2.4.6", "ml_dtypes==0.6.0"],
        program: "numpy_arrays.py",
        writes: &[
            "bool",
            "u8",
            "i8",
            "u16",
            "i16",
            "u32",
            "i32",
            "u64",
            "i64",
            "f16",
            "bf16",
            "f32",
            "f64",
            "c64",
            "c128",
            "big",
            "fortran",
            "fortran-big",
            "scalar",
            "vector",
            "empty",
            "large",
        ],
        loads: &["1.0"],
        metadata_only: false,
        options: &[],
        fixtures: &[""],
        // It holds one array, and the files of other packages several.
        f32_only: true,
        no_bool: false,
        build: None,
        except: &[(
            "f8_e5m2_ml_dtypes",
            "NumPy does not load what ml_dtypes makes of it",
        )],
    },
    Package {
        format: "npz",
        extension: "npz",
        installs: &["numpy==2.4.6", "ml_dtypes==0.6.0"],
        program: "numpy_arrays.py",
        writes: &["basic", "full", "full-deflated", "full-orders"],
        loads: &["zip"],
        metadata_only: false,
        options: &["-O deflate=1", "-O deflate=9"],
        fixtures: &[""],
        f32_only: false,
        no_bool: false,
        build: None,
        except: &[],
    },
    Package {
        format: "onnx",
        extension: "onnx",
        installs: &["onnx==1.23.2", "onnxruntime==1.31.1", "numpy"],
        program: "onnx_python.py",
        writes: &["basic", "full", "full-external"],
        loads: &["ir_version 10", "ir_version 14"],
        metadata_only: false,
        options: &["-O external=weights.bin", "-O external=none"],
        fixtures: &[""],
        f32_only: false,
        no_bool: false,
        build: None,
        except: &[
            ("graph_in_two_pieces", "its checker wants operators"),
            ("names", "its checker wants names that are not empty"),
            (
                "nodes_and_subgraphs",
                "its nodes use what no other node makes",
            ),
            ("raw_sub_byte", "it needs ir_version 14"),
            ("typed_fields", "it needs ir_version 14"),
        ],
    },
];

/// Versions whose metadata is text: numbers change their form, which the user of such a file allows.
pub(super) const METADATA_AS_TEXT: &[(&str, &str)] = &[("safetensors", "-")];

/// Versions without a place for the metadata of a file: dropping it is what the user of such a file asks for.
pub(super) const WITHOUT_METADATA: &[(&str, &str)] = &[
    ("mag", "snapshot-0.1.0"),
    ("mag", "snapshot-0.2.0"),
    ("npy", "1.0"),
    ("npz", "zip"),
    ("onnx", "ir_version 10"),
    ("onnx", "ir_version 14"),
    ("ztensor", "0.1"),
];
