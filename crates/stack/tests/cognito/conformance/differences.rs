//! Where the emulators do otherwise than Amazon Cognito.

/// One of them.
pub(crate) struct Difference {
    /// The case's name.
    pub(crate) case: &'static str,
    /// What it answers.
    pub(crate) instead: &'static str,
}

const fn difference(case: &'static str, instead: &'static str) -> Difference {
    Difference { case, instead }
}

/// moto 5.2.5.
pub(crate) static MOTO: [Difference; 28] = [
    difference("sign-up", "200 unconfirmed, UserSub is a UUID, code to SMS"),
    difference("sign-up-in-another-case", "200"),
    difference("sign-up-with-less-than-six-characters", "400 InvalidPasswordException"),
    difference("confirm-with-a-wrong-code", "200"),
    difference("confirm-a-confirmed-user", "200"),
    difference("resend-a-code", "500"),
    difference("resend-to-a-confirmed-user", "500"),
    difference("admin-confirm-twice", "200"),
    difference("unsigned-admin-call", "200"),
    difference("login-of-nobody", "400 UserNotFoundException"),
    difference("nobody-and-a-wrong-password-are-told-apart", "yes"),
    difference("login-in-another-case", "400 UserNotFoundException"),
    difference("login-unconfirmed-with-a-wrong-password", "400 NotAuthorizedException"),
    difference("login-without-a-password", "400 UserNotFoundException"),
    difference("right-password-after-five-failures", "200"),
    difference("revoke", "500, renewal then 200"),
    difference("revoke-twice", "500"),
    difference("revoke-an-access-token", "500"),
    difference("get-user-after-revocation", "200"),
    difference("access-token-claims", "without event_id"),
    difference("id-token-claims", "without email_verified event_id"),
    difference("keys-of-access-and-id-tokens", "one"),
    difference("secret-sign-up-without-its-hash", "200"),
    difference("secret-login-without-its-hash", "200"),
    difference("secret-login-with-another-hash", "200"),
    difference("secret-renew-with-the-hash-of-the-email", "200"),
    difference("secret-renew-with-the-hash-of-the-user-name", "400 NotAuthorizedException"),
    difference("secret-revoke-without-the-secret", "500"),
];

/// ministack 1.5.33.
pub(crate) static MINISTACK: [Difference; 22] = [
    difference("sign-up-in-another-case", "200"),
    difference("sign-up-with-less-than-six-characters", "400 InvalidPasswordException"),
    difference("confirm-with-a-wrong-code", "200"),
    difference("confirm-a-confirmed-user", "200"),
    difference("resend-to-a-confirmed-user", "200"),
    difference("admin-confirm-twice", "200"),
    difference("unsigned-admin-call", "200"),
    difference("new-password-required", "200 challenge NEW_PASSWORD_REQUIRED, answered 200, again 200"),
    difference("login-in-another-case", "400 NotAuthorizedException"),
    difference("login-without-a-password", "400 NotAuthorizedException"),
    difference("right-password-after-five-failures", "200"),
    difference("revoke-an-access-token", "200"),
    difference("get-user-with-an-id-token", "200"),
    difference("get-user-after-revocation", "200"),
    difference("global-sign-out", "200, get-user then 200"),
    difference("access-token-claims", "without event_id"),
    difference("id-token-claims", "without event_id"),
    difference("secret-sign-up-without-its-hash", "200"),
    difference("secret-login-without-its-hash", "200"),
    difference("secret-login-with-another-hash", "200"),
    difference("secret-renew-with-the-hash-of-the-email", "200"),
    difference("secret-revoke-without-the-secret", "200"),
];
