//! Memory that one hashing thread reuses.

use argon2::Block;
use zeroize::Zeroize;

/// Blocks of memory; empty until first used.
#[derive(Default)]
pub(super) struct Arena {
    blocks: Vec<Block>,
}

impl Arena {
    /// Lends `count` blocks of 1 KiB, contents unspecified.
    pub(super) fn lend(&mut self, count: usize) -> &mut [Block] {
        if self.blocks.len() < count {
            // Growing in place would copy what nobody reads, and hold both copies meanwhile.
            self.release();
            self.blocks = vec![Block::new(); count];
        }
        &mut self.blocks[..count]
    }

    /// Gives memory back that exceeds `count` blocks: one expensive hash must not keep it for ever.
    pub(super) fn shrink(&mut self, count: usize) {
        if self.blocks.len() > count {
            self.release();
        }
    }

    /// Wipes the memory (what is in it depends on passwords) and gives it back.
    pub(super) fn release(&mut self) {
        self.blocks.iter_mut().for_each(Zeroize::zeroize);
        self.blocks = Vec::new();
    }

    /// Blocks held.
    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_reused_and_given_back() {
        let mut arena = Arena::default();
        assert_eq!(arena.len(), 0);
        let first = arena.lend(16).as_ptr();
        assert_eq!(arena.lend(16).as_ptr(), first);
        assert_eq!(arena.lend(8).len(), 8);
        arena.shrink(16);
        assert_eq!(arena.len(), 16);
        arena.shrink(8);
        assert_eq!(arena.len(), 0);
        assert_eq!(arena.lend(4).len(), 4);
        arena.release();
        assert_eq!(arena.len(), 0);
    }
}
