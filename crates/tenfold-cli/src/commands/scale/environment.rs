//! Which items are this process's, by what schedulers put into the environment.

/// The number of an item, from 0.
const INDICES: [&str; 6] = [
    "TENFOLD_ITEM",
    "SLURM_ARRAY_TASK_ID",
    "JOB_COMPLETION_INDEX",
    "AWS_BATCH_JOB_ARRAY_INDEX",
    "PBS_ARRAY_INDEX",
    "LSB_JOBINDEX",
];

/// A rank, and how many there are. A shell inside of an allocation has a rank of one.
const RANKS: [(&str, &str); 4] = [
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
    ("RANK", "WORLD_SIZE"),
];

/// The items, and what says so.
pub(super) fn items(
    count: usize,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(Vec<usize>, String), String> {
    let given = |name: &str| {
        let text = variable(name).filter(|text| !text.trim().is_empty())?;
        let number = text.trim().parse::<usize>();
        Some(number.map_err(|_| format!("{name} is {text:?}, and no number of an item")))
    };
    for name in INDICES {
        if let Some(item) = given(name) {
            return Ok((vec![item?], name.to_owned()));
        }
    }
    for (rank, size) in RANKS {
        let (Some(own), Some(all)) = (given(rank), given(size)) else {
            continue;
        };
        let (own, all) = (own?, all?);
        if all > 1 {
            let items = (0..count).filter(|item| item % all == own);
            return Ok((items.collect(), format!("{rank} {own} of {all}")));
        }
    }
    Err("nothing says which item to do: --item N, --all, or a variable of the engine such as SLURM_ARRAY_TASK_ID (`tenfold run --help` lists them)".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(variables: &[(&str, &str)]) -> Result<(Vec<usize>, String), String> {
        items(10, |name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn every_index_is_the_number_of_an_item() {
        for name in INDICES {
            assert_eq!(found(&[(name, "3")]), Ok((vec![3], name.to_owned())));
            assert!(found(&[(name, "x")]).is_err());
        }
        let both = [("LSB_JOBINDEX", "1"), ("TENFOLD_ITEM", "2")];
        assert_eq!(found(&both).unwrap().0, [2]);
    }

    #[test]
    fn ranks_share_the_items() {
        for (rank, size) in RANKS {
            assert_eq!(found(&[(rank, "1"), (size, "4")]).unwrap().0, [1, 5, 9]);
            assert!(found(&[(rank, "0")]).is_err());
            assert!(found(&[(rank, "0"), (size, "1")]).is_err());
        }
        let array = [
            ("SLURM_PROCID", "0"),
            ("SLURM_NTASKS", "2"),
            ("SLURM_ARRAY_TASK_ID", "7"),
        ];
        assert_eq!(found(&array).unwrap().0, [7]);
    }

    #[test]
    fn nothing_is_never_the_first_item() {
        assert!(found(&[]).is_err());
        assert!(found(&[("TENFOLD_ITEM", "")]).is_err());
    }
}
