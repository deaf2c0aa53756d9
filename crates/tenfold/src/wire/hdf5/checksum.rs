//! Jenkins' lookup3, the checksum of all structures that have one.

/// The hash of some bytes, with the initial value 0.
pub(crate) fn lookup3(bytes: &[u8]) -> u32 {
    // Of longer ones, which there are not, the lower half counts.
    let len = u32::try_from(bytes.len() as u64 & 0xffff_ffff).unwrap_or(0);
    let start = 0xdead_beef_u32.wrapping_add(len);
    let (mut a, mut b, mut c) = (start, start, start);
    let word = |bytes: &[u8], at: usize| {
        let mut word = [0; 4];
        for (place, byte) in word.iter_mut().zip(bytes.iter().skip(at)) {
            *place = *byte;
        }
        u32::from_le_bytes(word)
    };
    let mut blocks = bytes.chunks(12).peekable();
    while let Some(block) = blocks.next() {
        a = a.wrapping_add(word(block, 0));
        b = b.wrapping_add(word(block, 4));
        c = c.wrapping_add(word(block, 8));
        if blocks.peek().is_some() {
            (a, b, c) = mix(a, b, c);
        } else {
            return last(a, b, c);
        }
    }
    c
}

fn mix(mut a: u32, mut b: u32, mut c: u32) -> (u32, u32, u32) {
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    (a, b, c)
}

fn last(mut a: u32, mut b: u32, mut c: u32) -> u32 {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_the_reference() {
        // From the driver of the reference implementation.
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }
}
