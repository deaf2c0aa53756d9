//! Writes tensors that exist nowhere before they are written, in memory that does not grow with them:
//! `cargo run --example generate -- squares.npz 1000000`.

use tenfold::model::DType;
use tenfold::{Archive, Error, Result};

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [path, rows] = args.as_slice() else {
        return Err(Error::argument("usage: generate FILE ROWS"));
    };
    let rows: u32 = rows
        .parse()
        .map_err(|cause| Error::argument("ROWS is a number").because(cause))?;

    let mut builder = Archive::builder();
    builder.stream("squares", DType::F64, [rows.into(), 2], move |put| {
        (0..rows).map(f64::from).try_for_each(|n| {
            put(&n.to_le_bytes())?;
            put(&(n * n).to_le_bytes())
        })
    })?;
    builder.tensor("names", [2], [b'n', b's'])?;
    builder.finish().save(path)?; // the format by the name
    Ok(())
}
