use crate::error::{Error, Result};
use crate::format::{Plan, PlanOptions, Survey};
use crate::model::Manifest;
pub(super) fn survey(_: &PlanOptions) -> Result<Survey> {
    Ok(Survey::default())
}
pub(super) fn plan(_: &Manifest, _: &PlanOptions) -> Result<Plan> {
    Err(Error::argument(""))
}
