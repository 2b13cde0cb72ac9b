//! Passwords: how they are kept, and which are accepted.

use std::str::FromStr;

use aws_lc_rs::{constant_time, hmac};
use uuid::Uuid;

use crate::cognito::wire::CognitoError;

/// Below this, Cognito's validation answers and not the pool's policy, which cannot ask for less.
const SHORTEST: usize = 6;
/// `PasswordType` of the API: at most 256 characters.
const LONGEST: usize = 256;
/// What a password with a space at an end fails.
const PATTERN: &str = "satisfy regular expression pattern: ^[\\S]+.*[\\S]+$";
/// AWS's default list of special characters ("Adding user pool password requirements"); a space counts inside a password.
const SYMBOLS: &str = "^$*.[]{}()?\"!@#%&/\\,><':;|_~`=+- ";

/// Hashes passwords: one HMAC each. Real Cognito's cost is in the latency that is set, and must not be in the CPU time of the machine
/// that is measured; what matters is that every attempt costs the same, also for a user who is not there.
#[derive(Debug)]
pub(crate) struct Hasher {
    key: hmac::Key,
}

/// What is kept of a password.
pub(crate) type Hashed = [u8; 32];

impl Hasher {
    pub(crate) fn new(key: &[u8]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, key) }
    }

    pub(crate) fn hash(&self, user: Uuid, password: &str) -> Hashed {
        let mut context = hmac::Context::with_key(&self.key);
        context.update(user.as_bytes());
        context.update(password.as_bytes());
        let mut hashed = Hashed::default();
        hashed.copy_from_slice(context.sign().as_ref());
        hashed
    }

    /// Whether the password is the one; of nobody, it never is, and takes as long.
    pub(crate) fn is_right(&self, of: Option<(Uuid, Hashed)>, password: &str) -> bool {
        let (user, hashed) = of.unwrap_or_default();
        let same = constant_time::verify_slices_are_equal(&self.hash(user, password), &hashed).is_ok();
        same && of.is_some()
    }
}

/// A pool's password policy: `8`, or `8,upper,lower,number,symbol`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "as the pool's own settings")]
pub struct PasswordPolicy {
    /// Shortest password, in characters.
    pub minimum_length: usize,
    /// `RequireUppercase`.
    pub upper: bool,
    /// `RequireLowercase`.
    pub lower: bool,
    /// `RequireNumbers`.
    pub number: bool,
    /// `RequireSymbols`.
    pub symbol: bool,
}

impl Default for PasswordPolicy {
    /// What Datum itself asks for: length alone. AWS's own default asks for all kinds of characters.
    fn default() -> Self {
        Self { minimum_length: 8, upper: false, lower: false, number: false, symbol: false }
    }
}

impl FromStr for PasswordPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut words = text.split(',').map(str::trim);
        let length = words.next().and_then(|word| word.parse().ok()).filter(|it| (SHORTEST..=99).contains(it));
        let minimum_length = length.ok_or_else(|| format!("`{text}` does not begin with a length from 6 to 99"))?;
        let mut policy = Self { minimum_length, ..Self::default() };
        for word in words {
            match word {
                "upper" => policy.upper = true,
                "lower" => policy.lower = true,
                "number" => policy.number = true,
                "symbol" => policy.symbol = true,
                _ => return Err(format!("`{word}` is none of upper, lower, number, symbol")),
            }
        }
        Ok(policy)
    }
}

impl PasswordPolicy {
    /// Refuses what the API's validation refuses, and then what the policy does.
    pub(crate) fn check(&self, password: &str) -> Result<(), CognitoError> {
        let length = password.chars().count();
        if length < SHORTEST {
            return Err(CognitoError::constraint("password", "have length greater than or equal to 6"));
        }
        if length > LONGEST {
            return Err(CognitoError::constraint("password", "have length less than or equal to 256"));
        }
        if password.trim() != password {
            return Err(CognitoError::constraint("password", PATTERN));
        }
        let has = |is: fn(char) -> bool| password.chars().any(is);
        let broken = [
            (length < self.minimum_length, "Password not long enough"),
            (self.upper && !has(char::is_uppercase), "Password must have uppercase characters"),
            (self.lower && !has(char::is_lowercase), "Password must have lowercase characters"),
            (self.number && !has(|c| c.is_ascii_digit()), "Password must have numeric characters"),
            (self.symbol && !has(|c| SYMBOLS.contains(c)), "Password must have symbol characters"),
        ];
        match broken.into_iter().find(|(broken, _)| *broken) {
            None => Ok(()),
            Some((_, why)) => Err(CognitoError::new(
                "InvalidPasswordException",
                format!("Password did not conform with policy: {why}"),
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(policy: &str, password: &str) -> Option<String> {
        let policy: PasswordPolicy = policy.parse().unwrap();
        policy.check(password).err().map(|error| error.kind.into_owned())
    }

    #[test]
    fn what_is_too_short_for_any_policy_is_an_invalid_parameter_and_not_a_password() {
        assert_eq!(kind("8", "five5").as_deref(), Some("InvalidParameterException"));
        assert_eq!(kind("8", "sevens7").as_deref(), Some("InvalidPasswordException"));
        assert_eq!(kind("8", "eight  8"), None);
        assert_eq!(kind("8", " outer spaces ").as_deref(), Some("InvalidParameterException"));
        assert_eq!(kind("8", &"x".repeat(256)), None);
        assert_eq!(kind("8", &"x".repeat(257)).as_deref(), Some("InvalidParameterException"));
    }

    #[test]
    fn a_policy_asks_for_kinds_of_characters() {
        let all = "8,upper,lower,number,symbol";
        assert_eq!(kind(all, "Abcdef1!"), None);
        for missing in ["abcdef1!", "ABCDEF1!", "Abcdefg!", "Abcdefg1"] {
            assert_eq!(kind(all, missing).as_deref(), Some("InvalidPasswordException"), "{missing}");
        }
        for wrong in ["", "5", "100", "8,digits"] {
            assert!(wrong.parse::<PasswordPolicy>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_password_is_its_users_and_nobodys_is_never_right() {
        let hasher = Hasher::new(b"key");
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let kept = hasher.hash(one, "a password");
        assert!(hasher.is_right(Some((one, kept)), "a password"));
        assert!(!hasher.is_right(Some((one, kept)), "another"));
        assert!(!hasher.is_right(Some((other, kept)), "a password"));
        let of_nobody = hasher.hash(Uuid::nil(), "a password");
        assert_ne!(of_nobody, kept);
        assert!(!hasher.is_right(None, "a password"));
    }
}
