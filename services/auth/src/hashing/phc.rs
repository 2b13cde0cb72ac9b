//! Argon2 hashes as PHC strings, computed in memory that the caller lends.

use argon2::password_hash::phc::{Output, ParamsString, PasswordHash, Salt};
use argon2::{Algorithm, Argon2, Block, Params, Version};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use zeroize::Zeroizing;

/// Bytes of a salt that is made here (RFC 9106 §3.1 recommends 16).
const SALT_BYTES: usize = 16;

/// Bytes of a hash that is made here.
const OUTPUT_BYTES: usize = 32;

/// What one hash costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cost {
    /// Memory, in KiB.
    pub memory_kib: u32,
    /// Passes over the memory.
    pub iterations: u32,
    /// Lanes. They are computed one after the other, by one thread.
    pub parallelism: u32,
}

impl Cost {
    /// Blocks of 1 KiB that a hash of this cost works in.
    pub(super) fn blocks(self) -> usize {
        self.memory_kib as usize
    }

    fn within(self, limit: Self) -> bool {
        self.memory_kib <= limit.memory_kib
            && self.iterations <= limit.iterations
            && self.parallelism <= limit.parallelism
    }

    fn params(self) -> Result<Params, argon2::Error> {
        Params::new(self.memory_kib, self.iterations, self.parallelism, Some(OUTPUT_BYTES))
    }
}

/// Why a stored hash cannot be verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It is no argon2 PHC string with salt and output.
    #[error("the stored hash is not a complete argon2 PHC string")]
    Malformed,
    /// Verifying it would cost more than this task is allowed to spend.
    #[error("the stored hash costs more than the configured limits allow")]
    TooExpensive,
}

/// A parsed PHC string whose cost is acceptable.
pub(super) struct StoredHash {
    argon2: Argon2<'static>,
    algorithm: Algorithm,
    version: Version,
    cost: Cost,
    salt: Salt,
    output: Output,
}

impl StoredHash {
    /// Parses a stored hash; allocates nothing of the size it asks for.
    pub(super) fn parse(phc: &str, limit: Cost) -> Result<Self, Unusable> {
        let hash = PasswordHash::new(phc).map_err(|_| Unusable::Malformed)?;
        let algorithm = Algorithm::try_from(hash.algorithm.as_str()).map_err(|_| Unusable::Malformed)?;
        // Strings older than version 1.3 of argon2 carry no version.
        let version = hash.version.map_or(Ok(Version::V0x10), Version::try_from).map_err(|_| Unusable::Malformed)?;
        let params = Params::try_from(&hash).map_err(|_| Unusable::Malformed)?;
        let (Some(salt), Some(output)) = (hash.salt, hash.hash) else { return Err(Unusable::Malformed) };
        let cost = Cost { memory_kib: params.m_cost(), iterations: params.t_cost(), parallelism: params.p_cost() };
        if !cost.within(limit) {
            return Err(Unusable::TooExpensive);
        }
        let argon2 = Argon2::new(algorithm, version, params);
        Ok(Self { argon2, algorithm, version, cost, salt, output })
    }

    /// What verifying costs.
    pub(super) fn cost(&self) -> Cost {
        self.cost
    }

    /// Whether a hash made today would be another kind.
    pub(super) fn is_outdated(&self, current: Cost) -> bool {
        let kind = (self.algorithm, self.version, self.cost, self.output.len());
        kind != (Algorithm::Argon2id, Version::V0x13, current, OUTPUT_BYTES)
    }

    /// Whether the password is the one that was hashed; compared in constant time.
    pub(super) fn matches(&self, password: &[u8], memory: &mut [Block]) -> Result<bool, argon2::Error> {
        let mut buffer = Zeroizing::new([0; Output::MAX_LENGTH]);
        let computed = &mut buffer[..self.output.len()];
        self.argon2.hash_password_into_with_memory(password, &self.salt, computed, memory)?;
        Ok(verify_slices_are_equal(computed, self.output.as_bytes()).is_ok())
    }
}

/// Hashes a password with a new salt. `memory` must have [`Cost::blocks`] blocks.
pub(super) fn hash(password: &[u8], cost: Cost, memory: &mut [Block]) -> anyhow::Result<String> {
    let params = cost.params()?;
    let parameters = ParamsString::try_from(&params)?;
    let mut salt = [0; SALT_BYTES];
    rand::fill(&mut salt)?;
    let mut output = Zeroizing::new([0; OUTPUT_BYTES]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params).hash_password_into_with_memory(
        password,
        &salt,
        &mut output[..],
        memory,
    )?;
    phc(parameters, &salt, &output[..])
}

/// A hash of the given cost that no password has: what is verified for users who do not exist.
pub(super) fn unmatchable(cost: Cost) -> anyhow::Result<String> {
    let mut random = [0; SALT_BYTES + OUTPUT_BYTES];
    rand::fill(&mut random)?;
    phc(ParamsString::try_from(&cost.params()?)?, &random[..SALT_BYTES], &random[SALT_BYTES..])
}

fn phc(params: ParamsString, salt: &[u8], output: &[u8]) -> anyhow::Result<String> {
    let hash = PasswordHash {
        algorithm: Algorithm::Argon2id.ident(),
        version: Some(Version::V0x13.into()),
        params,
        salt: Some(Salt::new(salt)?),
        hash: Some(Output::new(output)?),
    };
    Ok(hash.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHEAP: Cost = Cost { memory_kib: 64, iterations: 1, parallelism: 1 };
    const LIMIT: Cost = Cost { memory_kib: 65_536, iterations: 10, parallelism: 4 };

    fn memory(cost: Cost) -> Vec<Block> {
        vec![Block::default(); cost.blocks()]
    }

    fn verify(phc: &str, password: &str) -> bool {
        let stored = StoredHash::parse(phc, LIMIT).expect("usable");
        stored.matches(password.as_bytes(), &mut memory(stored.cost())).expect("computable")
    }

    #[test]
    fn a_hash_matches_its_password_only() {
        let phc = hash("correct".as_bytes(), CHEAP, &mut memory(CHEAP)).expect("hash");
        assert!(phc.starts_with("$argon2id$v=19$m=64,t=1,p=1$"), "{phc}");
        assert!(verify(&phc, "correct"));
        assert!(!verify(&phc, "wrong"));
        assert!(!verify(&phc, ""));
    }

    #[test]
    fn each_hash_has_a_salt_of_its_own() {
        let one = hash(b"same", CHEAP, &mut memory(CHEAP)).expect("hash");
        assert_ne!(one, hash(b"same", CHEAP, &mut memory(CHEAP)).expect("hash"));
    }

    #[test]
    fn vectors_of_the_reference_implementation_verify() {
        // phc-winner-argon2, src/test.c.
        for (phc, password) in [
            ("$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc", "password"),
            ("$argon2i$m=256,t=2,p=1$c29tZXNhbHQ$/U3YPXYsSb3q9XxHvc0MLxur+GP960kN9j7emXX8zwY", "password"),
            ("$argon2id$v=19$m=256,t=2,p=2$c29tZXNhbHQ$bQk8UB/VmZZF4Oo79iDXuL5/0ttZwg2f/5U52iv1cDc", "password"),
        ] {
            assert!(verify(phc, password), "{phc}");
            assert!(!verify(phc, "differentpassword"), "{phc}");
        }
    }

    #[test]
    fn a_hash_beyond_the_limits_is_refused_before_anything_is_allocated() {
        for parameters in
            ["m=4194304,t=50,p=64", "m=65537,t=1,p=1", "m=64,t=11,p=1", "m=64,t=1,p=5", "m=4294967295,t=1,p=1"]
        {
            let phc = format!("$argon2id$v=19${parameters}$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc");
            assert_eq!(StoredHash::parse(&phc, LIMIT).err(), Some(Unusable::TooExpensive), "{parameters}");
        }
    }

    #[test]
    fn what_is_no_argon2_hash_is_refused() {
        for phc in [
            "",
            "plain text",
            "$2b$12$abcdefghijklmnopqrstuuJ1Q0Q1Q0Q1Q0Q1Q0Q1Q0Q1Q0Q1Q0Q1Q",
            "$argon2id$v=19$m=64,t=1,p=1",
            "$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHQ",
            "$argon2id$v=18$m=64,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2id$v=19$m=4,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2id$v=19$m=64,t=0,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2id$v=19$m=99999999999,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
        ] {
            assert_eq!(StoredHash::parse(phc, LIMIT).err(), Some(Unusable::Malformed), "{phc}");
        }
    }

    #[test]
    fn another_cost_or_kind_is_outdated() {
        let current = hash(b"x", CHEAP, &mut memory(CHEAP)).expect("hash");
        let outdated = |phc: &str, cost| StoredHash::parse(phc, LIMIT).expect("usable").is_outdated(cost);
        assert!(!outdated(&current, CHEAP));
        assert!(outdated(&current, Cost { iterations: 2, ..CHEAP }));
        assert!(outdated(&current, Cost { memory_kib: 128, ..CHEAP }));
        assert!(outdated(&current.replace("$argon2id$", "$argon2i$"), CHEAP));
        assert!(outdated(&current.replace("$v=19$", "$v=16$"), CHEAP));
    }

    #[test]
    fn the_stand_in_for_unknown_users_costs_the_same_and_matches_nothing() {
        let stored = StoredHash::parse(&unmatchable(CHEAP).expect("random"), LIMIT).expect("usable");
        assert_eq!(stored.cost(), CHEAP);
        assert!(!stored.matches(b"", &mut memory(CHEAP)).expect("computable"));
    }
}
