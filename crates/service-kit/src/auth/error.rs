//! Why a token was not accepted.

/// Why a token was not accepted. For logs and metrics: a client learns only whether to renew its token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum VerifyError {
    /// Not a JWS in compact form (RFC 7515 §7.1) with a header and claims of the expected JSON types, or too long.
    #[error("not a signed token of the expected form")]
    Malformed,
    /// The header asks for what this verifier does not do: another algorithm than the key's, another token type, or
    /// critical extensions (RFC 7515 §4.1.11).
    #[error("the header's `{0}` is not acceptable")]
    Header(&'static str),
    /// The issuer publishes no key of this id.
    #[error("no key of the issuer has this id")]
    UnknownKey,
    /// The signature is not the key's.
    #[error("the signature does not match")]
    Signature,
    /// A claim is missing, out of range, or not what the policy asks for.
    #[error("the claim `{0}` is not acceptable")]
    Claim(&'static str),
    /// `nbf` or `iat` lies in the future.
    #[error("not valid yet")]
    NotYetValid,
    /// `exp` has passed.
    #[error("expired")]
    Expired,
    /// The issuer's keys could never be fetched, so that nothing can be said about the token.
    #[error("no token keys have been fetched yet")]
    KeysUnavailable,
}

impl VerifyError {
    /// One word for metrics; the set of words is bounded.
    pub(super) fn label(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Header(_) => "header",
            Self::UnknownKey => "unknown_key",
            Self::Signature => "signature",
            Self::Claim(_) => "claim",
            Self::NotYetValid => "not_yet_valid",
            Self::Expired => "expired",
            Self::KeysUnavailable => "keys_unavailable",
        }
    }
}
