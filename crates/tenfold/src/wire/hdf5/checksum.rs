//! Jenkins' lookup3, the checksum of all structures that have one.

/// The hash of some bytes, with the initial value 0.
pub(crate) fn lookup3(bytes: &[u8]) -> u32 {
    // Of longer ones, which there are not, the lower half counts.
    let len = u32::try_from(bytes.len() as u64 & 0xffff_ffff).unwrap_or(0);
    let start = 0xdead_beef_u32.wrapping_add(len);
    let (mut a, mut b, mut c) = (start, start, start);
    let mut rest = bytes;
    while let Some((block, more)) = rest.split_first_chunk()
        && !more.is_empty()
    {
        let [x, y, z] = words(block);
        (a, b, c) = mix(a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z));
        rest = more;
    }
    if rest.is_empty() {
        return c;
    }
    // The last one, which may be cut, is mixed in another way.
    let mut block = [0; 12];
    for (place, byte) in block.iter_mut().zip(rest) {
        *place = *byte;
    }
    let [x, y, z] = words(&block);
    last(a.wrapping_add(x), b.wrapping_add(y), c.wrapping_add(z))
}

fn words(block: &[u8; 12]) -> [u32; 3] {
    let &[a, b, c, d, e, f, g, h, i, j, k, l] = block;
    [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_le_bytes)
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
