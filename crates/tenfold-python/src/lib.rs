//! The Python package `tenfold`: its extension module, `tenfold._tenfold`.
//!
//! What is here turns types of Python into types of the library and back, and waits for long work without the interpreter's
//! lock. What is easier said in Python (exceptions, results, other packages' arrays, HTML) is in `python/tenfold`.
//!
//! Every use of `unsafe` is about memory that both sides see: see `memory`, `dlpack`, and `open`, which maps files.

mod archive;
mod builder;
mod command;
mod dlpack;
mod dtype;
mod edit;
mod error;
mod hint;
mod index;
mod many;
mod memory;
mod metadata;
mod object;
mod open;
mod ops;
mod reading;
mod request;
mod scale;
mod scan;
mod shared;
mod source;
mod supervise;
mod tensor;
mod write;

/// What `tenfold` has of Rust.
#[pyo3::pymodule(gil_used = false)]
mod _tenfold {
    #[pymodule_export]
    use crate::archive::Archive;
    #[pymodule_export]
    use crate::builder::Builder;
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::dtype::{DType, dtype};
    #[pymodule_export]
    use crate::edit::{cast, dequantize, edit_metadata, grouped, merge, quantize, rename};
    #[pymodule_export]
    use crate::hint::hints;
    #[pymodule_export]
    use crate::memory::Memory;
    #[pymodule_export]
    use crate::metadata::Metadata;
    #[pymodule_export]
    use crate::open::{detect, formats, open_file, open_source};
    #[pymodule_export]
    use crate::ops::{diff, digest, extents, inspect, stats, verify};
    #[pymodule_export]
    use crate::scale::{abandon_plan, join_plan, plan, plan_status, run_item};
    #[pymodule_export]
    use crate::scan::scan;
    #[pymodule_export]
    use crate::tensor::Tensor;
    #[pymodule_export]
    use crate::write::{dumps, write};

    #[pymodule_init]
    fn init(module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        use pyo3::types::PyModuleMethods;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
