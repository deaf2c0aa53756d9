//! One cell of a picture.

/// What some numbers are like.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Cell {
    /// The smallest finite number; infinite where there is none.
    pub min: f64,
    /// The largest finite number; infinite where there is none.
    pub max: f64,
    sum: f64,
    /// Finite numbers.
    pub finite: u64,
    /// Not a number.
    pub nans: u64,
    /// Positive infinities.
    pub positive_infinities: u64,
    /// Negative infinities.
    pub negative_infinities: u64,
}

impl Default for Cell {
    fn default() -> Self {
        Self {
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
            sum: 0.0,
            finite: 0,
            nans: 0,
            positive_infinities: 0,
            negative_infinities: 0,
        }
    }
}

impl Cell {
    /// The mean of the finite numbers; `None` where there is none.
    pub fn mean(&self) -> Option<f64> {
        if self.finite == 0 {
            return None;
        }
        let mean = self.sum / self.finite as f64;
        // Sums of finite numbers may be infinite; then the middle is as good as any.
        let mean = if mean.is_finite() {
            mean
        } else {
            self.min / 2.0 + self.max / 2.0
        };
        // Rounding may have led out of them.
        Some(mean.clamp(self.min, self.max))
    }

    /// The finite number that is farthest from 0, with its sign; `None` where there is none.
    pub fn extreme(&self) -> Option<f64> {
        let farthest = if -self.min > self.max {
            self.min
        } else {
            self.max
        };
        (self.finite > 0).then_some(farthest)
    }

    /// Numbers that were looked at.
    pub fn numbers(&self) -> u64 {
        self.finite + self.not_finite()
    }

    /// Numbers that are NaN or infinite.
    pub fn not_finite(&self) -> u64 {
        self.nans + self.positive_infinities + self.negative_infinities
    }

    /// Adds numbers; gives how many of them are 0.
    pub(super) fn add(&mut self, numbers: &[f64]) -> u64 {
        let mut zeros = 0;
        for &number in numbers {
            if number.is_finite() {
                self.widen(number, number);
                self.sum += number;
                self.finite += 1;
                zeros += u64::from(number == 0.0);
            } else if number.is_nan() {
                self.nans += 1;
            } else if number > 0.0 {
                self.positive_infinities += 1;
            } else {
                self.negative_infinities += 1;
            }
        }
        zeros
    }

    /// Of 0 and -0 the first stays: `f64::min` takes either, as the processor has it, and answers shall be the same on all.
    fn widen(&mut self, min: f64, max: f64) {
        if min < self.min {
            self.min = min;
        }
        if max > self.max {
            self.max = max;
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.widen(other.min, other.max);
        self.sum += other.sum;
        self.finite += other.finite;
        self.nans += other.nans;
        self.positive_infinities += other.positive_infinities;
        self.negative_infinities += other.negative_infinities;
    }
}
