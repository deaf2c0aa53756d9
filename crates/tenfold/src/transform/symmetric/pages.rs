//! Elements at any places of stored bytes: straight from memory, or through a small cache of a file's pages.

use bytes::Bytes;

use crate::error::Result;
use crate::prelude::*;
use crate::transform::{Input, as_size};

/// Bytes that are fetched together. A multiple of every element's width, so that no element lies in two.
const PAGE: usize = 4096;
/// Pages that are held: some for every remainder of a page's number, so that few are in the way of another.
const SETS: usize = 256;
const WAYS: usize = 4;
/// Neighbours of at least as many bytes are fetched by themselves.
const LONG: usize = 1024;

/// Reads elements of a fixed width.
pub(super) struct Pages<'i> {
    input: &'i Input<'i>,
    memory: Option<Bytes>,
    pages: Vec<u8>,
    /// Which pages each set holds; `u64::MAX` for none.
    held: Vec<[u64; WAYS]>,
    /// The way that is given up next.
    next: usize,
}

impl<'i> Pages<'i> {
    pub(super) fn new(input: &'i Input<'i>) -> Result<Self> {
        let memory = if input.is_memory() {
            Some(input.read(0, input.len())?)
        } else {
            None
        };
        let sets = if memory.is_some() { 0 } else { SETS };
        Ok(Self {
            input,
            memory,
            pages: vec![0; sets * WAYS * PAGE],
            held: vec![[u64::MAX; WAYS]; sets],
            next: 0,
        })
    }

    /// Fills `out` with the elements at `place`, `place + delta`, and so on, where every step is by `growth` longer than
    /// the one before it.
    pub(super) fn gather(
        &mut self,
        width: usize,
        place: u64,
        delta: u64,
        growth: u64,
        out: &mut [u8],
    ) -> Result<()> {
        if delta == 1 && growth == 0 {
            return self.run(place * width as u64, out);
        }
        match width {
            1 => self.gather_fixed::<1>(place, delta, growth, out),
            2 => self.gather_fixed::<2>(place, delta, growth, out),
            4 => self.gather_fixed::<4>(place, delta, growth, out),
            8 => self.gather_fixed::<8>(place, delta, growth, out),
            16 => self.gather_fixed::<16>(place, delta, growth, out),
            32 => self.gather_fixed::<32>(place, delta, growth, out),
            64 => self.gather_fixed::<64>(place, delta, growth, out),
            _ => self.gather_fixed::<128>(place, delta, growth, out),
        }
    }

    fn gather_fixed<const WIDTH: usize>(
        &mut self,
        mut place: u64,
        mut delta: u64,
        growth: u64,
        out: &mut [u8],
    ) -> Result<()> {
        let elements = out.as_chunks_mut::<WIDTH>().0;
        if let Some(memory) = &self.memory {
            let stored = memory.as_chunks::<WIDTH>().0;
            for element in elements {
                *element = stored[as_size(place)?];
                place += delta;
                delta += growth;
            }
            return Ok(());
        }
        for element in elements {
            let at = place * WIDTH as u64;
            let page = self.page(at / PAGE as u64)?;
            let from = as_size(at % PAGE as u64)?;
            element.copy_from_slice(&page[from..from + WIDTH]);
            place += delta;
            delta += growth;
        }
        Ok(())
    }

    /// Neighbouring bytes.
    fn run(&mut self, mut at: u64, mut out: &mut [u8]) -> Result<()> {
        if let Some(memory) = &self.memory {
            let from = as_size(at)?;
            out.copy_from_slice(&memory[from..from + out.len()]);
            return Ok(());
        }
        if out.len() >= LONG {
            return self.input.read_into(at, out);
        }
        while !out.is_empty() {
            let from = as_size(at % PAGE as u64)?;
            let len = out.len().min(PAGE - from);
            let (now, later) = out.split_at_mut(len);
            let page = self.page(at / PAGE as u64)?;
            now.copy_from_slice(&page[from..from + len]);
            at += len as u64;
            out = later;
        }
        Ok(())
    }

    fn page(&mut self, page: u64) -> Result<&[u8]> {
        // Spread by a multiplication, for the pages that are wanted together often are equally far apart.
        const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
        #[allow(clippy::cast_possible_truncation)] // below the number of sets
        let set = (page.wrapping_mul(SPREAD) >> (64 - SETS.ilog2())) as usize;
        let held = &mut self.held[set];
        let place_of = |page| held.iter().position(|&held| held == page);
        let found = place_of(page);
        let way = found.or(place_of(u64::MAX)).unwrap_or(self.next);
        let at = (set * WAYS + way) * PAGE;
        let bytes = &mut self.pages[at..at + PAGE];
        if found.is_none() {
            // Forgotten first, so that a failed read leaves nothing that looks like data.
            held[way] = u64::MAX;
            let at = page * PAGE as u64;
            let len = as_size((self.input.len().saturating_sub(at)).min(PAGE as u64))?;
            self.input.read_into(at, &mut bytes[..len])?;
            held[way] = page;
            self.next = (way + 1) % WAYS;
        }
        Ok(bytes)
    }
}
